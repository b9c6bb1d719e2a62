/*
 * A table of claims x guards of a family, each cell tested on real servers. A guard must keep each
 * claim of its capability bits. For each bit that it does not have it must show the anomaly. It
 * must also keep the duties of every guard (lock_duties.h).
 */
#ifndef TEST_CONFORMANCE_H
#define TEST_CONFORMANCE_H

#include "lock_world.h"

/* main() of a conformance binary: runs a test for each cell, then prints the family's rows. */
int conformance_main(int argc, char **argv, const struct lock_family *family);

#endif
