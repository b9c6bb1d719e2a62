/*
 * A log-linear latency histogram: one flat array, no allocation after hist_init(). Values from 0
 * to HIST_VALUE_MAX are kept within 0.1 % (values below 2048 exactly). Larger values are counted
 * in the last bucket and as `clipped`; max stays exact. After HdrHistogram by Gil Tene.
 * Threading: one writer per histogram. Add private ones with hist_add() after joining.
 */
#ifndef HIST_H
#define HIST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HIST_SUB_BITS = 11, /* 2048 linear steps per power of two: half of them used above the first */
    HIST_MAX_BITS = 37  /* values up to 2^37 us: 38 hours */
};
#define HIST_VALUE_MAX ((INT64_C(1) << HIST_MAX_BITS) - 1)
#define HIST_BUCKETS   ((HIST_MAX_BITS - HIST_SUB_BITS + 2) * (1 << (HIST_SUB_BITS - 1)))

struct hist {
    uint64_t count, clipped;
    int64_t min, max;
    double sum;
    uint32_t *buckets; /* HIST_BUCKETS of them */
};

int hist_init(struct hist *hist); /* 0, or -1 without memory */
void hist_free(struct hist *hist);
void hist_reset(struct hist *hist);
void hist_record(struct hist *hist, int64_t value); /* negative values count as 0 */
void hist_add(struct hist *into, const struct hist *from);
/* The smallest recorded value v (to bucket precision: the highest value of v's bucket, at most max)
 * such that at least `percentile` percent (0..100) of all are <= v. 0 when empty. */
int64_t hist_percentile(const struct hist *hist, double percentile);
/* Are there enough values for this percentile? The largest of n values lies above the true
 * percentile p with probability 1 - p^n. Required are 95 %: 299 values for p99, 2,995 for p99.9.
 * Source: W. J. Conover, Practical Nonparametric Statistics (3rd ed., 1999), confidence intervals
 * of quantiles from order statistics. */
bool hist_tells(const struct hist *hist, double percentile);
double hist_mean(const struct hist *hist);

#endif
