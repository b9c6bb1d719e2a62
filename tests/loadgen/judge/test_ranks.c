/* The statistics of compare: the test's p against all orders counted one by one, and by simulation
 * how often it finds what is there, and what is not. */
#include "ranks.h"
#include "splitmix.h"
#include "tests.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* -- the test ---------------------------------------------------------------------------------- */

/* U of a against b by its definition: pairs in which a is larger, half for a tie. */
static double u_of(const double *a, size_t n_a, const double *b, size_t n_b)
{
    double u = 0;
    for (size_t i = 0; i < n_a; i++)
        for (size_t j = 0; j < n_b; j++)
            u += a[i] > b[j] ? 1 : a[i] == b[j] ? 0.5 : 0;
    return u;
}

/* Of all ways to deal the pooled values out, how many have a U as far from the middle to the side
 * of this one: twice that share. */
static double counted_p(const double *pool, size_t n_a, size_t n_b)
{
    double u = u_of(pool, n_a, pool + n_a, n_b);
    double below = 0, above = 0, all = 0;
    size_t n = n_a + n_b;
    for (unsigned chosen = 0; chosen < 1u << n; chosen++) {
        double a[16], b[16];
        size_t i_a = 0, i_b = 0;
        if ((size_t)__builtin_popcount(chosen) != n_a)
            continue;
        for (size_t i = 0; i < n; i++)
            if (chosen & 1u << i)
                a[i_a++] = pool[i];
            else
                b[i_b++] = pool[i];
        double other = u_of(a, n_a, b, n_b);
        all++;
        below += other <= u;
        above += other >= u;
    }
    return fmin(1, 2 * fmin(below, above) / all);
}

TEST_THAT(p_is_that_of_all_orders_counted_ties_included)
{
    uint64_t seed = 1;
    for (int trial = 0; trial < 300; trial++) {
        double pool[10];
        size_t n_a = 1 + splitmix(++seed) % 5, n_b = 1 + splitmix(++seed) % 5;
        uint64_t kinds = trial % 2 == 0 ? 4 : 1000000; /* many ties, and hardly any */
        for (size_t i = 0; i < n_a + n_b; i++)
            pool[i] = (double)(splitmix(++seed) % kinds);
        double expected = counted_p(pool, n_a, n_b);
        double got = ranks_p(pool, n_a, pool + n_a, n_b);
        if (fabs(got - expected) > 1e-12)
            fail_msg("%zu and %zu values: %g, not %g", n_a, n_b, got, expected);
    }
}

/* Hollander and Wolfe (1999), table 4.1: permeability of chorioamnion, term and early pregnancy:
 * P(W >= 35) = 0.127. */
TEST_THAT(p_of_a_published_example)
{
    static const double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    static const double y[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    assert_true(u_of(x, 10, y, 5) == 35);
    assert_true(fabs(ranks_p(x, 10, y, 5) - 2 * 0.1272) < 0.0001);
}

TEST_THAT(large_samples_are_taken_for_normal_and_hardly_differ)
{
    double a[26], b[26];
    for (size_t shift = 0; shift < 20; shift++) {
        for (size_t i = 0; i < 26; i++) {
            a[i] = (double)(i * 7 % 26);
            b[i] = (double)(i * 11 % 26) + (double)shift * 0.5;
        }
        double exact = ranks_p(a, 25, b, 25), normal = ranks_p(a, 26, b, 26);
        assert_true(fabs(log(exact) - log(normal)) < 0.25 || fabs(exact - normal) < 0.08);
    }
    for (size_t i = 0; i < 26; i++)
        a[i] = b[i] = 5;
    assert_true(ranks_p(a, 26, b, 26) == 1); /* no spread at all */
    assert_true(ranks_p(a, 25, b, 25) == 1);
    assert_true(ranks_p(a, 0, b, 3) == 1);
}

TEST_THAT(few_values_can_show_nothing)
{
    assert_true(fabs(ranks_least_p(4, 4) - 2.0 / 70) < 1e-12);
    assert_true(ranks_least_p(0, 5) == 1);
    assert_int_equal(ranks_needed(0.05), 4);
    assert_int_equal(ranks_needed(0.05 / 8), 6);
    assert_int_equal(ranks_needed(0.05 / 64), 7);
    static const double low[] = {1, 2, 3}, high[] = {4, 5, 6};
    assert_true(fabs(ranks_p(low, 3, high, 3) - 0.1) < 1e-12);
}

/* -- the ratio --------------------------------------------------------------------------------- */

TEST_THAT(ratio_is_the_middle_of_all_ratios)
{
    static const double a[] = {1, 2, 4}, b[] = {2, 4, 8}, odd[] = {100, 101, 102, 103, 104, 105};
    struct ranks_ratio ratio;
    assert_true(ranks_ratio(a, 3, b, 3, 0.05, &ratio));
    assert_true(fabs(ratio.ratio - 2) < 1e-9);
    assert_true(ratio.low == 0 && ratio.high == HUGE_VAL); /* three and three bound nothing */
    assert_true(ranks_ratio(odd, 6, odd, 6, 0.05, &ratio));
    assert_true(fabs(ratio.ratio - 1) < 1e-9 && ratio.low < 1 && ratio.high > 1);
    static const double zero[] = {0, 1, 2};
    assert_false(ranks_ratio(a, 3, zero, 3, 0.05, &ratio));
    assert_false(ranks_ratio(a, 3, b, 0, 0.05, &ratio));
    static const double never[] = {1, 2, HUGE_VAL};
    assert_false(ranks_ratio(a, 3, never, 3, 0.05, &ratio));
    assert_false(ranks_ratio(never, 3, never, 3, 0.05, &ratio));
}

/* -- by simulation ----------------------------------------------------------------------------- */

enum { METRICS = 8 };
static const double NOISE = 0.052; /* of the logarithm: runs differ by 5 % */
static uint64_t dice = 42;

static double uniform(void)
{
    return ((double)(splitmix(++dice) >> 11) + 0.5) * 0x1p-53;
}

static void fill(double *values, size_t n, double middle)
{
    for (size_t i = 0; i < n; i++)
        values[i] = middle * exp(NOISE * sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()));
}

