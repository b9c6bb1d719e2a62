/*
 * Counts and latencies over time, in intervals of equal length from the start of a run. When more
 * than SERIES_POINTS_MAX intervals are needed, each two neighbours are merged. A long run has 120
 * to 240 points.
 * Threading: one writer per series. Add private ones with series_add() after joining.
 */
#ifndef SERIES_H
#define SERIES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SERIES_POINTS_MAX = 240,
    SERIES_INTERVAL_US = 50000, /* at the beginning; doubles at each merge */
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
    size_t n;                    /* points in use, up to the last one touched */
    struct series_point *points; /* SERIES_POINTS_MAX of them */
};

int series_init(struct series *series); /* 0, or -1 without memory */
void series_free(struct series *series);

/* The point of an instant, in us from the start of the run; valid until the next call. */
struct series_point *series_at(struct series *series, int64_t us);
void series_latency(struct series_point *point, int64_t latency_us);
void series_add(struct series *into, struct series *from); /* may merge intervals of from */

/* An upper bound of this percentile of the point's latencies, at most a quarter too high. 0
 * without latencies. */
int64_t series_percentile(const struct series_point *point, double percentile);

#endif
