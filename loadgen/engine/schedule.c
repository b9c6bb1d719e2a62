/*
 * Poisson arrivals with a changing rate come from a process of rate 1 by a change of time: a point
 * at x is due when x requests are expected to be due. Source: E. Cinlar, Introduction to
 * Stochastic Processes (1975), section 4.7.
 */
#include "schedule.h"
#include "splitmix.h"

#include <math.h>

bool schedule_is_open(enum load_mode mode)
{
    return mode == LOAD_RATE || mode == LOAD_RAMP;
}

static uint64_t bound(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->requests, memory_order_relaxed);
}

static int64_t end_us(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->end_us, memory_order_relaxed);
}

/* The distance of the point seq from the one before: exponentially distributed. */
static double gap(const struct schedule *schedule, uint64_t seq)
{
    uint64_t dice = splitmix(splitmix(schedule->seed) ^ splitmix(seq));
    return -log(1 - (double)(dice >> 11) * 0x1p-53);
}

static struct schedule_point first_point(const struct schedule *schedule)
{
    return (struct schedule_point){.at = schedule->arrivals == LOAD_POISSON ? gap(schedule, 0) : 0};
}

static void advance(const struct schedule *schedule, struct schedule_point *point, uint64_t steps)
{
    uint64_t to = point->seq + steps;
    if (schedule->arrivals == LOAD_POISSON)
        while (point->seq < to)
            point->at += gap(schedule, ++point->seq);
    else
        point->at = (double)to;
    point->seq = to;
}

/* When n requests are expected to be due. After t seconds of a ramp, from * t + slope * t^2 / 2
 * are due. This is solved for t in the form that stays exact for a small slope. */
static int64_t due_us(const struct schedule *schedule, double n)
{
    double from = schedule->from;
    if (schedule->mode == LOAD_RATE)
        return schedule->start_us + (int64_t)(n * 1e6 / schedule->rate);
    if (n == 0)
        return schedule->start_us;
    double square = from * from + 2 * schedule->slope * n;
    if (square < 0) /* the rate falls to 0 before */
        return SCHEDULE_NEVER_US;
    return schedule->start_us + (int64_t)(2e6 * n / (from + sqrt(square)));
}

/* About how many are due `us` after the start; due_us() decides. */
static double about_due(const struct schedule *schedule, int64_t us)
{
    double t = (double)us / 1e6;
    return schedule->mode == LOAD_RATE ? t * schedule->rate
                                       : t * (schedule->from + schedule->slope * t / 2);
}

void schedule_init(struct schedule *schedule, const struct load_options *options)
{
    schedule->mode = options->mode;
    schedule->arrivals = options->arrivals;
    schedule->seed = options->seed;
    schedule->rate = options->rate;
    schedule->from = options->ramp_from;
    if (options->mode == LOAD_RAMP)
        schedule->slope = (options->rate - options->ramp_from) * 1e3 / (double)options->duration_ms;
    schedule->threads = options->threads;
    schedule->start_us = 0;
    atomic_init(&schedule->end_us, SCHEDULE_NEVER_US);
    atomic_init(&schedule->requests, options->requests > 0 ? options->requests : UINT64_MAX);
    atomic_init(&schedule->next, 0);
    schedule->counted = first_point(schedule);
    schedule->counted_us = INT64_MIN;
}

void schedule_begin(struct schedule *schedule, int64_t start_us, int64_t duration_ms)
{
    schedule->start_us = start_us;
    if (duration_ms > 0)
        atomic_store(&schedule->end_us, start_us + duration_ms * 1000);
}

void schedule_cursor_init(struct schedule_cursor *cursor, struct schedule *schedule, int thread)
{
    *cursor = (struct schedule_cursor){.schedule = schedule, .next = first_point(schedule)};
    if (schedule_is_open(schedule->mode))
        advance(schedule, &cursor->next, (uint64_t)thread);
}

