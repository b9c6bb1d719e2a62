/* Two reports side by side: medians, ranges, and when a difference counts. */
#include "../../loadgen/ratios.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

static void median_and_range_whatever_the_order(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    struct spread spread = spread_of(odd, 3);
    assert_true(spread.median == 3 && spread.min == 1 && spread.max == 5 && spread.n == 3);
    assert_true(spread_of(even, 4).median == 2.5);
    assert_true(spread_of(one, 1).median == 7);
    assert_int_equal(spread_of(NULL, 0).n, 0);
}

static void only_ranges_apart_are_a_difference(void **state)
{
    (void)state;
    const struct spread low = {.median = 2, .min = 1, .max = 3, .n = 5};
    const struct spread high = {.median = 6, .min = 4, .max = 8, .n = 5};
    const struct spread wide = {.median = 6, .min = 3, .max = 8, .n = 5};
    assert_int_equal(ratios_compare(&low, &high, true), RATIOS_BETTER);
    assert_int_equal(ratios_compare(&low, &high, false), RATIOS_WORSE);
    assert_int_equal(ratios_compare(&high, &low, true), RATIOS_WORSE);
    assert_int_equal(ratios_compare(&low, &wide, true), RATIOS_SAME);
    assert_int_equal(ratios_compare(&low, &low, true), RATIOS_SAME);
}

/* Of 3 and 3 alike ranges are apart in 2 of 20 cases, of 4 and 4 in 2 of 70. */
static void few_runs_are_no_finding_however_far_apart(void **state)
{
    (void)state;
    static const struct {
        size_t n_a, n_b;
        enum ratios_finding finding;
    } cases[] = {{1, 1, RATIOS_TOO_FEW},  {2, 2, RATIOS_TOO_FEW}, {3, 3, RATIOS_TOO_FEW},
                 {4, 4, RATIOS_WORSE},    {5, 5, RATIOS_WORSE},   {3, 4, RATIOS_TOO_FEW},
                 {3, 5, RATIOS_WORSE},    {2, 7, RATIOS_TOO_FEW}, {2, 8, RATIOS_WORSE},
                 {1, 25, RATIOS_TOO_FEW}, {1, 39, RATIOS_WORSE},  {1024, 1024, RATIOS_WORSE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct spread a = {.median = 2, .min = 1, .max = 3, .n = cases[i].n_a};
        const struct spread b = {.median = 6, .min = 4, .max = 8, .n = cases[i].n_b};
        if (ratios_compare(&a, &b, false) != cases[i].finding)
            fail_msg("%zu and %zu runs", cases[i].n_a, cases[i].n_b);
    }
}

static json_t *run(const char *workload, const char *guard, double rate, int p99)
{
    return json_pack("{s:s, s:s, s:f, s:{s:i}}", "workload", workload, "guard", guard,
                     "throughput_rps", rate, "latency_us", "p99", p99);
}

static void runs_of_one_workload_and_guard_are_one_group(void **state)
{
    (void)state;
    static struct ratios_group groups[RATIOS_GROUPS_MAX];
    json_t *report = json_pack("{s:[o,o,o,o]}", "runs", run("sale", "none", 100, 9),
                               run("sale", "mutex", 50, 20), run("sale", "none", 300, 5),
                               run("accounts", "none", 10, 1));
    assert_int_equal(ratios_groups(report, groups), 3);
    assert_string_equal(groups[0].workload, "sale");
    assert_string_equal(groups[0].guard, "none");
    const struct spread *rate = &groups[0].metrics[0], *p50 = &groups[0].metrics[2],
                        *p99 = &groups[0].metrics[4];
    assert_string_equal(ratios_metrics[4].name, "p99");
    assert_true(rate->n == 2 && rate->median == 200 && rate->max == 300);
    assert_true(p99->n == 2 && p99->median == 7);
    assert_int_equal(p50->n, 0); /* not in these runs */
    assert_string_equal(groups[2].workload, "accounts");
    json_decref(report);
    report = json_object();
    assert_int_equal(ratios_groups(report, groups), -1);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_and_range_whatever_the_order),
        cmocka_unit_test(only_ranges_apart_are_a_difference),
        cmocka_unit_test(few_runs_are_no_finding_however_far_apart),
        cmocka_unit_test(runs_of_one_workload_and_guard_are_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
