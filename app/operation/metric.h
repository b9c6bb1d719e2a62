/* Histograms in Prometheus text format. Threads feed them without a lock.
 * https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifndef METRIC_H
#define METRIC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { METRIC_BOUNDS_MAX = 20 };

/* The buckets of a histogram: upper bounds in ascending order. per_unit: so many of the values are
 * one of the unit shown. */
struct metric_scale {
    double per_unit;
    size_t n;
    int64_t bounds[METRIC_BOUNDS_MAX];
};
extern const struct metric_scale metric_seconds; /* fed with microseconds */
extern const struct metric_scale metric_sizes;   /* fed with counts */

struct metric_histogram {
    const struct metric_scale *scale;
    atomic_uint_fast64_t counts[METRIC_BOUNDS_MAX + 1];
    atomic_int_fast64_t sum;
};

void metric_observe(struct metric_histogram *histogram, int64_t value);

/* One series; labels ("guard=\"none\"") may be "". */
void metric_print(const struct metric_histogram *histogram, const char *name, const char *labels,
                  FILE *out);
/* The HELP and TYPE lines above a name's first series. */
void metric_print_head(const char *name, const char *type, const char *help, FILE *out);

#endif
