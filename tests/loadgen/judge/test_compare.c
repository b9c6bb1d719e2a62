/* Two reports side by side: medians, ranges, and when a difference counts. */
#include "compare_command.h"
#include "compare.h"
#include "tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_THAT(median_and_range_whatever_the_order)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    struct spread spread = spread_of(odd, 3);
    assert_true(spread.median == 3 && spread.min == 1 && spread.max == 5 && spread.n == 3);
    assert_true(spread_of(even, 4).median == 2.5);
    assert_true(spread_of(one, 1).median == 7);
    assert_int_equal(spread_of(NULL, 0).n, 0);
}

static json_t *run(const char *workload, const char *guard, double rate, int p99)
{
    return json_pack("{s:s, s:s, s:{s:s, s:i}, s:f, s:{s:i}}", "workload", workload, "guard", guard,
                     "asked", "mode", "burst", "connections", 64, "throughput_rps", rate,
                     "latency_us", "p99", p99);
}

/* n runs of which the i-th has a rate of first + i * step. */
static json_t *report(int n, double first, double step)
{
    json_t *runs = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(runs, run("sale", "none", first + i * step, 100));
    return json_pack("{s:o}", "runs", runs);
}

TEST_THAT(runs_of_one_workload_and_guard_are_one_group)
{
    static struct compare_group groups[COMPARE_GROUPS_MAX];
    json_t *json = json_pack("{s:[o,o,o,o]}", "runs", run("sale", "none", 100, 9),
                             run("sale", "mutex", 50, 20), run("sale", "none", 300, 5),
                             run("accounts", "none", 10, 1));
    assert_int_equal(compare_groups(json, groups), 3);
    assert_string_equal(groups[0].workload, "sale");
    assert_string_equal(groups[0].guard, "none");
    const struct spread *rate = &groups[0].metrics[0], *p50 = &groups[0].metrics[2],
                        *p99 = &groups[0].metrics[4];
    assert_string_equal(compare_metrics[4].name, "p99");
    assert_true(rate->n == 2 && rate->median == 200 && rate->max == 300);
    assert_true(groups[0].samples[0][0] == 100 && groups[0].samples[0][1] == 300);
    assert_true(p99->n == 2 && p99->median == 7);
    assert_int_equal(p50->n, 0); /* not in these runs */
    assert_string_equal(groups[2].workload, "accounts");
    compare_groups_free(groups, 3);
    json_decref(json);
    json = json_object();
    assert_int_equal(compare_groups(json, groups), -1);
    json_decref(json);
}

static enum compare_finding finding(int n_a, double a, int n_b, double b, double error)
{
    static struct compare_group groups[2][COMPARE_GROUPS_MAX];
    json_t *reports[] = {report(n_a, a, 1), report(n_b, b, 1)};
    assert_int_equal(compare_groups(reports[0], groups[0]), 1);
    assert_int_equal(compare_groups(reports[1], groups[1]), 1);
    enum compare_finding found = compare_test(&groups[0][0], &groups[1][0], 0, error);
    for (int i = 0; i < 2; i++) {
        compare_groups_free(groups[i], 1);
        json_decref(reports[i]);
    }
    return found;
}

TEST_THAT(a_difference_has_a_direction_and_needs_runs)
{
    assert_int_equal(finding(6, 100, 6, 200, 0.05), COMPARE_BETTER); /* a rate */
    assert_int_equal(finding(6, 200, 6, 100, 0.05), COMPARE_WORSE);
    assert_int_equal(finding(6, 100, 6, 100, 0.05), COMPARE_SAME);
    assert_int_equal(finding(6, 100, 6, 104, 0.05), COMPARE_BETTER); /* though ranges touch */
    assert_int_equal(finding(6, 100, 6, 102, 0.05), COMPARE_SAME);
    assert_int_equal(finding(3, 100, 3, 200, 0.05), COMPARE_TOO_FEW);
    assert_int_equal(finding(4, 100, 4, 200, 0.05), COMPARE_BETTER);
    assert_int_equal(finding(5, 100, 5, 200, 0.05 / 8), COMPARE_TOO_FEW);
    assert_int_equal(finding(6, 100, 6, 200, 0.05 / 8), COMPARE_BETTER);
    assert_int_equal(finding(1, 100, 39, 200, 0.05), COMPARE_BETTER);
    /* No ratio to a value of 0: the medians tell the direction. */
    assert_int_equal(finding(6, 0, 6, 200, 0.05), COMPARE_BETTER);
    assert_int_equal(finding(6, 200, 6, 0, 0.05), COMPARE_WORSE);
}

