/* Poisson arrivals: random, yet the same for the same seed, and as a Poisson process should be. */
#include "schedule.h"
#include "tests.h"

#include <math.h>
#include <stdlib.h>

enum { START_US = 1000000, ARRIVALS_MAX = 200000 };

static const struct load_options thousand_per_s = {.mode = LOAD_RATE,
                                                   .arrivals = LOAD_POISSON,
                                                   .rate = 1000,
                                                   .threads = 1,
                                                   .duration_ms = 100000,
                                                   .seed = 1};

/* When each request is due, by its number; returns how many there are. */
static uint64_t instants_of(const struct load_options *options, int64_t *ret)
{
    struct schedule schedule;
    uint64_t n = 0, seq;
    int64_t due_us;
    schedule_init(&schedule, options);
    schedule_begin(&schedule, START_US, options->duration_ms);
    for (uint64_t i = 0; i < ARRIVALS_MAX; i++)
        ret[i] = -1;
    for (int thread = 0; thread < options->threads; thread++) {
        struct schedule_cursor cursor;
        schedule_cursor_init(&cursor, &schedule, thread);
        while (schedule_take(&cursor, INT64_MAX - 1, &seq, &due_us)) {
            assert_true(seq < ARRIVALS_MAX && ret[seq] == -1); /* each is dealt once */
            ret[seq] = due_us;
            n++;
        }
    }
    return n;
}

static int64_t *room(void)
{
    int64_t *instants = malloc(ARRIVALS_MAX * sizeof *instants);
    assert_non_null(instants);
    return instants;
}

/* Of 100,000 to be expected: the distances have the mean and the spread of an exponential
 * distribution, the counts of windows that of Poisson's. */
TEST_THAT(arrivals_are_those_of_a_poisson_process)
{
    enum { WINDOWS = 2000, WINDOW_US = 50000 };
    int64_t *instants = room();
    uint64_t n = instants_of(&thousand_per_s, instants);
    double sum = 0, squares = 0, counts[WINDOWS] = {0}, spread = 0, below = 0;
    assert_true(fabs((double)n - 1e5) < 4 * sqrt(1e5));
    for (uint64_t i = 0; i < n; i++) {
        double distance = (double)(instants[i] - (i == 0 ? START_US : instants[i - 1]));
        assert_true(distance >= 0);
        sum += distance;
        squares += distance * distance;
        below += distance < 1000 * log(2); /* the median */
        counts[(instants[i] - START_US) / WINDOW_US]++;
    }
    double mean = sum / (double)n, deviation = sqrt(squares / (double)n - mean * mean);
    assert_true(fabs(mean - 1000) < 15);
    assert_true(fabs(deviation / mean - 1) < 0.02);
    assert_true(fabs(below / (double)n - 0.5) < 0.01);
    for (int i = 0; i < WINDOWS; i++)
        spread += (counts[i] - 50) * (counts[i] - 50) / 50 / WINDOWS;
    assert_true(fabs(spread - 1) < 4 * sqrt(2.0 / WINDOWS));
    free(instants);
}

TEST_THAT(instants_depend_on_the_seed_and_not_on_the_threads)
{
    int64_t *one = room(), *other = room();
    struct load_options options = thousand_per_s;
    uint64_t n = instants_of(&options, one);
    options.threads = 3;
    assert_int_equal(instants_of(&options, other), n);
    assert_memory_equal(one, other, n * sizeof *one);
    options.seed = 2;
    uint64_t of_2 = instants_of(&options, other);
    uint64_t alike = 0;
    for (uint64_t i = 0; i < n && i < of_2; i++)
        alike += one[i] == other[i];
    assert_true(alike < n / 100);
    free(one);
    free(other);
}

TEST_THAT(what_is_due_is_what_is_dealt)
{
    int64_t *instants = room();
    static const enum load_mode modes[] = {LOAD_RATE, LOAD_RAMP};
    for (int i = 0; i < 2; i++) {
        struct load_options options = thousand_per_s;
        struct schedule schedule;
        options.mode = modes[i];
        options.duration_ms = 3000;
        uint64_t n = instants_of(&options, instants), due = 0;
        assert_int_equal(schedule_planned(&options, ARRIVALS_MAX), n);
        assert_int_equal(schedule_planned(&options, 17), 17);
        schedule_init(&schedule, &options);
        schedule_begin(&schedule, START_US, options.duration_ms);
        for (int64_t now_us = START_US; now_us < START_US + 3100000; now_us += 1009) {
            while (due < n && instants[due] < now_us)
                due++;
            assert_int_equal(schedule_due(&schedule, now_us, 0), due);
        }
        assert_int_equal(due, n);
        /* The end is set before what was counted already. */
        schedule_stop(&schedule, instants[n / 2] + 1);
        assert_int_equal(schedule_due(&schedule, INT64_MAX, 0), n / 2 + 1);
    }
    free(instants);
}

/* Of a ramp from 0 a quarter is due in the first half. */
TEST_THAT(ramp_thickens)
{
    int64_t *instants = room();
    struct load_options options = thousand_per_s;
    options.mode = LOAD_RAMP;
    double n = (double)instants_of(&options, instants), first = 0;
    for (uint64_t i = 0; i < (uint64_t)n; i++)
        first += instants[i] < START_US + options.duration_ms * 500;
    assert_true(fabs(n - 50000) < 4 * sqrt(50000));
    assert_true(fabs(first - 12500) < 4 * sqrt(12500));
    free(instants);
}

TEST_THAT(a_bound_on_the_requests_ends_it)
{
    int64_t *instants = room();
    struct load_options options = thousand_per_s;
    options.requests = 100;
    options.duration_ms = 0;
    assert_int_equal(instants_of(&options, instants), 100);
    struct schedule schedule;
    schedule_init(&schedule, &options);
    schedule_begin(&schedule, START_US, 0);
    assert_int_equal(schedule_due(&schedule, INT64_MAX, 0), 100);
    free(instants);
}
