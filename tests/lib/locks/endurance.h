/*
 * Long tests of a family's guards on real servers: contenders of all guards at once, long series of
 * fences, many pairs of acquire and release. With TEST_FULL=1:
 *
 * - contention for 30 s
 *
 * - 1,000,000 grants of each guard that claims fences (20,000 where a grant needs a disk or an
 *   ensemble)
 *
 * - 100,000 pairs of each guard
 */
#ifndef TEST_ENDURANCE_H
#define TEST_ENDURANCE_H

#include "lock_world.h"

/* Parts, in the order of the tests. */
enum { ENDURE_CONTENDERS = 1, ENDURE_FENCES = 2, ENDURE_PAIRS = 4, ENDURE_ALL = 7 };

/* main() of an endurance binary. parts: ENDURE_ bits; a family of many guards is split over two
 * binaries. */
int endurance_main(const struct lock_family *family, int parts);

#endif
