/*
 * loadgen compare A.json B.json [A2.json B2.json...]: ratios with their intervals, and what of them
 * is more than noise. All comparisons of one call share one chance of a false alarm, 5 %, evenly
 * (Bonferroni's correction; O. J. Dunn, Multiple comparisons among means, JASA 56, 1961): so an
 * interval leaves out 1 just when a difference counts. Whoever names metrics with --fail-if has
 * only these tested, at a larger share each.
 */
#include "compare_command.h"
#include "compare.h"
#include "exit_status.h"
#include "text.h"
#include "wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = COMPARE_GROUPS_MAX };
static const double FALSE_ALARM_MAX = 0.05; /* of all comparisons together */

struct side {
    json_t *all; /* {"runs": [...]} of its reports */
    struct compare_group groups[COMPARE_GROUPS_MAX];
    int n;
};

struct pair {
    const struct compare_group *a, *b;
};

struct comparison {
    const struct options *options;
    struct side sides[2];
    struct pair pairs[PAIRS_MAX];
    int n_pairs;
    int n_tests;
    double error;      /* of each test */
    int worse, unsaid; /* of what --fail-if names */
};

static bool is_tested(const struct options *options, int metric)
{
    bool named = options->n_fail_if == 0;
    for (int i = 0; i < options->n_fail_if && !named; i++)
        named = options->fail_if[i] == metric;
    return named;
}

/* -- the table --------------------------------------------------------------------------------- */

static char *value_text(const struct compare_metric *metric, double value, char out[TEXT_MAX])
{
    return strcmp(metric->unit, "us") == 0 ? text_time_us(out, wide_clip_real(value))
                                           : text_rate(out, value);
}

static void print_spread(const struct compare_metric *metric, const struct spread *spread)
{
    char median[TEXT_MAX], min[TEXT_MAX], max[TEXT_MAX], range[2 * TEXT_MAX + 8] = "";
    value_text(metric, spread->median, median);
    if (spread->n > 1)
        snprintf(range, sizeof range, "(%s to %s)", value_text(metric, spread->min, min),
                 value_text(metric, spread->max, max));
    printf("   %10s %-24s", median, range);
}

static void print_ratio(const struct compare_group *a, const struct compare_group *b, int metric,
                        double error)
{
    struct ranks_ratio ratio;
    char interval[60] = "";
    if (!ranks_ratio(a->samples[metric], a->metrics[metric].n, b->samples[metric],
                     b->metrics[metric].n, error, &ratio)) {
        printf("   %6s %-18s", "-", "");
        return;
    }
    if (ratio.low > 0)
        snprintf(interval, sizeof interval, "(%.2f to %.2f)", ratio.low, ratio.high);
    printf("   %6.2f %-18s", ratio.ratio, interval);
}

static void print_finding(struct comparison *comparison, const struct pair *pair, int metric)
{
    const struct options *options = comparison->options;
    static const char *const texts[] = {
        [COMPARE_SAME] = "within the noise",
        [COMPARE_BETTER] = "B is better",
        [COMPARE_WORSE] = "B is worse",
    };
    if (!is_tested(options, metric)) {
        printf("   not tested\n");
        return;
    }
    enum compare_finding finding = compare_metric(pair->a, pair->b, metric, comparison->error);
    comparison->worse += options->n_fail_if > 0 && finding == COMPARE_WORSE;
    comparison->unsaid += options->n_fail_if > 0 && finding == COMPARE_TOO_FEW;
    if (finding == COMPARE_TOO_FEW)
        printf("   too few runs: needs %zu of each\n", ranks_needed(comparison->error));
    else
        printf("   %s\n", texts[finding]);
}

static bool has_both(const struct pair *pair, int metric)
{
    return pair->a->metrics[metric].n > 0 && pair->b->metrics[metric].n > 0;
}

static void print_pair(struct comparison *comparison, const struct pair *pair)
{
    char labels[2][80];
    const struct compare_group *a = pair->a, *b = pair->b;
    const char *colon = a->guard[0] != '\0' ? ": " : ""; /* plain load has no guard */
    snprintf(labels[0], sizeof labels[0], "A%s%s", colon, a->guard);
    snprintf(labels[1], sizeof labels[1], "B%s%s", colon, b->guard);
    printf("\n%s\n  %-12s   %-35s   %-35s   %6s\n", a->workload, "", labels[0], labels[1], "B / A");
    for (int i = 0; i < COMPARE_METRICS; i++) {
        if (!has_both(pair, i)) {
            comparison->unsaid +=
                comparison->options->n_fail_if > 0 && is_tested(comparison->options, i);
            continue;
        }
        printf("  %-12s", compare_metrics[i].name);
        print_spread(&compare_metrics[i], &a->metrics[i]);
        print_spread(&compare_metrics[i], &b->metrics[i]);
        print_ratio(a, b, i, comparison->error);
        print_finding(comparison, pair, i);
    }
}

