#include "compare.h"
#include "json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct compare_metric compare_metrics[COMPARE_METRICS] = {
    {"requests/s", "rate", {"throughput_rps"}, "per s", true, false},
    {"accepted/s", "accepted", {"accepted_per_s"}, "per s", true, false},
    {"p50", "p50", {"latency_us", "p50"}, "us", false, true},
    {"p90", "p90", {"latency_us", "p90"}, "us", false, true},
    {"p99", "p99", {"latency_us", "p99"}, "us", false, true},
    {"p99.9", "p99.9", {"latency_us", "p99_9"}, "us", false, true},
    {"max", "max", {"latency_us", "max"}, "us", false, true},
    {"service p99", "service-p99", {"service_us", "p99"}, "us", false, false},
};

int compare_metric_find(const char *flag)
{
    for (int i = 0; i < COMPARE_METRICS; i++)
        if (strcmp(compare_metrics[i].flag, flag) == 0)
            return i;
    return -1;
}

/* -- the figures ------------------------------------------------------------------------------- */

struct spread spread_of(double *samples, size_t n)
{
    if (n == 0)
        return (struct spread){0};
    qsort(samples, n, sizeof *samples, ranks_by_value);
    double median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    struct spread spread = {.median = median, .min = samples[0], .max = samples[n - 1], .n = n};
    for (size_t i = n; i > 0 && isinf(samples[i - 1]); i--)
        spread.never++;
    return spread;
}

/* Of all pairs of an x and a y: those whose y is larger, less those whose y is smaller. Its sign is
 * that of the Mann-Whitney statistic. */
static long more_pairs(const double *x, size_t n_x, const double *y, size_t n_y)
{
    long more = 0;
    for (size_t i = 0; i < n_x; i++)
        for (size_t j = 0; j < n_y; j++)
            more += (y[j] > x[i]) - (y[j] < x[i]);
    return more;
}

enum compare_finding compare_test(const struct compare_group *a, const struct compare_group *b,
                                  int metric, double error)
{
    const double *x = a->samples[metric], *y = b->samples[metric];
    size_t n_a = a->metrics[metric].n, n_b = b->metrics[metric].n;
    if (ranks_least_p(n_a, n_b) > error)
        return COMPARE_TOO_FEW;
    if (!(ranks_p(x, n_a, y, n_b) <= error))
        return COMPARE_SAME;
    bool more = more_pairs(x, n_a, y, n_b) > 0;
    return more == compare_metrics[metric].more_is_better ? COMPARE_BETTER : COMPARE_WORSE;
}

static bool is_of(const json_t *run, const struct compare_group *group)
{
    return strcmp(json_text_of(run, "workload"), group->workload) == 0 &&
           strcmp(json_text_of(run, "guard"), group->guard) == 0;
}

/* Were requests due and never sent, and counted as errors? */
static bool is_overloaded(const json_t *run)
{
    const json_t *load = json_object_get(run, "load");
    json_int_t dropped = json_integer_value(json_object_get(load, "dropped"));
    return dropped > 0 && json_integer_value(json_object_get(load, "errors")) >= dropped;
}

/* Collects the figure from the group's runs. A run without it (null: too few answers tell it) is
 * skipped, unless it was overloaded: then the figure lies beyond all answers. */
static bool measure(const json_t *runs, struct compare_group *group, int which)
{
    const struct compare_metric *metric = &compare_metrics[which];
    double *samples = malloc((json_array_size(runs) + 1) * sizeof *samples);
    size_t i, n = 0;
    const json_t *run;
    if (samples == NULL)
        return false;
    json_array_foreach(runs, i, run)
    {
        const json_t *value = json_object_get(run, metric->path[0]);
        if (metric->path[1] != NULL)
            value = json_object_get(value, metric->path[1]);
        if (is_of(run, group) && json_is_number(value))
            samples[n++] = json_number_value(value);
        else if (is_of(run, group) && metric->of_due && json_is_null(value) && is_overloaded(run))
            samples[n++] = HUGE_VAL;
    }
    group->samples[which] = samples;
    group->metrics[which] = spread_of(samples, n);
    return true;
}

