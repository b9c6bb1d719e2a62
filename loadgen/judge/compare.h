/* What two reports of --json have in common, or two series of them whose runs were made in turn:
 * the figures of their runs, whether their loads were the same, and what differs. The statistics
 * are those of ranks.h. */
#ifndef COMPARE_H
#define COMPARE_H

#include "ranks.h"

#include <jansson.h>

enum { COMPARE_GROUPS_MAX = 64, COMPARE_METRICS = 8, COMPARE_LOAD_TEXT_MAX = 400 };

/* Of a metric over the repeated runs of one workload under one guard. */
struct spread {
    double median, min, max;
    size_t n; /* 0: not in the report */
};
struct spread spread_of(double *samples, size_t n); /* sorts them */

struct compare_metric {
    const char *name;    /* for people */
    const char *flag;    /* of --fail-if */
    const char *path[2]; /* in a run of the JSON report; path[1] NULL: one step */
    const char *unit;    /* "us", "per s" */
    bool more_is_better;
};
extern const struct compare_metric compare_metrics[COMPARE_METRICS];
/* Its number by its flag; -1: none. */
int compare_metric_find(const char *flag);

struct compare_group {
    char workload[24], guard[32];
    const json_t *load; /* what its first run was asked to do; NULL: the report does not say */
    double *samples[COMPARE_METRICS]; /* in the order of compare_metrics; sorted */
    struct spread metrics[COMPARE_METRICS];
};

/* The groups of a report, in the order in which they first occur; they point into the JSON and are
 * to be freed. Returns how many, or -1 when the JSON is no report or there is no memory. */
int compare_groups(const json_t *report, struct compare_group groups[COMPARE_GROUPS_MAX]);
void compare_groups_free(struct compare_group *groups, int n);

/* Was every run of these groups asked for the same load? Else out says in what they differ:
 * "rate: 500 and 1000". runs: of the group's report. */
bool compare_same_load(const struct compare_group *a, const json_t *runs_a,
                       const struct compare_group *b, const json_t *runs_b,
                       char out[COMPARE_LOAD_TEXT_MAX]);

/* What the runs say of b against a. */
enum compare_finding {
    COMPARE_SAME, /* no difference that the test can tell from noise */
    COMPARE_BETTER,
    COMPARE_WORSE,
    COMPARE_TOO_FEW, /* so few runs that no difference could be told */
    COMPARE_FINDINGS
};
/* error: the chance of a finding where there is no difference, of this one comparison. */
enum compare_finding compare_test(const struct compare_group *a, const struct compare_group *b,
                                  int metric, double error);

#endif
