/*
 * Exactness on one engine of the store: two instances of the service, lanes off, and the load
 * generator's three workloads under every guard that claims to be safe, as GET /v1/guards lists
 * them; new guards join by themselves. Without a guard the same load must lose.
 */
#ifndef TEST_EXACTNESS_H
#define TEST_EXACTNESS_H

#include "all_servers.h"

struct exactness {
    /* The rest of seckilld's arguments, NULL-terminated: the store; --instance is added. */
    void (*store)(const struct sandbox *sandbox, const struct all_servers *servers,
                  const char *ret_args[ALL_ARGS_MAX + 1]);
    const char *only; /* NULL: all; else the guards that begin so, which need the store alone */
    /* Looks at the database once the services have ended; asserts. May be NULL. */
    void (*afterwards)(const struct all_servers *servers);
};

/* Runs the tests; main()'s result. */
int exactness_main(const struct exactness *exactness);

#endif