void compare_groups_free(struct compare_group *groups, int n)
{
    for (int i = 0; i < n; i++)
        for (int metric = 0; metric < COMPARE_METRICS; metric++) {
            free(groups[i].samples[metric]);
            groups[i].samples[metric] = NULL;
        }
}

int compare_groups(const json_t *report, struct compare_group groups[COMPARE_GROUPS_MAX])
{
    const json_t *runs = json_object_get(report, "runs"), *run;
    int n = 0;
    bool whole = json_is_array(runs);
    size_t i;
    json_array_foreach(runs, i, run)
    {
        bool known = false;
        for (int j = 0; j < n && !known; j++)
            known = is_of(run, &groups[j]);
        if (known || n == COMPARE_GROUPS_MAX || !whole)
            continue;
        struct compare_group *group = &groups[n++];
        *group = (struct compare_group){.load = json_object_get(run, "asked")};
        snprintf(group->workload, sizeof group->workload, "%s", json_text_of(run, "workload"));
        snprintf(group->guard, sizeof group->guard, "%s", json_text_of(run, "guard"));
        for (int metric = 0; metric < COMPARE_METRICS && whole; metric++)
            whole = measure(runs, group, metric);
    }
    if (whole)
        return n;
    compare_groups_free(groups, n);
    return -1;
}

/* -- the load ---------------------------------------------------------------------------------- */

struct difference {
    char *out;
    size_t used;
};

static void note(struct difference *difference, const char *name, const json_t *a, const json_t *b)
{
    char *was = a != NULL ? json_dumps(a, JSON_ENCODE_ANY) : NULL;
    char *is = b != NULL ? json_dumps(b, JSON_ENCODE_ANY) : NULL;
    size_t room = COMPARE_LOAD_TEXT_MAX - difference->used;
    int n = snprintf(difference->out + difference->used, room, "%s%s: %s and %s",
                     difference->used > 0 ? ", " : "", name, was != NULL ? was : "unsaid",
                     is != NULL ? is : "unsaid");
    difference->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
    free(was);
    free(is);
}

/* Notes each member that differs between a and b. */
static bool same_members(const json_t *a, const json_t *b, char *out)
{
    struct difference difference = {.out = out};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)a, name, value)
    {
        if (!json_equal(value, json_object_get(b, name)))
            note(&difference, name, value, json_object_get(b, name));
    }
    json_object_foreach((json_t *)b, name, value)
    {
        if (json_object_get(a, name) == NULL)
            note(&difference, name, NULL, value);
    }
    return difference.used == 0;
}

/* Do all runs of the group have the load `first`? */
static bool all_same(const struct compare_group *of, const json_t *runs, const json_t *first,
                     char *out)
{
    size_t i;
    const json_t *run;
    bool same = true;
    json_array_foreach(runs, i, run)
    {
        if (same && is_of(run, of))
            same = same_members(first, json_object_get(run, "asked"), out);
    }
    return same;
}

bool compare_same_load(const struct compare_group *a, const json_t *runs_a,
                       const struct compare_group *b, const json_t *runs_b,
                       char out[COMPARE_LOAD_TEXT_MAX])
{
    out[0] = '\0';
    if (a->load == NULL || b->load == NULL) {
        snprintf(out, COMPARE_LOAD_TEXT_MAX,
                 "%s does not say what load it was: an older loadgen wrote it; run it again",
                 a->load == NULL ? "A" : "B");
        return false;
    }
    if (strcmp(a->workload, b->workload) != 0) {
        snprintf(out, COMPARE_LOAD_TEXT_MAX, "workload: %s and %s", a->workload, b->workload);
        return false;
    }
    return all_same(a, runs_a, a->load, out) && all_same(b, runs_b, a->load, out);
}