struct shares {
    double found;       /* trials in which the changed metric is found */
    double ranges;      /* in which its ranges do not touch: the rule before */
    double false_alarm; /* in which any of the others, which are the same, is found */
    double covered;     /* in which the interval has the true ratio */
};

static bool ranges_apart(const double *a, const double *b, size_t n)
{
    double min_a = a[0], max_a = a[0], min_b = b[0], max_b = b[0];
    for (size_t i = 1; i < n; i++) {
        min_a = fmin(min_a, a[i]), max_a = fmax(max_a, a[i]);
        min_b = fmin(min_b, b[i]), max_b = fmax(max_b, b[i]);
    }
    return min_a > max_b || min_b > max_a;
}

/* n runs each of eight metrics: one is really 10 % larger, seven are the same. */
static struct shares simulate(size_t n, int trials)
{
    struct shares shares = {0};
    double error = 0.05 / METRICS, a[64], b[64];
    for (int trial = 0; trial < trials; trial++) {
        struct ranks_ratio ratio;
        bool alarm = false;
        fill(a, n, 1000);
        fill(b, n, 1100);
        shares.found += ranks_p(a, n, b, n) <= error;
        shares.ranges += ranges_apart(a, b, n);
        assert_true(ranks_ratio(a, n, b, n, error, &ratio));
        shares.covered += ratio.low <= 1.1 && ratio.high >= 1.1;
        /* Interval and test say the same. */
        assert_int_equal(ratio.low > 1 || ratio.high < 1, ranks_p(a, n, b, n) <= error);
        for (int metric = 1; metric < METRICS; metric++) {
            fill(a, n, 1000);
            fill(b, n, 1000);
            alarm = alarm || ranks_p(a, n, b, n) <= error;
        }
        shares.false_alarm += alarm;
    }
    shares.found /= trials;
    shares.ranges /= trials;
    shares.false_alarm /= trials;
    shares.covered /= trials;
    return shares;
}

TEST_THAT(empty_sample_and_values_without_logarithm_have_no_ratio)
{
    const double a[] = {1, 2, 3, 4}, zero[] = {1, 2, 0, 4}, minus[] = {-1, 2, 3, 4};
    struct ranks_ratio ratio = {.ratio = 7};
    assert_true(ranks_p(a, 4, a, 0) == 1);
    assert_true(ranks_p(a, 0, a, 4) == 1);
    assert_true(ranks_p(a, 0, a, 0) == 1);
    assert_false(ranks_ratio(a, 4, a, 0, 0.05, &ratio));
    assert_false(ranks_ratio(a, 0, a, 4, 0.05, &ratio));
    assert_false(ranks_ratio(a, 4, zero, 4, 0.05, &ratio));
    assert_false(ranks_ratio(zero, 4, a, 4, 0.05, &ratio));
    assert_false(ranks_ratio(minus, 4, a, 4, 0.05, &ratio));
    assert_true(ratio.ratio == 7); /* written only on success */
}

/* So sure that not even all pairs bound the ratio, also where the distribution is taken as normal.
 */
TEST_THAT(no_sample_bounds_a_ratio_beyond_all_doubt)
{
    double few[3] = {1, 2, 3}, many[RANKS_EXACT_MAX], one[] = {2};
    struct ranks_ratio ratio;
    for (int i = 0; i < RANKS_EXACT_MAX; i++)
        many[i] = 1 + i;
    assert_true(ranks_ratio(few, 3, few, 3, 0.01, &ratio));
    assert_true(ratio.low == 0 && isinf(ratio.high));
    assert_true(ranks_ratio(one, 1, many, RANKS_EXACT_MAX, 1e-9, &ratio));
    assert_true(ratio.low == 0 && isinf(ratio.high));
    assert_true(ranks_ratio(many, RANKS_EXACT_MAX, many, RANKS_EXACT_MAX, 0.05, &ratio));
    assert_true(ratio.low > 0 && ratio.low < 1 && ratio.high > 1 && ratio.high < 2);
}

TEST_THAT(more_runs_see_more_and_cry_wolf_no_oftener)
{
    static const struct {
        size_t n;
        int trials;
        double found_min;
    } cases[] = {{4, 300, 0}, {6, 600, 0.25}, {10, 600, 0.7}, {20, 60, 0.99}, {40, 200, 1}};
    double before = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shares shares = simulate(cases[i].n, cases[i].trials);
        print_message("%2zu runs each: a true 10 %% found in %5.1f %% (ranges apart in %5.1f %%), "
                      "false alarm in %4.1f %%, interval right in %5.1f %%\n",
                      cases[i].n, 100 * shares.found, 100 * shares.ranges, 100 * shares.false_alarm,
                      100 * shares.covered);
        assert_true(shares.found >= cases[i].found_min && shares.found >= before);
        /* 5 % at most, and what chance may add to as many trials: three standard errors */
        assert_true(shares.false_alarm <= 0.05 + 3 * sqrt(0.05 * 0.95 / cases[i].trials));
        assert_true(shares.covered >=
                    1 - 0.05 / METRICS - 3 * sqrt(0.05 / METRICS / cases[i].trials));
        before = shares.found;
    }
}
