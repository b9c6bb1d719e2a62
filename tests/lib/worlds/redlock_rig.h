/* What the tests of redlock share: five nodes that are whole before each test, and two clients. */
#ifndef TEST_REDLOCK_RIG_H
#define TEST_REDLOCK_RIG_H

#include "lock_world.h"

#define REDLOCK_KEY "lock:item:1"

enum {
    REDLOCK_LEASE_MS = 30000,
    REDLOCK_DRIFT_MS = REDLOCK_LEASE_MS / 100 + 2,
    REDLOCK_LONG_MS = 20000,
    REDLOCK_GRACE_MS = 2000
};

extern lk_client *redlock_client, *redlock_other;
extern lk_hold redlock_hold, redlock_second; /* released after the test, however it ended */

/* Of the group: the family's nodes. Of a test: all of them up and empty; clients that know none of
 * them yet. */
int redlock_open(void **state);
int redlock_set_up(void **state);
int redlock_tear_down(void **state);

/* Nodes from ... to - 1. Assert; main thread only. */
void redlock_signal(int from, int to, int signal);
void redlock_restart(int from, int to);

/* One attempt with REDLOCK_LEASE_MS and no renewal. */
lk_status redlock_try(lk_client *client, lk_hold *hold);
/* Acquired and released once, so that the client has connections to every node. */
void redlock_warm_up(lk_client *client);

#endif
