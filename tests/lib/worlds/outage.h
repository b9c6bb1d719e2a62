/*
 * What every guard must do while its servers are stopped, die, are cut off or answer in pieces.
 * Calls return in time and their results are true. Only locks that expire by themselves may remain.
 */
#ifndef TEST_OUTAGE_H
#define TEST_OUTAGE_H

#include "lock_world.h"

/* main() of an outage binary: each experiment with each guard. The family must have servers. */
int outage_main(const struct lock_family *family);

#endif
