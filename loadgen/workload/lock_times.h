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

/* Adds up over all instances. 0, or -1 when one does not tell. */
int lock_times_read(const struct options *options, const char *guard, struct lock_times *ret);
/* Adds what a page of metrics says of this guard. For lock_times_read(), and tests. */
void lock_times_add(struct lock_times *times, const char *metrics, const char *guard);
/* What came since `before`; all of it when an instance has started anew meanwhile. */
void lock_times_since(struct lock_times *now, const struct lock_times *before);

double lock_times_mean_us(const struct lock_times_histogram *histogram);
/* The bound below which that share lies; HUGE_VAL beyond the last one, 0 without values. */
double lock_times_percentile_us(const struct lock_times *times,
                                const struct lock_times_histogram *histogram, double percentile);

#endif
