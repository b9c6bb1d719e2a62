/*
 * What every guard must keep while its servers stand still, die, are cut off or answer in pieces:
 * calls end in time, what they say is true, nothing is left behind but what ends by itself.
 */
#ifndef TEST_OUTAGE_H
#define TEST_OUTAGE_H

#include "lock_world.h"

/* main() of an outage binary: each experiment with each guard of the family, which has servers. */
int outage_main(const struct lock_family *family);

#endif
