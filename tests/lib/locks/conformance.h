/*
 * One table of claims x guards of a family, each cell tried on its real servers: a guard must keep
 * what its capability bits claim, must show the anomaly of every bit that it leaves out, and must
 * keep what every guard must (lock_duties.h).
 */
#ifndef TEST_CONFORMANCE_H
#define TEST_CONFORMANCE_H

#include "lock_world.h"

/* main() of a conformance binary: a test for each cell, then the family's rows of the table. */
int conformance_main(int argc, char **argv, const struct lock_family *family);

#endif
