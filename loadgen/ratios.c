#include "ratios.h"
#include "options.h"
#include "text.h"
#include "wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double CHANCE_MAX = 0.05; /* of a finding where there is no difference */

const struct ratios_metric ratios_metrics[RATIOS_METRICS] = {
    {"requests/s", {"throughput_rps"}, "per s", true},
    {"accepted/s", {"accepted_per_s"}, "per s", true},
    {"p50", {"latency_us", "p50"}, "us", false},
    {"p90", {"latency_us", "p90"}, "us", false},
    {"p99", {"latency_us", "p99"}, "us", false},
    {"p99.9", {"latency_us", "p99_9"}, "us", false},
    {"max", {"latency_us", "max"}, "us", false},
    {"service p99", {"service_us", "p99"}, "us", false},
};

/* -- the figures ------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(double *samples, size_t n)
{
    if (n == 0)
        return (struct spread){0};
    qsort(samples, n, sizeof *samples, compare_doubles);
    double median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    return (struct spread){.median = median, .min = samples[0], .max = samples[n - 1], .n = n};
}

/* How often so many samples of one and the same thing have their ranges apart: of all ways to pick
 * n_a of them as A's, in two A has the lowest or the highest. */
static double apart_by_chance(size_t n_a, size_t n_b)
{
    double ways = 1;
    for (size_t i = 1; i <= n_a; i++)
        ways *= (double)(n_b + i) / (double)i;
    return 2 / ways;
}

enum ratios_finding ratios_compare(const struct spread *a, const struct spread *b,
                                   bool more_is_better)
{
    if (apart_by_chance(a->n, b->n) > CHANCE_MAX)
        return RATIOS_TOO_FEW;
    if (a->min <= b->max && b->min <= a->max)
        return RATIOS_SAME;
    return (b->median > a->median) == more_is_better ? RATIOS_BETTER : RATIOS_WORSE;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static bool is_of(const json_t *run, const struct ratios_group *group)
{
    return strcmp(text_of(run, "workload"), group->workload) == 0 &&
           strcmp(text_of(run, "guard"), group->guard) == 0;
}

static struct spread measure(const json_t *runs, const struct ratios_group *group,
                             const struct ratios_metric *metric)
{
    double samples[RATIOS_SAMPLES_MAX];
    size_t i, n = 0;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        const json_t *value = json_object_get(run, metric->path[0]);
        if (metric->path[1] != NULL)
            value = json_object_get(value, metric->path[1]);
        if (is_of(run, group) && json_is_number(value) && n < RATIOS_SAMPLES_MAX)
            samples[n++] = json_number_value(value);
    }
    return spread_of(samples, n);
}

int ratios_groups(const json_t *report, struct ratios_group groups[RATIOS_GROUPS_MAX])
{
    const json_t *runs = json_object_get(report, "runs"), *run;
    int n = 0;
    size_t i;
    if (!json_is_array(runs))
        return -1;
    json_array_foreach(runs, i, run)
    {
        bool known = false;
        for (int j = 0; j < n && !known; j++)
            known = is_of(run, &groups[j]);
        if (known || n == RATIOS_GROUPS_MAX)
            continue;
        struct ratios_group *group = &groups[n++];
        snprintf(group->workload, sizeof group->workload, "%s", text_of(run, "workload"));
        snprintf(group->guard, sizeof group->guard, "%s", text_of(run, "guard"));
        for (int metric = 0; metric < RATIOS_METRICS; metric++)
            group->metrics[metric] = measure(runs, group, &ratios_metrics[metric]);
    }
    return n;
}

/* -- the table --------------------------------------------------------------------------------- */

static char *value_text(const struct ratios_metric *metric, double value, char out[TEXT_MAX])
{
    return strcmp(metric->unit, "us") == 0 ? text_time_us(out, wide_clip_real(value))
                                           : text_rate(out, value);
}

static void print_spread(const struct ratios_metric *metric, const struct spread *spread)
{
    char median[TEXT_MAX], min[TEXT_MAX], max[TEXT_MAX], range[2 * TEXT_MAX + 8] = "";
    value_text(metric, spread->median, median);
    if (spread->n > 1)
        snprintf(range, sizeof range, "(%s to %s)", value_text(metric, spread->min, min),
                 value_text(metric, spread->max, max));
    printf("   %10s %-24s", median, range);
}

