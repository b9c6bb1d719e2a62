/*
 * A lock server dies during a running sale: two instances of the service on PostgreSQL, fences from
 * the database, one item per guard and buyers who never stop. No answer may come later than its
 * deadline, every guard sells again soon after there is a new master, and nothing is lost.
 */
#ifndef TEST_FAILOVER_H
#define TEST_FAILOVER_H

#include "sandbox.h"

struct failover {
    const char *flag;          /* "--redis": which setting names the servers */
    const char *const *guards; /* NULL-terminated */
    /* Starts the lock servers; *ret_url: value of the flag, static. */
    bool (*start)(struct sandbox *sandbox, const char **ret_url);
    /* kill -9 of the server that matters. Asserts. */
    void (*kill)(void);
    /* For wait_until(): another one serves in its place. */
    bool (*is_replaced)(void *unused);
    int lease_ms; /* also what a lock costs whose holder could not release it */
    bool is_felt; /* some request must have been refused or kept waiting, or the fault did not take
                     effect */
};

/* Runs the tests; main()'s result. */
int failover_main(const struct failover *failover);

#endif
