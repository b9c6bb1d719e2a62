#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SUB_BITS = 2 }; /* bins per power of two, as a power of two */

/* Values below 2^SUB_BITS have a bin each. Larger ones go by their top bits, as in hist.c. */
static size_t bin_of(int64_t us)
{
    uint64_t value = us < 0 ? 0 : (uint64_t)us;
    if (value < 1 << SUB_BITS)
        return (size_t)value;
    int shift = 63 - __builtin_clzll(value) - SUB_BITS;
    size_t bin = ((size_t)shift << SUB_BITS) + (size_t)(value >> shift);
    return bin < SERIES_BINS ? bin : SERIES_BINS - 1;
}

static int64_t highest_of(size_t bin)
{
    if (bin < 1 << SUB_BITS)
        return (int64_t)bin;
    size_t shift = (bin >> SUB_BITS) - 1;
    return (int64_t)(((bin - (shift << SUB_BITS) + 1) << shift) - 1);
}

int series_init(struct series *series)
{
    struct series_point *points = calloc(SERIES_POINTS_MAX, sizeof *points);
    if (points == NULL)
        return -1;
    *series = (struct series){.interval_us = SERIES_INTERVAL_US, .points = points};
    return 0;
}

void series_free(struct series *series)
{
    free(series->points);
    *series = (struct series){0};
}

static void add_point(struct series_point *into, const struct series_point *from)
{
    into->sent += from->sent;
    into->answered += from->answered;
    into->accepted += from->accepted;
    into->errors += from->errors;
    if (from->max_us > into->max_us)
        into->max_us = from->max_us;
    for (size_t i = 0; i < SERIES_BINS; i++)
        into->latency[i] += from->latency[i];
}

/* Merges each two neighbours. */
static void coarsen(struct series *series)
{
    for (size_t i = 0; i < series->n; i++) {
        struct series_point *into = &series->points[i / 2];
        if (i % 2 == 1)
            add_point(into, &series->points[i]);
        else if (i > 0)
            *into = series->points[i];
    }
    size_t n = (series->n + 1) / 2;
    memset(&series->points[n], 0, (series->n - n) * sizeof *series->points);
    series->n = n;
    series->interval_us *= 2;
}

struct series_point *series_at(struct series *series, int64_t us)
{
    if (us < 0)
        us = 0;
    while (us / series->interval_us >= SERIES_POINTS_MAX)
        coarsen(series);
    size_t i = (size_t)(us / series->interval_us);
    if (i >= series->n)
        series->n = i + 1;
    return &series->points[i];
}

void series_latency(struct series_point *point, int64_t latency_us)
{
    point->latency[bin_of(latency_us)]++;
    if (latency_us > point->max_us)
        point->max_us = latency_us;
}

void series_add(struct series *into, struct series *from)
{
    while (into->interval_us < from->interval_us)
        coarsen(into);
    while (from->interval_us < into->interval_us)
        coarsen(from);
    for (size_t i = 0; i < from->n; i++)
        add_point(&into->points[i], &from->points[i]);
    if (from->n > into->n)
        into->n = from->n;
}

int64_t series_percentile(const struct series_point *point, double percentile)
{
    uint64_t count = 0, seen = 0;
    for (size_t i = 0; i < SERIES_BINS; i++)
        count += point->latency[i];
    if (count == 0)
        return 0;
    double wanted = ceil(percentile / 100 * (double)count);
    size_t bin = 0;
    for (; bin < SERIES_BINS - 1; bin++) {
        seen += point->latency[bin];
        if ((double)seen >= wanted)
            break;
    }
    int64_t highest = highest_of(bin);
    return highest < point->max_us ? highest : point->max_us;
}
