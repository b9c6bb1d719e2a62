/*
 * loadgen compare A.json B.json [A2.json B2.json...]: ratios with their intervals, and which of
 * them are more than noise. All comparisons of one call share a false alarm rate of 5 % evenly
 * (Bonferroni's correction; O. J. Dunn, Multiple comparisons among means, JASA 56, 1961). Where
 * there is a ratio and no two runs are equal, its interval excludes 1 exactly when a difference
 * counts. Equal runs widen the interval: a difference may count although its ratio is 1. With
 * --fail-if only the named metrics are tested, each with a larger part of the 5 %.
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
    double error;                /* of each test */
    int found[COMPARE_FINDINGS]; /* number of comparisons by finding */
    int missing;                 /* tested, but not in both reports */
};

static bool is_tested(const struct options *options, int metric)
{
    bool named = options->n_fail_if == 0;
    for (int i = 0; i < options->n_fail_if && !named; i++)
        named = options->fail_if[i] == metric;
    return named;
}

/* -- the verdict ------------------------------------------------------------------------------- */

static bool has_both(const struct pair *pair, int metric)
{
    return pair->a->metrics[metric].n > 0 && pair->b->metrics[metric].n > 0;
}

/* Counts the findings of all comparisons, before anything is printed. */
static void find(struct comparison *comparison)
{
    for (int i = 0; i < comparison->n_pairs; i++)
        for (int metric = 0; metric < COMPARE_METRICS; metric++) {
            const struct pair *pair = &comparison->pairs[i];
            if (!is_tested(comparison->options, metric))
                continue;
            if (has_both(pair, metric))
                comparison->found[compare_test(pair->a, pair->b, metric, comparison->error)]++;
            else
                comparison->missing++;
        }
}

static void print_found(const struct comparison *comparison, enum compare_finding finding,
                        const char *text, const char **between)
{
    if (comparison->found[finding] == 0)
        return;
    printf("%s%d %s", *between, comparison->found[finding], text);
    *between = ", ";
}

static void print_verdict(const struct comparison *comparison)
{
    bool named = comparison->options->n_fail_if > 0;
    const int *found = comparison->found;
    char of[40];
    const char *between = of;
    if (named && found[COMPARE_WORSE] > 0)
        printf("WORSE: ");
    else if (found[COMPARE_TOO_FEW] > 0 || (named && comparison->missing > 0))
        printf("NOT DECIDED: ");
    snprintf(of, sizeof of, "of %d comparison%s ", comparison->n_tests,
             comparison->n_tests == 1 ? "" : "s");
    print_found(comparison, COMPARE_WORSE, "worse", &between);
    print_found(comparison, COMPARE_BETTER, "better", &between);
    print_found(comparison, COMPARE_SAME, "within the noise", &between);
    print_found(comparison, COMPARE_TOO_FEW, "with too few runs", &between);
    if (named && comparison->missing > 0)
        printf("%s%d not in the reports", comparison->n_tests > 0 ? ", " : "", comparison->missing);
    putchar('\n');
    if (found[COMPARE_TOO_FEW] > 0)
        printf("  too few runs: needs %zu of each\n", ranks_needed(comparison->error));
}

/* -- the table --------------------------------------------------------------------------------- */

static char *value_text(const struct compare_metric *metric, double value, char out[TEXT_MAX])
{
    if (!isinf(value))
        return strcmp(metric->unit, "us") == 0 ? text_time_us(out, wide_clip_real(value))
                                               : text_rate(out, value);
    snprintf(out, TEXT_MAX, "never");
    return out;
}

/* The median, and the largest distance of a run from it. */
static void print_spread(const struct compare_metric *metric, const struct spread *spread)
{
    char median[TEXT_MAX], around[TEXT_MAX] = "     ";
    double up = spread->max - spread->median, down = spread->median - spread->min;
    if (spread->n > 1 && spread->median > 0 && spread->never == 0)
        snprintf(around, sizeof around, "±%3.0f%%", 100 * (up > down ? up : down) / spread->median);
    printf(" %9s %s", value_text(metric, spread->median, median), around);
}

static void print_ratio(const struct pair *pair, int metric, double error)
{
    const struct compare_group *a = pair->a, *b = pair->b;
    struct ranks_ratio ratio;
    char interval[60] = "";
    if (!ranks_ratio(a->samples[metric], a->metrics[metric].n, b->samples[metric],
                     b->metrics[metric].n, error, &ratio)) {
        printf(" %6s %-12s", "-", "");
        return;
    }
    if (ratio.low > 0)
        snprintf(interval, sizeof interval, "%.2f to %.2f", ratio.low, ratio.high);
    printf(" %6.2f %-12s", ratio.ratio, interval);
}

