/* How long locks were waited for and held, by the service's own histograms (GET /metrics). */
#ifndef LOCK_TIMES_H
#define LOCK_TIMES_H

#include "options.h"

enum { LOCK_TIMES_BOUNDS_MAX = 32 };

struct lock_times_histogram {
    uint64_t below[LOCK_TIMES_BOUNDS_MAX]; /* values up to the bound of the same index */
    uint64_t count;
    double sum_us;
};

struct lock_times {
    int n_bounds;
    double bounds_us[LOCK_TIMES_BOUNDS_MAX];
    struct lock_times_histogram wait, hold;
};

/* Adds up all instances. Returns 0, or -1 if one does not answer. */
int lock_times_read(const struct options *options, const char *guard, struct lock_times *ret);
/* Adds this guard's figures from a page of metrics. For lock_times_read() and tests. */
void lock_times_add(struct lock_times *times, const char *metrics, const char *guard);
/* Subtracts `before`, unless an instance has started again since. */
void lock_times_since(struct lock_times *now, const struct lock_times *before);

double lock_times_mean_us(const struct lock_times_histogram *histogram);
/* The bucket bound of this percentile. HUGE_VAL: beyond the last bound. 0: no values. */
double lock_times_percentile_us(const struct lock_times *times,
                                const struct lock_times_histogram *histogram, double percentile);

#endif
