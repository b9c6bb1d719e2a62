/* What the tests of redlock share: five nodes that are whole before each test, and two clients. */
#ifndef TEST_REDLOCK_RIG_H
#define TEST_REDLOCK_RIG_H

#include "lock_world.h"

#define RIG_KEY "lock:item:1"

enum {
    RIG_LEASE_MS = 30000,
    RIG_DRIFT_MS = RIG_LEASE_MS / 100 + 2,
    RIG_LONG_MS = 20000,
    RIG_GRACE_MS = 2000
};

extern lk_client *rig_client, *rig_other;
extern lk_hold rig_hold, rig_second; /* released after the test, however it ended */

/* Of the group: the family's nodes. Of a test: all of them up and empty; clients that know none of
 * them yet. */
int rig_open_nodes(void **state);
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Nodes from ... to - 1. Assert; main thread only. */
void rig_signal(int from, int to, int signal);
void rig_restart(int from, int to);

/* One attempt with RIG_LEASE_MS and no renewal. */
lk_status rig_try(lk_client *client, lk_hold *hold);
/* Acquired and released once, so that the client has connections to every node. */
void rig_warm_up(lk_client *client);

#endif