/* -- what is compared -------------------------------------------------------------------------- */

/* Alike ones belong together; where each report has one group only, these do, whatever their
 * guards. */
static void find_pairs(struct comparison *comparison)
{
    struct side *a = &comparison->sides[0], *b = &comparison->sides[1];
    bool single = a->n == 1 && b->n == 1;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const struct compare_group *x = &a->groups[i], *y = &b->groups[j];
            bool alike = strcmp(x->workload, y->workload) == 0 && strcmp(x->guard, y->guard) == 0;
            if ((alike || single) && comparison->n_pairs < PAIRS_MAX)
                comparison->pairs[comparison->n_pairs++] = (struct pair){x, y};
        }
    for (int i = 0; i < comparison->n_pairs; i++)
        for (int metric = 0; metric < COMPARE_METRICS; metric++)
            comparison->n_tests +=
                has_both(&comparison->pairs[i], metric) && is_tested(comparison->options, metric);
    int tests = comparison->n_tests > 0 ? comparison->n_tests : 1;
    comparison->error = FALSE_ALARM_MAX / tests;
}

static bool loads_are_the_same(const struct comparison *comparison)
{
    char difference[COMPARE_LOAD_TEXT_MAX];
    for (int i = 0; i < comparison->n_pairs; i++) {
        const struct pair *pair = &comparison->pairs[i];
        if (compare_same_load(pair->a, json_object_get(comparison->sides[0].all, "runs"), pair->b,
                              json_object_get(comparison->sides[1].all, "runs"), difference))
            continue;
        fprintf(stderr, "loadgen compare: %s %s: runs of different load are not compared: %s\n",
                pair->a->workload, pair->a->guard, difference);
        return false;
    }
    return true;
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
static bool load_side(struct comparison *comparison, int which)
{
    const struct options *options = comparison->options;
    struct side *side = &comparison->sides[which];
    side->all = json_pack("{s:[]}", "runs");
    bool whole = side->all != NULL;
    for (int i = which; i < options->n_reports && whole; i += 2)
        whole = add_report(options->reports[i], json_object_get(side->all, "runs"));
    side->n = whole ? compare_groups(side->all, side->groups) : 0;
    return side->n > 0;
}

static void print_side(const struct options *options, int side)
{
    printf("%c: %s", 'A' + side, options->reports[side]);
    if (options->n_reports > 2)
        printf(" and %d more", options->n_reports / 2 - 1);
    putchar('\n');
}

static int compare_sides(struct comparison *comparison)
{
    find_pairs(comparison);
    if (comparison->n_pairs == 0) {
        fprintf(stderr, "loadgen compare: the reports have no workload and guard in common\n");
        return EXIT_FAILURE;
    }
    if (!loads_are_the_same(comparison))
        return EXIT_FAILURE;
    print_side(comparison->options, 0);
    print_side(comparison->options, 1);
    printf(
        "Medians with the range over the runs; the ratio with its interval; times from the "
        "intended start.\nA difference counts when the Mann-Whitney test finds it at %.2g %%: 5 %% "
        "for all %d comparisons together.\n",
        100 * comparison->error, comparison->n_tests);
    for (int i = 0; i < comparison->n_pairs; i++)
        print_pair(comparison, &comparison->pairs[i]);
    if (comparison->worse > 0)
        printf("\nWORSE: %d of what --fail-if names\n", comparison->worse);
    if (comparison->unsaid > 0)
        fprintf(stderr,
                "loadgen compare: --fail-if: %d not decided: too few runs, or not in the "
                "reports\n",
                comparison->unsaid);
    return comparison->worse > 0    ? EXIT_BROKEN
           : comparison->unsaid > 0 ? EXIT_FAILURE
                                    : EXIT_SUCCESS;
}

int compare_command(const struct options *options)
{
    struct comparison *comparison = calloc(1, sizeof *comparison);
    int status = EXIT_FAILURE;
    if (comparison == NULL) {
        fprintf(stderr, "loadgen compare: not enough memory\n");
        return status;
    }
    comparison->options = options;
    if (load_side(comparison, 0) && load_side(comparison, 1))
        status = compare_sides(comparison);
    for (int i = 0; i < 2; i++) {
        compare_groups_free(comparison->sides[i].groups, comparison->sides[i].n);
        json_decref(comparison->sides[i].all);
    }
    free(comparison);
    return status;
}
