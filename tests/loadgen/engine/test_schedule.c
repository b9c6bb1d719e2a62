/* Who sends what when, without a server and without waiting: the clock is an argument. */
#include "schedule.h"
#include "tests.h"
#include "timers.h"
#include <stdlib.h>
#include <string.h>

enum { START_US = 1000000, THREADS = 3 };

static void begin(struct schedule *schedule, struct schedule_cursor *cursors,
                  const struct load_options *options)
{
    schedule_init(schedule, options);
    for (int i = 0; i < options->threads; i++)
        schedule_cursor_init(&cursors[i], schedule, i);
    schedule_begin(schedule, START_US, options->duration_ms);
}

/* All that any thread may take by now; *seen counts each number. */
static uint64_t take_all(struct schedule_cursor *cursors, int threads, int64_t now_us,
                         unsigned char *seen)
{
    uint64_t taken = 0, seq;
    int64_t intended_us;
    for (int i = 0; i < threads; i++)
        while (schedule_take(&cursors[i], now_us, &seq, &intended_us)) {
            assert_true(intended_us <= now_us);
            seen[seq]++;
            taken++;
        }
    return taken;
}

TEST_THAT(rate_deals_each_number_once_and_counts_them_alike)
{
    static const double rates[] = {0.5, 1, 3, 7.77, 333.3333, 1000, 44100, 99999.9, 1e6, 3e6};
    static const int64_t durations_ms[] = {1, 3, 10, 33, 100, 1000};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++)
        for (size_t d = 0; d < sizeof durations_ms / sizeof durations_ms[0]; d++) {
            struct load_options options = {.mode = LOAD_RATE,
                                           .rate = rates[r],
                                           .threads = THREADS,
                                           .duration_ms = durations_ms[d]};
            struct schedule schedule;
            struct schedule_cursor cursors[THREADS];
            unsigned char *seen = calloc(4000000, 1);
            assert_non_null(seen);
            begin(&schedule, cursors, &options);
            int64_t end_us = START_US + durations_ms[d] * 1000;
            uint64_t taken = 0;
            for (int64_t now_us = START_US; now_us < end_us + 2000; now_us += 997) {
                taken += take_all(cursors, THREADS, now_us, seen);
                if (now_us < end_us) /* due at this very moment counts from the next on */
                    assert_true(taken >= schedule_due(&schedule, now_us, 0) &&
                                taken <= schedule_due(&schedule, now_us + 1, 0));
            }
            assert_int_equal(taken, schedule_due(&schedule, end_us + 2000, 0));
            for (uint64_t i = 0; i < taken; i++)
                assert_int_equal(seen[i], 1);
            for (int i = 0; i < THREADS; i++)
                assert_true(schedule_next_us(&cursors[i]) == SCHEDULE_NEVER_US);
            free(seen);
        }
}

TEST_THAT(ramp_deals_each_number_once_at_an_evenly_changing_rate)
{
    static const struct {
        double from, to;
        int64_t duration_ms;
        uint64_t due; /* the area below the line */
    } ramps[] = {{0, 1000, 1000, 500},
                 {1000, 0, 1000, 500},
                 {100, 300, 10000, 2000},
                 {500, 500, 2000, 1000},
                 {0, 50000, 2000, 50000}};
    for (size_t i = 0; i < sizeof ramps / sizeof ramps[0]; i++) {
        struct load_options options = {.mode = LOAD_RAMP,
                                       .ramp_from = ramps[i].from,
                                       .rate = ramps[i].to,
                                       .threads = THREADS,
                                       .duration_ms = ramps[i].duration_ms};
        struct schedule schedule;
        struct schedule_cursor cursors[THREADS];
        unsigned char *seen = calloc(100000, 1);
        assert_non_null(seen);
        begin(&schedule, cursors, &options);
        int64_t duration_us = ramps[i].duration_ms * 1000, end_us = START_US + duration_us;
        uint64_t taken = take_all(cursors, THREADS, START_US + duration_us / 2, seen);
        double half = (ramps[i].from * 3 + ramps[i].to) / 8 * (double)duration_us / 1e6;
        assert_true(taken >= (uint64_t)half && taken <= (uint64_t)half + 1);
        taken += take_all(cursors, THREADS, end_us + 1000000, seen);
        assert_true(taken >= ramps[i].due - 1 && taken <= ramps[i].due + 1);
        assert_int_equal(taken, schedule_due(&schedule, end_us + 1000000, 0));
        for (uint64_t n = 0; n < taken; n++)
            assert_int_equal(seen[n], 1);
        free(seen);
    }
}