bool schedule_take(struct schedule_cursor *cursor, int64_t now_us, uint64_t *ret_seq,
                   int64_t *ret_intended_us)
{
    struct schedule *schedule = cursor->schedule;
    int64_t due = schedule_next_us(cursor);
    if (due > now_us)
        return false;
    if (schedule_is_open(schedule->mode)) {
        *ret_seq = cursor->next.seq;
        *ret_intended_us = due;
        advance(schedule, &cursor->next, (uint64_t)schedule->threads);
        return true;
    }
    if (schedule->mode == LOAD_CLOSED && now_us >= end_us(schedule))
        return false;
    uint64_t seq = atomic_fetch_add_explicit(&schedule->next, 1, memory_order_relaxed);
    if (seq >= bound(schedule))
        return false;
    *ret_seq = seq;
    *ret_intended_us = schedule->mode == LOAD_BURST ? schedule->start_us : now_us;
    return true;
}

int64_t schedule_next_us(const struct schedule_cursor *cursor)
{
    const struct schedule *schedule = cursor->schedule;
    if (!schedule_is_open(schedule->mode)) {
        bool more = atomic_load_explicit(&schedule->next, memory_order_relaxed) < bound(schedule);
        return more ? schedule->start_us : SCHEDULE_NEVER_US;
    }
    if (cursor->next.seq >= bound(schedule))
        return SCHEDULE_NEVER_US;
    int64_t due = due_us(schedule, cursor->next.at);
    return due < end_us(schedule) ? due : SCHEDULE_NEVER_US;
}

void schedule_stop(struct schedule *schedule, int64_t now_us)
{
    int64_t end = end_us(schedule);
    while (now_us < end && !atomic_compare_exchange_weak(&schedule->end_us, &end, now_us)) {
    }
}

void schedule_exhausted(struct schedule *schedule, uint64_t seq)
{
    uint64_t requests = bound(schedule);
    while (seq < requests && !atomic_compare_exchange_weak(&schedule->requests, &requests, seq)) {
    }
}

/* Counts random instants one by one, from where the last count ended. It starts again if time has
 * gone back: schedule_stop() may set an earlier end. */
static uint64_t count_points(struct schedule *schedule, int64_t now_us, uint64_t requests)
{
    if (schedule->counted_us >= now_us) {
        schedule->counted = first_point(schedule);
        schedule->counted_us = INT64_MIN;
    }
    int64_t due;
    while (schedule->counted.seq < requests &&
           (due = due_us(schedule, schedule->counted.at)) < now_us) {
        schedule->counted_us = due;
        advance(schedule, &schedule->counted, 1);
    }
    return schedule->counted.seq < requests ? schedule->counted.seq : requests;
}

uint64_t schedule_due(struct schedule *schedule, int64_t now_us, uint64_t taken)
{
    int64_t end = end_us(schedule);
    uint64_t requests = bound(schedule);
    if (schedule->mode == LOAD_CLOSED)
        return taken;
    if (schedule->mode == LOAD_BURST)
        return requests;
    if (now_us > end)
        now_us = end;
    if (now_us <= schedule->start_us)
        return 0;
    if (schedule->arrivals == LOAD_POISSON)
        return count_points(schedule, now_us, requests);
    /* The formula can be off by one: due_us() decides. */
    uint64_t due = (uint64_t)about_due(schedule, now_us - schedule->start_us);
    while (due > 0 && due_us(schedule, (double)(due - 1)) >= now_us)
        due--;
    while (due_us(schedule, (double)due) < now_us)
        due++;
    return due < requests ? due : requests;
}

uint64_t schedule_planned(const struct load_options *options, uint64_t most)
{
    struct load_options bounded = *options;
    struct schedule schedule;
    bounded.requests = most;
    schedule_init(&schedule, &bounded);
    schedule_begin(&schedule, 0, options->duration_ms);
    return schedule_due(&schedule, INT64_MAX, 0);
}
