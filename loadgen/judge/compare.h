/* Compares two reports of --json, or two series of reports whose runs took turns: their figures,
 * their loads and the differences. The statistics are in ranks.h. */
#ifndef COMPARE_H
#define COMPARE_H

#include "ranks.h"

#include <jansson.h>

enum { COMPARE_GROUPS_MAX = 64, COMPARE_METRICS = 8, COMPARE_LOAD_TEXT_MAX = 400 };

/* One metric over the repeated runs of one workload under one guard. */
struct spread {
    double median, min, max; /* HUGE_VAL: infinitely slow */
    size_t n;                /* 0: not in the report */
    size_t never;            /* of these: runs whose figure is infinitely slow */
};
struct spread spread_of(double *samples, size_t n); /* sorts them */

struct compare_metric {
    const char *name;    /* for people */
    const char *flag;    /* of --fail-if */
    const char *path[2]; /* in a run of the JSON report; path[1] NULL: one step */
    const char *unit;    /* "us", "per s" */
    bool more_is_better;
    bool of_due; /* over all that was due: null in an overloaded run is infinitely slow */
};
extern const struct compare_metric compare_metrics[COMPARE_METRICS];
/* The index of the metric with this flag; -1: none. */
int compare_metric_find(const char *flag);

struct compare_group {
    char workload[24], guard[32];
    const json_t *load;               /* the load of its first run; NULL: the report does not say */
    double *samples[COMPARE_METRICS]; /* in the order of compare_metrics; sorted */
    struct spread metrics[COMPARE_METRICS];
};

/* The groups of a report, in order of first occurrence. They point into the JSON. Free them with
 * compare_groups_free(). Returns how many, or -1: not a report, or no memory. */
int compare_groups(const json_t *report, struct compare_group groups[COMPARE_GROUPS_MAX]);
void compare_groups_free(struct compare_group *groups, int n);

/* Did all runs of both groups have the same load? If not, out names the differences: "rate: 500
 * and 1000". runs_a and runs_b: the runs of each group's report. */
bool compare_same_load(const struct compare_group *a, const json_t *runs_a,
                       const struct compare_group *b, const json_t *runs_b,
                       char out[COMPARE_LOAD_TEXT_MAX]);

/* The result of comparing b with a. */
enum compare_finding {
    COMPARE_SAME, /* no difference that the test can tell from noise */
    COMPARE_BETTER,
    COMPARE_WORSE,
    COMPARE_TOO_FEW, /* too few runs to show any difference */
    COMPARE_FINDINGS
};
/* error: the chance that this one comparison finds a difference where there is none. The direction
 * is that of most pairs of a run of a and one of b, equal ones left out: also where so many are
 * equal that the ratio is 1, and where a run is infinitely slow. */
enum compare_finding compare_test(const struct compare_group *a, const struct compare_group *b,
                                  int metric, double error);

#endif