/* Names the runs of which a metric was infinitely slow. */
static void print_never(const struct pair *pair)
{
    const struct compare_group *sides[] = {pair->a, pair->b};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < COMPARE_METRICS; i++) {
            const struct spread *spread = &sides[side]->metrics[i];
            if (spread->never > 0 && has_both(pair, i))
                printf(
                    "  %c: %zu of %zu runs have no %s: it falls among requests that were due and "
                    "never sent; they rank as the slowest\n",
                    'A' + side, spread->never, spread->n, compare_metrics[i].name);
        }
}

static const char *finding_text(const struct comparison *comparison, const struct pair *pair,
                                int metric)
{
    static const char *const texts[] = {
        [COMPARE_SAME] = "within noise",
        [COMPARE_BETTER] = "better",
        [COMPARE_WORSE] = "worse",
        [COMPARE_TOO_FEW] = "too few runs",
    };
    return !is_tested(comparison->options, metric)
               ? "not tested"
               : texts[compare_test(pair->a, pair->b, metric, comparison->error)];
}

static void print_pair(const struct comparison *comparison, const struct pair *pair)
{
    const char *guards[] = {pair->a->guard, pair->b->guard};
    printf("\n%s", pair->a->workload);
    if (strcmp(guards[0], guards[1]) != 0)
        printf(": A under %s, B under %s", guards[0], guards[1]);
    else if (guards[0][0] != '\0') /* plain load has no guard */
        printf(" under %s", guards[0]);
    printf("\n  %-11s %9s %15s %12s %s\n", "", "A", "B", "B / A", "interval");
    for (int i = 0; i < COMPARE_METRICS; i++) {
        if (!has_both(pair, i))
            continue;
        printf("  %-11s", compare_metrics[i].name);
        print_spread(&compare_metrics[i], &pair->a->metrics[i]);
        print_spread(&compare_metrics[i], &pair->b->metrics[i]);
        print_ratio(pair, i, comparison->error);
        printf(" %s\n", finding_text(comparison, pair, i));
    }
    print_never(pair);
}

/* -- the sides --------------------------------------------------------------------------------- */

/* Pairs groups of the same workload and guard. A single group on each side is a pair, too. */
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

/* Side 0 is A (reports 0, 2, ...), side 1 is B (1, 3, ...). */
static bool load_side(struct comparison *comparison, int which)
{
    const struct options *options = comparison->options;
    struct side *side = &comparison->sides[which];
    side->all = json_pack("{s:[]}", "runs");
    bool whole = side->all != NULL;
    for (int i = which; i < options->n_reports && whole; i += 2)
        whole = add_report(options->reports[i], json_object_get(side->all, "runs"));
    side->n = whole ? compare_groups(side->all, side->groups) : 0;
    if (side->n < 0)
        fprintf(stderr, "loadgen compare: out of memory\n");
    return side->n > 0;
}

static void print_side(const struct options *options, int side)
{
    printf("%c: %s", 'A' + side, options->reports[side]);
    if (options->n_reports > 2)
        printf(" and %d more", options->n_reports / 2 - 1);
    putchar('\n');
}

/* The exit status that --fail-if asks for. */
static int exit_status(const struct comparison *comparison)
{
    int unsaid = comparison->found[COMPARE_TOO_FEW] + comparison->missing;
    if (comparison->options->n_fail_if == 0)
        return EXIT_SUCCESS;
    if (unsaid > 0)
        fprintf(stderr,
                "loadgen compare: --fail-if: %d not decided: too few runs, or not in the "
                "reports\n",
                unsaid);
    return comparison->found[COMPARE_WORSE] > 0 ? EXIT_BROKEN
           : unsaid > 0                         ? EXIT_FAILURE
                                                : EXIT_SUCCESS;
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
    find(comparison);
    print_verdict(comparison);
    print_side(comparison->options, 0);
    print_side(comparison->options, 1);
    for (int i = 0; i < comparison->n_pairs; i++)
        print_pair(comparison, &comparison->pairs[i]);
    printf("\n  Medians over the runs, ± the furthest run; times from when a request was due.\n"
           "  A difference counts when the Mann-Whitney test finds it at %.2g %%: 5 %% for all\n"
           "  %d comparisons together. The interval is of the same level.\n",
           100 * comparison->error, comparison->n_tests);
    return exit_status(comparison);
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
