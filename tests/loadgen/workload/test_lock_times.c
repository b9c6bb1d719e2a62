/* Lock times from a page of metrics. */
#include "lock_times.h"
#include "tests.h"

#include <math.h>
#include <stdio.h>

static const char page[] =
    "# HELP seckill_lock_wait_seconds Time until a lock was granted.\n"
    "# TYPE seckill_lock_wait_seconds histogram\n"
    "seckill_lock_wait_seconds_bucket{guard=\"mutex\",le=\"0.001\"} 900\n"
    "seckill_lock_wait_seconds_bucket{guard=\"redis-token\",le=\"5e-05\"} 0\n"
    "seckill_lock_wait_seconds_bucket{guard=\"redis-token\",le=\"0.001\"} 60\n"
    "seckill_lock_wait_seconds_bucket{guard=\"redis-token\",le=\"10\"} 98\n"
    "seckill_lock_wait_seconds_bucket{guard=\"redis-token\",le=\"+Inf\"} 100\n"
    "seckill_lock_wait_seconds_sum{guard=\"redis-token\"} 1.5\n"
    "seckill_lock_wait_seconds_count{guard=\"redis-token\"} 100\n"
    "seckill_lock_hold_seconds_bucket{guard=\"redis-token\",le=\"0.001\"} 7\n"
    "seckill_lock_hold_seconds_sum{guard=\"redis-token\"} 0.007\n"
    "seckill_lock_hold_seconds_count{guard=\"redis-token\"} 7\n"
    "seckill_lock_held{guard=\"redis-token\"} 3\n";

TEST_THAT(the_guards_own_lines_are_read)
{
    struct lock_times times = {0};
    lock_times_add(&times, page, "redis-token");
    assert_int_equal(times.wait.count, 100);
    assert_true(lock_times_mean_us(&times.wait) == 15000);
    assert_true(lock_times_percentile_us(&times, &times.wait, 50) == 1000);
    assert_true(lock_times_percentile_us(&times, &times.wait, 98) == 10000000);
    assert_true(lock_times_percentile_us(&times, &times.wait, 99) == HUGE_VAL);
    assert_int_equal(times.hold.count, 7);
    assert_true(lock_times_percentile_us(&times, &times.hold, 99) == 1000);
}

TEST_THAT(instances_add_up_and_what_was_before_is_taken_off)
{
    struct lock_times before = {0}, after = {0};
    lock_times_add(&before, page, "redis-token");
    for (int i = 0; i < 3; i++)
        lock_times_add(&after, page, "redis-token");
    lock_times_since(&after, &before);
    assert_int_equal(after.wait.count, 200);
    assert_true(lock_times_percentile_us(&after, &after.wait, 50) == 1000);
    assert_true(fabs(lock_times_mean_us(&after.wait) - 15000) < 1);
}

TEST_THAT(nonsense_is_no_count)
{
    static const char *const values[] = {"1e300", "-1", "nan", "inf", "18446744073709551616"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct lock_times times = {0};
        char text[400];
        snprintf(text, sizeof text,
                 "seckill_lock_wait_seconds_count{guard=\"g\"} %s\n"
                 "seckill_lock_wait_seconds_sum{guard=\"g\"} %s\n"
                 "seckill_lock_wait_seconds_bucket{guard=\"g\",le=\"0.001\"} %s\n",
                 values[i], values[i], values[i]);
        lock_times_add(&times, text, "g");
        assert_int_equal(times.wait.count, 0);
        assert_true(times.wait.sum_us == 0);
        assert_int_equal(times.wait.below[0], 0);
    }
}

TEST_THAT(instance_that_began_anew_is_not_counted_below_nothing)
{
    struct lock_times before = {0}, after = {0};
    lock_times_add(&before, page, "redis-token");
    lock_times_add(&before, page, "redis-token");
    lock_times_add(&after, page, "redis-token");
    lock_times_since(&after, &before);
    assert_int_equal(after.wait.count, 100);
    assert_int_equal(after.hold.count, 7);
}

TEST_THAT(guard_without_a_lock_has_no_times)
{
    struct lock_times times = {0};
    lock_times_add(&times, page, "none");
    lock_times_add(&times, "", "none");
    assert_int_equal(times.wait.count, 0);
    assert_true(lock_times_mean_us(&times.wait) == 0);
    assert_true(lock_times_percentile_us(&times, &times.wait, 99) == 0);
}