enum { P50 = 2, P99 = 4, NEVER = -1 };

/* A group of n runs: p50 is `value` in the first `first` of them, and `other` in the rest. NEVER:
 * the run was overloaded, and p50 falls among what was never sent. */
static json_t *report_of_p50(int n, int first, int value, int other)
{
    json_t *runs = json_array();
    for (int i = 0; i < n; i++) {
        json_t *one = run("sale", "none", 100, 100), *latency = json_object_get(one, "latency_us");
        int p50 = i < first ? value : other;
        json_object_set_new(latency, "p50", p50 == NEVER ? json_null() : json_integer(p50));
        json_object_set_new(
            one, "load", json_pack("{s:i, s:i}", "dropped", p50 == NEVER ? 900 : 0, "errors", 900));
        json_array_append_new(runs, one);
    }
    return json_pack("{s:o}", "runs", runs);
}

static enum compare_finding finding_of_p50(json_t *a, json_t *b)
{
    static struct compare_group groups[2][COMPARE_GROUPS_MAX];
    assert_int_equal(compare_groups(a, groups[0]), 1);
    assert_int_equal(compare_groups(b, groups[1]), 1);
    enum compare_finding found = compare_test(&groups[0][0], &groups[1][0], P50, 0.05);
    compare_groups_free(groups[0], 1);
    compare_groups_free(groups[1], 1);
    json_decref(a);
    json_decref(b);
    return found;
}

/* More than half of all pairs are equal, and so the ratio is 1: p is 0.037. */
TEST_THAT(equal_runs_do_not_hide_the_direction)
{
    const int lower = 62, higher = 63;
    assert_int_equal(
        finding_of_p50(report_of_p50(12, 12, lower, 0), report_of_p50(12, 7, lower, higher)),
        COMPARE_WORSE);
    assert_int_equal(
        finding_of_p50(report_of_p50(12, 7, lower, higher), report_of_p50(12, 12, lower, 0)),
        COMPARE_BETTER);
    assert_int_equal(
        finding_of_p50(report_of_p50(12, 7, lower, higher), report_of_p50(12, 7, lower, higher)),
        COMPARE_SAME);
}

/* Half of the runs of one side were overloaded: the other half does not speak for them. */
TEST_THAT(percentile_among_dropped_requests_is_the_slowest)
{
    static struct compare_group groups[COMPARE_GROUPS_MAX];
    assert_int_equal(finding_of_p50(report_of_p50(10, 10, 62, 0), report_of_p50(10, 5, 62, NEVER)),
                     COMPARE_WORSE);
    assert_int_equal(finding_of_p50(report_of_p50(10, 5, 62, NEVER), report_of_p50(10, 10, 62, 0)),
                     COMPARE_BETTER);
    assert_int_equal(finding_of_p50(report_of_p50(10, 0, 0, NEVER), report_of_p50(10, 0, 0, NEVER)),
                     COMPARE_SAME);
    json_t *json = report_of_p50(10, 5, 62, NEVER),
           *one = json_array_get(json_object_get(json, "runs"), 9);
    json_object_set_new(json_object_get(one, "load"), "errors",
                        json_integer(0)); /* --allow-dropped */
    json_object_set_new(json_object_get(one, "latency_us"), "p99", json_null());
    assert_int_equal(compare_groups(json, groups), 1);
    const struct spread *p50 = &groups[0].metrics[P50], *p99 = &groups[0].metrics[P99];
    assert_int_equal(p50->n, 9);
    assert_int_equal(p50->never, 4);
    assert_true(p50->min == 62 && isinf(p50->max));
    assert_int_equal(p99->n, 9);
    assert_int_equal(p99->never, 0);
    compare_groups_free(groups, 1);
    json_decref(json);
}

