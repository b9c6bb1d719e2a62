/*
 * The same guards for longer, on the real servers of their family: contenders of all guards at
 * once, long series of fences, many pairs of acquire and release. TEST_FULL=1: 30 s, 1,000,000
 * grants of each guard that claims fences (20,000 where a grant takes a disk or an ensemble) and
 * 100,000 pairs of each guard.
 */
#ifndef TEST_ENDURANCE_H
#define TEST_ENDURANCE_H

#include "lock_world.h"

/* In the order of the tests. */
enum { ENDURE_CONTENDERS = 1, ENDURE_FENCES = 2, ENDURE_PAIRS = 4, ENDURE_ALL = 7 };

/* main() of an endurance binary, with some of the parts: those of many guards take long. */
int endurance_main(const struct lock_family *family, int parts);

#endif
