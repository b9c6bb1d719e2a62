/*
 * Exactness on one engine of the store: two instances of the service, lanes off. The load
 * generator's three workloads run under every guard that GET /v1/guards lists as safe, so new
 * guards are included automatically. Without a guard the same load must lose updates.
 */
#ifndef TEST_EXACTNESS_H
#define TEST_EXACTNESS_H

#include "all_servers.h"

struct exactness {
    /* Fills in seckilld's arguments for store and locks, NULL-terminated. --instance is added. */
    void (*store)(const struct sandbox *sandbox, const struct all_servers *servers,
                  const char *ret_args[ALL_ARGS_MAX + 1]);
    const char *only; /* prefix of the guards to test, which need the store alone; NULL: all */
    /* Checks the database after the services have ended; asserts. May be NULL. */
    void (*afterwards)(const struct all_servers *servers);
};

/* Runs the tests; main()'s result. */
int exactness_main(const struct exactness *exactness);

#endif
