/*
 * Many actors on a virtual clock against one lock server in memory, with random delays, stalls
 * longer than a lease, lost and late messages. After each step of any actor:
 *
 *   - lk_check() confirms a key to at most one actor
 *   - an actor that lk_check() confirms holds the lock on the server too
 *   - the fences of the server's grants rise
 *
 * At the end:
 *
 *   - no guarded update is lost
 *   - no lock outlives its lease
 *   - if no message was late and the server answers, no lock stands without a holder
 */
#ifndef TEST_LOCK_SIMULATION_H
#define TEST_LOCK_SIMULATION_H

#include "provider.h"

/* Makes one run; the seed decides everything random. Adds the clients' counters to *sum. Returns a
 * hash of all grants: equal runs have equal hashes. */
uint64_t simulate(uint64_t seed, const lk_provider *provider, lk_stats *sum);
/* Which rule the last run broke, where and when; "" for none. */
const char *simulation_broken(void);
/* Call it after the last run. */
void simulation_end(void);

#endif
