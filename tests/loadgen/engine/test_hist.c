/* The histogram beside another implementation: all values kept, sorted, nearest rank. */
#include "hist.h"
#include "tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 0.001; /* the header's promise */

/* Percentiles in thousandths of a percent, so that the reference can count in whole numbers. */
static const uint64_t percentiles_milli[] = {0,     1,     1000,  25000, 50000, 75000,
                                             90000, 99000, 99900, 99990, 99999, 100000};
enum { PERCENTILES = sizeof percentiles_milli / sizeof percentiles_milli[0] };

static size_t sample_count(void)
{
    return getenv("TEST_FULL") != NULL ? 10000000 : 1000000;
}

static uint64_t random_state;

static uint64_t random_u64(void) /* xorshift64*, Vigna 2014 */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static double random_unit(void)
{
    return ((double)(random_u64() >> 11) + 0.5) * 0x1p-53;
}

static int64_t uniform(void)
{
    return (int64_t)(random_u64() % 1000000);
}

static int64_t exponential(void)
{
    return (int64_t)(-500.0 * log(random_unit()));
}

static int64_t heavy_tail(void) /* Pareto, alpha 1.1: from 100 us to hours */
{
    double value = 100.0 * pow(random_unit(), -1.0 / 1.1);
    return value < (double)HIST_VALUE_MAX ? (int64_t)value : HIST_VALUE_MAX;
}

static int64_t two_humps(void)
{
    return random_u64() % 100 < 97 ? 800 + uniform() / 1000 : 1000000 + uniform();
}

static int64_t all_powers(void)
{
    return (int64_t)(random_u64() >> (64 - HIST_MAX_BITS + random_u64() % HIST_MAX_BITS));
}

static int64_t constant(void)
{
    return 123456789;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nearest rank: the ceil(p * n)-th smallest, in whole numbers. */
static int64_t exact_percentile(const int64_t *sorted, size_t n, uint64_t milli)
{
    uint64_t rank = (milli * n + 99999) / 100000;
    return sorted[rank > 0 ? rank - 1 : 0];
}

static void assert_close(int64_t got, int64_t exact, const char *what, uint64_t milli)
{
    double allowed = exact < 2048 ? 0 : (double)exact * tolerance;
    if (fabs((double)(got - exact)) > allowed)
        fail_msg("%s p%g: %lld instead of %lld", what, (double)milli / 1000, (long long)got,
                 (long long)exact);
}

TEST_THAT(percentiles_agree_with_sorting)
{
    static const struct {
        const char *name;
        int64_t (*draw)(void);
    } distributions[] = {{"uniform", uniform},       {"exponential", exponential},
                         {"heavy tail", heavy_tail}, {"two humps", two_humps},
                         {"all powers", all_powers}, {"constant", constant}};
    size_t n = sample_count();
    int64_t *values = malloc(n * sizeof *values);
    assert_non_null(values);
    random_state = 42;
    for (size_t d = 0; d < sizeof distributions / sizeof distributions[0]; d++) {
        struct hist hist;
        double sum = 0;
        assert_int_equal(hist_init(&hist), 0);
        for (size_t i = 0; i < n; i++) {
            values[i] = distributions[d].draw();
            sum += (double)values[i];
            hist_record(&hist, values[i]);
        }
        qsort(values, n, sizeof *values, compare);
        for (size_t i = 0; i < PERCENTILES; i++)
            assert_close(hist_percentile(&hist, (double)percentiles_milli[i] / 1000),
                         exact_percentile(values, n, percentiles_milli[i]), distributions[d].name,
                         percentiles_milli[i]);
        assert_int_equal(hist.count, n);
        assert_int_equal(hist.min, values[0]);
        assert_int_equal(hist.max, values[n - 1]);
        assert_true(fabs(hist_mean(&hist) - sum / (double)n) <= 1e-9 * sum / (double)n);
        hist_free(&hist);
    }
    free(values);
}

TEST_THAT(small_counts_take_the_nearest_rank)
{
    struct hist hist;
    int64_t values[1000];
    assert_int_equal(hist_init(&hist), 0);
    for (size_t n = 1; n <= 1000; n++) {
        values[n - 1] = (int64_t)n; /* already sorted, all below 2048: no bucket error */
        hist_record(&hist, values[n - 1]);
        for (size_t i = 0; i < PERCENTILES; i++)
            assert_int_equal(hist_percentile(&hist, (double)percentiles_milli[i] / 1000),
                             exact_percentile(values, n, percentiles_milli[i]));
    }
    hist_free(&hist);
}

TEST_THAT(every_bucket_edge_is_within_the_promise)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    for (int bit = 0; bit <= HIST_MAX_BITS; bit++)
        for (int64_t offset = -2; offset <= 2; offset++) {
            int64_t value = (INT64_C(1) << bit) + offset;
            if (value < 0 || value > HIST_VALUE_MAX)
                continue;
            hist_reset(&hist);
            hist_record(&hist, value);
            hist_record(&hist, HIST_VALUE_MAX); /* or max alone would give the answer */
            int64_t got = hist_percentile(&hist, 50);
            assert_true(got >= value);
            assert_close(got, value, "edge", 50000);
        }
    hist_free(&hist);
}