static void print_pair(const struct ratios_group *a, const struct ratios_group *b)
{
    static const char *const findings[] = {
        [RATIOS_SAME] = "within the noise",
        [RATIOS_BETTER] = "B is better",
        [RATIOS_WORSE] = "B is worse",
        [RATIOS_TOO_FEW] = "too few runs: 4 of each do",
    };
    char labels[2][80];
    const char *colon = a->guard[0] != '\0' ? ": " : ""; /* plain load has no guard */
    snprintf(labels[0], sizeof labels[0], "A%s%s", colon, a->guard);
    snprintf(labels[1], sizeof labels[1], "B%s%s", colon, b->guard);
    printf("\n%s\n  %-12s   %-35s   %-35s   %6s\n", a->workload, "", labels[0], labels[1], "B / A");
    for (int i = 0; i < RATIOS_METRICS; i++) {
        const struct ratios_metric *metric = &ratios_metrics[i];
        const struct spread *x = &a->metrics[i], *y = &b->metrics[i];
        if (x->n == 0 || y->n == 0)
            continue;
        printf("  %-12s", metric->name);
        print_spread(metric, x);
        print_spread(metric, y);
        if (x->median > 0)
            printf("   %6.2f", y->median / x->median);
        else
            printf("   %6s", "-");
        printf("   %s\n", findings[ratios_compare(x, y, metric->more_is_better)]);
    }
}

/* Alike ones belong together; where each report has one group only, these do, whatever they are. */
static int print_pairs(const struct ratios_group *a, int n_a, const struct ratios_group *b, int n_b)
{
    int pairs = 0;
    if (n_a == 1 && n_b == 1) {
        print_pair(a, b);
        return 1;
    }
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++)
            if (strcmp(a[i].workload, b[j].workload) == 0 && strcmp(a[i].guard, b[j].guard) == 0) {
                print_pair(&a[i], &b[j]);
                pairs++;
            }
    return pairs;
}

static bool was_interrupted(const json_t *runs)
{
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        if (json_is_true(json_object_get(run, "interrupted")))
            return true;
    }
    return false;
}

/* Adds the report's runs to those of its side. */
static bool add_report(const char *path, json_t *runs)
{
    json_error_t error;
    json_t *report = json_load_file(path, 0, &error);
    const char *wrong = report == NULL ? error.text : "no report that --json has written";
    json_t *more = json_object_get(report, "runs");
    bool added = json_array_size(more) > 0 && json_array_extend(runs, more) == 0;
    if (!added)
        fprintf(stderr, "loadgen compare: %s: %s\n", path, wrong);
    else if (was_interrupted(more))
        printf("INTERRUPTED: %s: not everything was tried\n", path);
    json_decref(report);
    return added;
}

/* Side 0 is A: every second report from the first on. */
static int load_side(const struct options *options, int side, struct ratios_group *groups)
{
    json_t *all = json_pack("{s:[]}", "runs");
    bool whole = all != NULL;
    for (int i = side; i < options->n_reports && whole; i += 2)
        whole = add_report(options->reports[i], json_object_get(all, "runs"));
    int n = whole ? ratios_groups(all, groups) : -1;
    json_decref(all);
    return n;
}

static void print_side(const struct options *options, int side)
{
    printf("%c: %s", 'A' + side, options->reports[side]);
    if (options->n_reports > 2)
        printf(" and %d more", options->n_reports / 2 - 1);
    putchar('\n');
}

int ratios_command(const struct options *options)
{
    static struct ratios_group a[RATIOS_GROUPS_MAX], b[RATIOS_GROUPS_MAX];
    int n_a = load_side(options, 0, a);
    int n_b = n_a > 0 ? load_side(options, 1, b) : 0;
    if (n_a <= 0 || n_b <= 0)
        return EXIT_FAILURE;
    print_side(options, 0);
    print_side(options, 1);
    printf("Medians, with the range over the runs; times from the intended start.\n");
    if (print_pairs(a, n_a, b, n_b) > 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "loadgen compare: the reports have no workload and guard in common\n");
    return EXIT_FAILURE;
}
