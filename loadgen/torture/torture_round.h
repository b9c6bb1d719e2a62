/* One round: draw, start, torture, heal, demand progress, judge. */
#ifndef TORTURE_ROUND_H
#define TORTURE_ROUND_H

#include "torture_sums.h"
#include "torture_world.h"

#include <signal.h>

struct torture_round {
    struct torture_plan plan;
    struct torture_verdict verdict;
    int bitten;
    int64_t took_ms;
};

/* dir: the folder of all rounds; the round makes one of its own in it, and removes it if all held
 * and keep is false. sums: what struck is added. Returns 0, or -1 when it could not be run (a
 * server did not start, or *stop was set); then there is no verdict. */
int torture_round_run(struct torture_world *world, struct torture_round *round, const char *dir,
                      bool keep, struct torture_sums *sums, volatile sig_atomic_t *stop);
/* One aligned line. */
void torture_round_print(const struct torture_round *round, FILE *out);

#endif