TEST_THAT(burst_is_due_at_once_until_its_number)
{
    struct load_options options = {.mode = LOAD_BURST, .threads = THREADS, .requests = 100};
    struct schedule schedule;
    struct schedule_cursor cursors[THREADS];
    unsigned char seen[200] = {0};
    begin(&schedule, cursors, &options);
    assert_int_equal(take_all(cursors, THREADS, START_US - 1, seen), 0);
    assert_int_equal(take_all(cursors, THREADS, START_US, seen), 100);
    assert_int_equal(schedule_due(&schedule, START_US, 0), 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

TEST_THAT(closed_is_due_when_asked_until_the_end)
{
    struct load_options options = {.mode = LOAD_CLOSED, .threads = 1, .duration_ms = 10};
    struct schedule schedule;
    struct schedule_cursor cursor;
    uint64_t seq;
    int64_t intended_us;
    begin(&schedule, &cursor, &options);
    assert_true(schedule_take(&cursor, START_US + 9999, &seq, &intended_us));
    assert_true(intended_us == START_US + 9999);
    assert_false(schedule_take(&cursor, START_US + 10000, &seq, &intended_us));
}

TEST_THAT(stop_makes_nothing_due_from_then_on)
{
    struct load_options options = {.mode = LOAD_RATE, .rate = 1000, .threads = 2};
    struct schedule schedule;
    struct schedule_cursor cursors[2];
    unsigned char seen[100] = {0};
    begin(&schedule, cursors, &options);
    schedule_stop(&schedule, START_US + 10000);
    schedule_stop(&schedule, START_US + 20000); /* a later one moves nothing */
    assert_int_equal(take_all(cursors, 2, START_US + 50000, seen), 10);
    assert_int_equal(schedule_due(&schedule, START_US + 50000, 0), 10);
}

TEST_THAT(exhausted_workload_bounds_the_numbers)
{
    struct load_options options = {.mode = LOAD_RATE, .rate = 1000, .threads = 1, .requests = 50};
    struct schedule schedule;
    struct schedule_cursor cursor;
    unsigned char seen[100] = {0};
    begin(&schedule, &cursor, &options);
    schedule_exhausted(&schedule, 7);
    schedule_exhausted(&schedule, 9);
    assert_int_equal(take_all(&cursor, 1, START_US + 1000000, seen), 7);
    assert_int_equal(schedule_due(&schedule, START_US + 1000000, 0), 7);
}

TEST_THAT(timers_come_in_the_order_of_their_times)
{
    struct timers timers = {0};
    struct timer timer = {0};
    uint64_t x = 1, added = 0, taken = 0;
    int64_t last_us = 0;
    for (int round = 0; round < 20000; round++) {
        x = x * UINT64_C(6364136223846793005) + 1;
        if ((x >> 60) < 10) {
            timer.due_us = last_us + (int64_t)(x >> 40) % 1000;
            timer.sending.seq = (uint64_t)timer.due_us;
            assert_true(timers_add(&timers, &timer));
            added++;
        } else if (timers_take(&timers, INT64_MAX, &timer)) {
            assert_true(timer.due_us >= last_us);
            assert_int_equal(timer.sending.seq, timer.due_us);
            last_us = timer.due_us;
            taken++;
        }
    }
    assert_false(timers_take(&timers, timers_next_us(&timers) - 1, &timer));
    while (timers_take(&timers, INT64_MAX, &timer)) {
        assert_true(timer.due_us >= last_us);
        last_us = timer.due_us;
        taken++;
    }
    assert_int_equal(added, taken);
    assert_true(timers_next_us(&timers) == INT64_MAX);
    timers_free(&timers);
}
