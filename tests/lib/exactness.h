/*
 * Exactness on one engine of the store: two instances of the service, lanes off, and the load
 * generator's three workloads under every guard that claims to be safe, as GET /v1/guards lists
 * them; new guards join by themselves. Without a guard the same load must lose.
 */
#ifndef TEST_EXACTNESS_H
#define TEST_EXACTNESS_H

#include "all_servers.h"

/* The rest of seckilld's arguments, NULL-terminated: the store; --instance is added. */
typedef void exactness_store(const struct sandbox *sandbox, const struct all_servers *servers,
                             const char *ret_args[ALL_ARGS_MAX + 1]);

/* Looks at the database once the services have ended; asserts. */
typedef void exactness_afterwards(const struct all_servers *servers);

/* Runs the tests; main()'s result. afterwards may be NULL. */
int exactness_main(exactness_store *store, exactness_afterwards *afterwards);

#endif
