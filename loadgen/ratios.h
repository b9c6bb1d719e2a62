/* loadgen compare A.json B.json [A2.json B2.json...]: what two reports have in common, or two
 * series of them whose runs were made in turn, as ratios with their noise. */
#ifndef RATIOS_H
#define RATIOS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { RATIOS_GROUPS_MAX = 64, RATIOS_SAMPLES_MAX = 1024, RATIOS_METRICS = 8 };

/* A metric over the repeated runs of one workload under one guard. */
struct spread {
    double median, min, max;
    size_t n; /* 0: not in the report */
};

struct ratios_group {
    char workload[24], guard[32];
    struct spread metrics[RATIOS_METRICS]; /* in the order of ratios_metrics */
};

struct ratios_metric {
    const char *name;    /* for people */
    const char *path[2]; /* in a run of the JSON report; path[1] NULL: one step */
    const char *unit;    /* "us", "per s" */
    bool more_is_better;
};
extern const struct ratios_metric ratios_metrics[RATIOS_METRICS];

struct spread spread_of(double *samples, size_t n); /* sorts them */

/* The groups of a report, in the order in which they first occur. Returns how many, or -1 when the
 * JSON is no report. */
int ratios_groups(const json_t *report, struct ratios_group groups[RATIOS_GROUPS_MAX]);

/* What the ranges say of b against a. */
enum ratios_finding { RATIOS_SAME, RATIOS_BETTER, RATIOS_WORSE, RATIOS_TOO_FEW };
/* RATIOS_SAME: the ranges overlap; RATIOS_TOO_FEW: so few runs have their ranges apart too often
 * where there is no difference at all, with 2 and 2 once in three times. */
enum ratios_finding ratios_compare(const struct spread *a, const struct spread *b,
                                   bool more_is_better);

/* Returns the program's exit status. */
struct options;
int ratios_command(const struct options *options);

#endif
