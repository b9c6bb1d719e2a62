/*
 * A lock server dies during a sale. Two instances of the service run on PostgreSQL with fences from
 * the database, one item per guard; buyers send without a pause. No answer may come after its
 * deadline. Every guard sells again soon after there is a new master. No update is lost.
 */
#ifndef TEST_FAILOVER_H
#define TEST_FAILOVER_H

#include "sandbox.h"

struct failover {
    const char *flag;          /* seckilld's flag for the servers: "--redis" */
    const char *const *guards; /* NULL-terminated */
    /* Starts the lock servers; *ret_url: value of the flag, static. */
    bool (*start)(struct sandbox *sandbox, const char **ret_url);
    /* kill -9 of the server that matters. Asserts. */
    void (*kill)(void);
    /* For wait_until(): true when another server has taken over. */
    bool (*is_replaced)(void *unused);
    int lease_ms; /* also how long a lock stays that its holder could not release */
    bool is_felt; /* requires a refused or delayed request as proof of the fault */
};

/* Runs the tests; main()'s result. */
int failover_main(const struct failover *failover);

#endif