static bool same_load(json_t *a, json_t *b, char *out)
{
    static struct compare_group groups[2][COMPARE_GROUPS_MAX];
    assert_true(compare_groups(a, groups[0]) > 0 && compare_groups(b, groups[1]) > 0);
    bool same = compare_same_load(&groups[0][0], json_object_get(a, "runs"), &groups[1][0],
                                  json_object_get(b, "runs"), out);
    compare_groups_free(groups[0], 1);
    compare_groups_free(groups[1], 1);
    return same;
}

static json_t *asked_of(json_t *of, size_t run_number)
{
    return json_object_get(json_array_get(json_object_get(of, "runs"), run_number), "asked");
}

TEST_THAT(runs_of_another_load_are_told_apart_by_what_differs)
{
    char text[COMPARE_LOAD_TEXT_MAX];
    json_t *a = report(2, 100, 1), *b = report(3, 100, 1);
    assert_true(same_load(a, b, text));
    json_object_set_new(asked_of(b, 0), "mode", json_string("rate"));
    json_object_set_new(asked_of(b, 0), "rate", json_integer(500));
    assert_false(same_load(a, b, text));
    assert_string_equal(text, "mode: \"burst\" and \"rate\", rate: unsaid and 500");
    json_object_set_new(asked_of(b, 0), "mode", json_string("burst"));
    json_object_del(asked_of(b, 0), "rate");
    assert_true(same_load(a, b, text));
    json_object_set_new(asked_of(b, 2), "connections", json_integer(8)); /* one of three */
    assert_false(same_load(a, b, text));
    assert_string_equal(text, "connections: 64 and 8");
    json_object_del(json_array_get(json_object_get(a, "runs"), 0), "asked");
    assert_false(same_load(a, b, text));
    assert_non_null(strstr(text, "A does not say what load it was"));
    assert_false(same_load(b, a, text));
    assert_non_null(strstr(text, "B does not say what load it was"));
    json_decref(a);
    a = json_pack("{s:[o]}", "runs", run("accounts", "none", 1, 1));
    assert_false(same_load(a, b, text));
    assert_string_equal(text, "workload: accounts and sale");
    json_decref(a);
    json_decref(b);
}

/* So many differences that they do not fit: the text ends within its room. */
TEST_THAT(differences_are_named_as_far_as_there_is_room)
{
    struct {
        char text[COMPARE_LOAD_TEXT_MAX], behind[8];
    } room = {.behind = "behind"};
    json_t *a = report(1, 100, 1), *b = report(1, 100, 1);
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "setting%d", i);
        json_object_set_new(asked_of(a, 0), name, json_integer(i));
    }
    assert_false(same_load(a, b, room.text));
    assert_int_equal(strlen(room.text), sizeof room.text - 1);
    assert_memory_equal(room.text, "setting0: 0 and unsaid, setting1: 1 and unsaid", 46);
    assert_string_equal(room.behind, "behind");
    assert_false(same_load(b, a, room.text));
    assert_memory_equal(room.text, "setting0: unsaid and 0", 22);
    assert_string_equal(room.behind, "behind");
    json_decref(a);
    json_decref(b);
}

/* A difference in the first run of B hides none in a later run of A. */
TEST_THAT(each_run_of_both_is_looked_at)
{
    char text[COMPARE_LOAD_TEXT_MAX];
    json_t *a = report(3, 100, 1), *b = report(1, 100, 1);
    json_object_set_new(asked_of(a, 1), "connections", json_integer(8));
    json_object_set_new(asked_of(a, 2), "connections", json_integer(9));
    assert_false(same_load(a, b, text));
    assert_string_equal(text, "connections: 64 and 8"); /* the first */
    assert_true(same_load(b, b, text));
    assert_string_equal(text, "");
    json_decref(a);
    json_decref(b);
}

