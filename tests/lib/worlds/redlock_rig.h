/* Shared by the tests of redlock: five nodes that are up before each test, and two clients. */
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
extern lk_hold redlock_hold, redlock_second; /* released after each test, even a failed one */

/* Group set-up: starts the family's nodes. Set-up of a test: all nodes are up and empty; the
 * clients are new and not connected. */
int redlock_open(void **state);
int redlock_set_up(void **state);
int redlock_tear_down(void **state);

/* Act on nodes from ... to - 1. They assert success. Main thread only. */
void redlock_signal(int from, int to, int signal);
void redlock_restart(int from, int to);

/* One attempt with REDLOCK_LEASE_MS and no renewal. */
lk_status redlock_try(lk_client *client, lk_hold *hold);
/* Acquires and releases once: then the client is connected to every node. */
void redlock_warm_up(lk_client *client);

#endif
