/*
 * Many actors on a virtual clock against one lock server in memory, with random delays, stalls
 * longer than a lease, lost and late messages. After each step of any actor:
 *
 *   - no two actors have a hold of one key that lk_check() calls theirs
 *   - whoever lk_check() calls the holder is the holder on the server too
 *   - the fences of the server's grants rise
 *
 * and at the end no guarded update is lost, no lock remains beyond its lease, and, unless a message
 * was late, none stands for nobody once the server answers.
 */
#ifndef TEST_LOCK_SIMULATION_H
#define TEST_LOCK_SIMULATION_H

#include "provider.h"

/* One run; all its chances come from the seed. Adds to *sum what the clients counted. Returns a
 * hash over all grants: equal runs have equal ones. */
uint64_t simulate(uint64_t seed, const lk_provider *provider, lk_stats *sum);
/* What the last run broke, where and when; "" for nothing. */
const char *simulation_broken(void);
/* After all of them. */
void simulation_end(void);

#endif