TEST_THAT(groups_beyond_the_most_are_left_out)
{
    static struct compare_group groups[COMPARE_GROUPS_MAX + 1];
    json_t *runs = json_array();
    for (int i = 0; i < COMPARE_GROUPS_MAX + 2; i++) {
        char guard[16];
        snprintf(guard, sizeof guard, "guard%d", i);
        json_array_append_new(runs, run("sale", guard, i, i));
    }
    json_array_append_new(runs, run("sale", "guard0", 1000, 1));
    json_t *json = json_pack("{s:o}", "runs", runs);
    memset(&groups[COMPARE_GROUPS_MAX], 7, sizeof groups[0]);
    assert_int_equal(compare_groups(json, groups), COMPARE_GROUPS_MAX);
    assert_string_equal(groups[COMPARE_GROUPS_MAX - 1].guard, "guard63");
    assert_int_equal(groups[COMPARE_GROUPS_MAX].guard[0], 7);
    assert_int_equal(groups[0].metrics[0].n, 2);
    compare_groups_free(groups, COMPARE_GROUPS_MAX);
    assert_null(groups[0].samples[0]);
    compare_groups_free(groups, COMPARE_GROUPS_MAX); /* a second time frees nothing */
    json_decref(json);
}

TEST_THAT(figure_that_a_run_lacks_is_not_counted)
{
    static struct compare_group groups[COMPARE_GROUPS_MAX];
    json_t *json = report(3, 100, 1), *second = json_array_get(json_object_get(json, "runs"), 1);
    json_object_set_new(second, "throughput_rps", json_null());
    json_object_set_new(json_object_get(second, "latency_us"), "p99", json_string("none"));
    assert_int_equal(compare_groups(json, groups), 1);
    assert_int_equal(groups[0].metrics[0].n, 2);
    assert_true(groups[0].metrics[0].min == 100 && groups[0].metrics[0].max == 102);
    assert_int_equal(groups[0].metrics[4].n, 2);
    assert_true(spread_of(NULL, 0).max == 0 && spread_of(NULL, 0).median == 0);
    compare_groups_free(groups, 1);
    json_decref(json);
}

TEST_THAT(metrics_are_found_by_their_flags)
{
    for (int i = 0; i < COMPARE_METRICS; i++)
        assert_int_equal(compare_metric_find(compare_metrics[i].flag), i);
    assert_int_equal(compare_metric_find("requests/s"), -1);
}

/* The exit status of a comparison of n runs each, with --fail-if on this metric. */
static int status_of(int n, double rate_b, const char *connections_b, const char *fail_if)
{
    char paths[2][40] = {"/tmp/test-compare-a-XXXXXX", "/tmp/test-compare-b-XXXXXX"};
    struct options options = {.n_reports = 2};
    for (int i = 0; i < 2; i++) {
        int fd = mkstemp(paths[i]);
        json_t *json = report(n, i == 0 ? 200 : rate_b, 1);
        for (int j = 0; j < n && i == 1 && connections_b != NULL; j++)
            json_object_set_new(asked_of(json, (size_t)j), "connections",
                                json_string(connections_b));
        assert_true(fd >= 0);
        assert_int_equal(json_dumpfd(json, fd, 0), 0);
        json_decref(json);
        close(fd);
        options.reports[i] = paths[i];
    }
    if (fail_if != NULL)
        options.fail_if[options.n_fail_if++] = compare_metric_find(fail_if);
    int status = compare_command(&options);
    unlink(paths[0]);
    unlink(paths[1]);
    return status;
}

TEST_THAT(worse_by_a_named_metric_is_99)
{
    assert_int_equal(status_of(8, 100, NULL, NULL), 0); /* worse, and nobody named it */
    assert_int_equal(status_of(8, 100, NULL, "rate"), 99);
    assert_int_equal(status_of(8, 300, NULL, "rate"), 0);
    assert_int_equal(status_of(8, 200, NULL, "rate"), 0);
    assert_int_equal(status_of(8, 100, NULL, "p99"), 0);
    assert_int_equal(status_of(4, 100, NULL, "rate"), 99); /* alone it needs four runs */
    assert_int_equal(status_of(3, 100, NULL, "rate"), 1);  /* too few to tell */
    assert_int_equal(status_of(8, 100, NULL, "max"), 1);   /* not in the reports */
    assert_int_equal(status_of(8, 100, "8", "rate"), 1);   /* another load */
}
