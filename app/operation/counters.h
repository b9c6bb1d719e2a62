/* What the service counts. service_metrics.c shows it. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "metric.h"
#include "op.h"

/* The outcome of an operation: its problem (PROBLEM_NONE: done), that a stored answer was replayed,
 * or that it ended without an answer because its client had gone.
 */
enum { OUTCOME_REPLAYED = PROBLEM_COUNT, OUTCOME_ABANDONED, OUTCOME_COUNT };

struct counters {
    atomic_uint_fast64_t outcomes[OP_KIND_COUNT][OUTCOME_COUNT];
    atomic_uint_fast64_t reruns;       /* sections read and decided again: the row had changed */
    atomic_uint_fast64_t stale_fences; /* writes refused by the store */
    atomic_uint_fast64_t fences;       /* taken from the store */
    atomic_uint_fast64_t closed;       /* orders closed by the scheduled task */
    atomic_uint_fast64_t pruned;       /* stored answers pruned by the scheduled task */
    atomic_uint_fast64_t undecided;    /* commits whose outcome was unknown */
    atomic_uint_fast64_t kept;         /* sets of locks that the keeper has now */
    atomic_uint_fast64_t kept_lost;    /* sets of which a lock ended before the decision */
    struct metric_histogram batch;     /* operations per section */
    /* Time from the point before to each point, of operations that were written without a problem.
     */
    atomic_uint_fast64_t step_us[OP_POINT_COUNT], stepped[OP_POINT_COUNT];
};

void counters_init(struct counters *counters);
void counter_add(atomic_uint_fast64_t *counter, uint64_t n);
/* Adds the times of an operation that is done. */
void counters_step(struct counters *counters, const struct op *op);

#endif
