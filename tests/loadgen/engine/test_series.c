/* Curves over time: nothing is lost when they are made coarser. */
#include "series.h"
#include "tests.h"

enum { INTERVAL_US = SERIES_INTERVAL_US };

TEST_THAT(happenings_are_counted_in_their_interval)
{
    struct series series;
    assert_int_equal(series_init(&series), 0);
    series_at(&series, 0)->sent++;
    series_at(&series, INTERVAL_US - 1)->sent++;
    series_at(&series, INTERVAL_US)->sent++;
    series_at(&series, 3 * INTERVAL_US)->accepted++;
    assert_int_equal(series.n, 4);
    assert_int_equal(series.points[0].sent, 2);
    assert_int_equal(series.points[1].sent, 1);
    assert_int_equal(series.points[2].sent, 0);
    assert_int_equal(series.points[3].accepted, 1);
    series_free(&series);
}

TEST_THAT(long_run_loses_nothing_but_detail)
{
    struct series series;
    enum { EVENTS = 100000, STEP_US = 7777 };
    assert_int_equal(series_init(&series), 0);
    for (int64_t i = 0; i < EVENTS; i++) {
        struct series_point *point = series_at(&series, i * STEP_US);
        point->sent++;
        point->answered++;
        point->accepted += i % 3 == 0;
        series_latency(point, i);
    }
    uint64_t sent = 0, answered = 0, accepted = 0, latencies = 0;
    int64_t max_us = 0;
    for (size_t i = 0; i < series.n; i++) {
        /* Exactly what happened between its two ends. */
        int64_t from = (int64_t)i * series.interval_us, to = from + series.interval_us;
        int64_t first = (from + STEP_US - 1) / STEP_US, end = (to + STEP_US - 1) / STEP_US;
        if (end > EVENTS)
            end = EVENTS;
        assert_int_equal(series.points[i].sent, end - first);
        sent += series.points[i].sent;
        answered += series.points[i].answered;
        accepted += series.points[i].accepted;
        for (size_t bin = 0; bin < SERIES_BINS; bin++)
            latencies += series.points[i].latency[bin];
        max_us = series.points[i].max_us > max_us ? series.points[i].max_us : max_us;
    }
    assert_int_equal(sent, EVENTS);
    assert_int_equal(answered, EVENTS);
    assert_int_equal(accepted, (EVENTS + 2) / 3);
    assert_int_equal(latencies, EVENTS);
    assert_int_equal(max_us, EVENTS - 1);
    assert_true(series.n > SERIES_POINTS_MAX / 2 - 1 && series.n <= SERIES_POINTS_MAX);
    series_free(&series);
}

TEST_THAT(coarse_and_fine_add_up)
{
    struct series fine, coarse;
    assert_int_equal(series_init(&fine), 0);
    assert_int_equal(series_init(&coarse), 0);
    for (int64_t i = 0; i < 100; i++)
        series_at(&fine, i * INTERVAL_US)->errors++;
    series_at(&coarse, INT64_C(1000) * INTERVAL_US)->errors++;
    assert_int_equal(coarse.interval_us, 8 * INTERVAL_US);
    series_add(&fine, &coarse);
    assert_int_equal(fine.interval_us, 8 * INTERVAL_US);
    assert_int_equal(fine.n, 126);
    assert_int_equal(fine.points[0].errors, 8);
    assert_int_equal(fine.points[12].errors, 4);
    assert_int_equal(fine.points[13].errors, 0);
    assert_int_equal(fine.points[125].errors, 1);
    series_free(&fine);
    series_free(&coarse);
}

TEST_THAT(percentiles_are_upper_bounds_within_a_quarter)
{
    for (int64_t us = 0; us < INT64_C(4000000000); us = us * 21 / 20 + 1) {
        struct series_point point = {0};
        series_latency(&point, us);
        series_latency(&point, INT64_C(1) << 40); /* so that the maximum does not help */
        int64_t p50 = series_percentile(&point, 50);
        assert_true(p50 >= us && p50 <= us + us / 4 + 1);
    }
    struct series_point hundred = {0};
    for (int64_t us = 1; us <= 100; us++)
        series_latency(&hundred, us * 1000);
    for (int percentile = 10; percentile <= 100; percentile += 10) {
        int64_t exact = percentile * 1000, got = series_percentile(&hundred, percentile);
        assert_true(got >= exact && got <= exact + exact / 4);
    }
    struct series_point none = {0}, one = {0};
    assert_int_equal(series_percentile(&none, 99), 0);
    series_latency(&one, 1000);
    assert_int_equal(series_percentile(&one, 99), 1000);
}