TEST_THAT(values_below_2048_are_exact)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    for (int64_t value = 0; value < 2048; value++) {
        hist_reset(&hist);
        hist_record(&hist, value);
        hist_record(&hist, 1000000);
        assert_int_equal(hist_percentile(&hist, 50), value);
    }
    hist_free(&hist);
}

TEST_THAT(empty_histogram_answers_zero)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    assert_int_equal(hist_percentile(&hist, 99), 0);
    assert_int_equal((int)hist_mean(&hist), 0);
    assert_int_equal(hist.min, 0);
    assert_int_equal(hist.max, 0);
    hist_free(&hist);
}

TEST_THAT(negative_values_count_as_zero)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    hist_record(&hist, -5);
    hist_record(&hist, INT64_MIN);
    hist_record(&hist, 7);
    assert_int_equal(hist.count, 3);
    assert_int_equal(hist.min, 0);
    assert_int_equal(hist_percentile(&hist, 60), 0);
    assert_int_equal(hist_percentile(&hist, 100), 7);
    hist_free(&hist);
}

TEST_THAT(clipped_values_are_counted_and_max_stays_exact)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    hist_record(&hist, 10);
    hist_record(&hist, HIST_VALUE_MAX);
    hist_record(&hist, HIST_VALUE_MAX + 1);
    hist_record(&hist, INT64_MAX);
    assert_int_equal(hist.count, 4);
    assert_int_equal(hist.clipped, 2);
    assert_true(hist.max == INT64_MAX);
    assert_true(hist_percentile(&hist, 100) == INT64_MAX);
    assert_int_equal(hist_percentile(&hist, 25), 10);
    hist_free(&hist);
}

TEST_THAT(merging_equals_recording_into_one)
{
    struct hist parts[3], merged, whole;
    assert_int_equal(hist_init(&merged), 0);
    assert_int_equal(hist_init(&whole), 0);
    random_state = 7;
    for (int p = 0; p < 3; p++) {
        assert_int_equal(hist_init(&parts[p]), 0);
        for (int i = 0; i < 10000 * p; i++) { /* the first stays empty */
            int64_t value = i % 1000 == 0 ? INT64_MAX : heavy_tail();
            hist_record(&parts[p], value);
            hist_record(&whole, value);
        }
        hist_add(&merged, &parts[p]);
        hist_free(&parts[p]);
    }
    assert_int_equal(merged.count, whole.count);
    assert_int_equal(merged.clipped, whole.clipped);
    assert_true(merged.min == whole.min && merged.max == whole.max);
    assert_true(fabs(merged.sum - whole.sum) <= 1e-9 * whole.sum);
    assert_memory_equal(merged.buckets, whole.buckets, HIST_BUCKETS * sizeof *whole.buckets);
    hist_free(&merged);
    hist_free(&whole);
}

TEST_THAT(percentile_never_exceeds_the_maximum)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    hist_record(&hist, 1000001); /* not the highest of its bucket */
    assert_int_equal(hist_percentile(&hist, 100), 1000001);
    assert_int_equal(hist_percentile(&hist, 50), 1000001);
    hist_free(&hist);
}

TEST_THAT(reset_forgets_everything)
{
    struct hist hist, fresh;
    assert_int_equal(hist_init(&hist), 0);
    assert_int_equal(hist_init(&fresh), 0);
    hist_record(&hist, 5);
    hist_record(&hist, INT64_MAX);
    hist_reset(&hist);
    assert_int_equal(hist.count, 0);
    assert_int_equal(hist.clipped, 0);
    assert_int_equal(hist.max, 0);
    assert_memory_equal(hist.buckets, fresh.buckets, HIST_BUCKETS * sizeof *fresh.buckets);
    hist_free(&hist);
    hist_free(&fresh);
}

TEST_THAT(full_bucket_saturates_instead_of_wrapping)
{
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    hist_record(&hist, 3);
    hist.buckets[3] = UINT32_MAX;
    hist_record(&hist, 3);
    assert_int_equal(hist.buckets[3], UINT32_MAX);
    hist_add(&hist, &hist);
    assert_int_equal(hist.buckets[3], UINT32_MAX);
    hist_free(&hist);
}
