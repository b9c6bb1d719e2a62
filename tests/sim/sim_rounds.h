/* Runs of many seeds, and their sum. */
#ifndef SIM_ROUNDS_H
#define SIM_ROUNDS_H

#include "sim_shrink.h"

struct sim_sum {
    uint64_t last; /* seed that was begun */
    uint64_t seeds, deals, looks, broken,
        differing;                      /* runs that broke a promise; that a replay differed of */
    uint64_t canaries, canaries_caught; /* runs under no guard, and those that lost an update */
    uint64_t events[SIM_EVENTS], runs_with[SIM_EVENTS];
    uint64_t first_broken, first_failed; /* seeds; failed: broken, or two runs differ */
    double seconds, virtual_s;
};

/* First in main(): starts the program again, at addresses that do not change from run to run. */
void sim_without_random_addresses(char **argv);
/* Each seed runs twice, in processes of its own, n_jobs seeds at a time. After most_s seconds none
 * is begun any more. Names on stdout each seed that broke something. */
void sim_rounds(uint64_t from, uint64_t seeds, int n_jobs, double most_s, struct sim_sum *ret);
/* One seed: prints the timeline. Returns 1 if broken. With shrink_s > 0: shrinks it first, in about
 * so many seconds. */
int sim_replay(uint64_t seed, const struct sim_less *less, double shrink_s);
bool sim_shrink_seed(uint64_t seed, const struct sim_less *begin, double most_s,
                     struct sim_shrunk *ret);
/* Shrinks it, and prints how to run it again, and its story. */
void sim_tell_shrunk(uint64_t seed, const struct sim_less *begin, double most_s);
/* The calling process ends with SIGXCPU after so much of the processor. */
void sim_limit_cpu(unsigned seconds);
double sim_real_s(void); /* of the monotonic clock outside of the simulation */
void sim_sum_print(const struct sim_sum *sum, FILE *out); /* JSON */

#endif
