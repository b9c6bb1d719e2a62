/*
 * What happened over time: counts and latencies in intervals of equal length, from the start of a
 * run. Bounded: when more than SERIES_POINTS_MAX intervals would be needed, each two neighbours
 * become one, so that a run of any length has a curve, of 120 to 240 points once it is long enough.
 * Threading: one writer per series; add private ones with series_add() after joining.
 */
#ifndef SERIES_H
#define SERIES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SERIES_POINTS_MAX = 240,
    SERIES_INTERVAL_US = 50000, /* at the beginning; doubles */
    SERIES_BINS = 128           /* four per power of two of microseconds */
};

struct series_point {
    uint64_t sent, answered;
    uint64_t accepted; /* answered with 2xx */
    uint64_t errors;   /* sendings neither answered nor abandoned on purpose */
    int64_t max_us;    /* longest latency of a request that ended here */
    uint32_t latency[SERIES_BINS];
};

struct series {
    int64_t interval_us;
    size_t n;                    /* points in use: up to the last one in which something happened */
    struct series_point *points; /* SERIES_POINTS_MAX of them */
};

int series_init(struct series *series); /* 0, or -1 without memory */
void series_free(struct series *series);

/* The point of an instant, counted from the start of the run; valid until the next call. */
struct series_point *series_at(struct series *series, int64_t us);
void series_latency(struct series_point *point, int64_t latency_us);
void series_add(struct series *into, struct series *from); /* from may be made coarser */

/* An upper bound, by at most a quarter, of that share of the point's latencies; 0 when it has none.
 */
int64_t series_percentile(const struct series_point *point, double percentile);

#endif
