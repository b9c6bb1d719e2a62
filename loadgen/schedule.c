#include "schedule.h"

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

/* When seq is due. After t seconds of a ramp, from * t + slope * t^2 / 2 requests have fallen due:
 * solved for t in the form that stays exact when the slope is small. */
static int64_t due_us(const struct schedule *schedule, uint64_t seq)
{
    double n = (double)seq, from = schedule->from;
    if (schedule->mode == LOAD_RATE)
        return schedule->start_us + (int64_t)(n * 1e6 / schedule->rate);
    if (seq == 0)
        return schedule->start_us;
    double square = from * from + 2 * schedule->slope * n;
    if (square < 0) /* the rate has fallen to 0 before */
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
    schedule->rate = options->rate;
    schedule->from = options->ramp_from;
    if (options->mode == LOAD_RAMP)
        schedule->slope = (options->rate - options->ramp_from) * 1e3 / (double)options->duration_ms;
    schedule->threads = options->threads;
    schedule->start_us = 0;
    atomic_init(&schedule->end_us, SCHEDULE_NEVER_US);
    atomic_init(&schedule->requests, options->requests > 0 ? options->requests : UINT64_MAX);
    atomic_init(&schedule->next, 0);
}

void schedule_begin(struct schedule *schedule, int64_t start_us, int64_t duration_ms)
{
    schedule->start_us = start_us;
    if (duration_ms > 0)
        atomic_store(&schedule->end_us, start_us + duration_ms * 1000);
}

void schedule_cursor_init(struct schedule_cursor *cursor, struct schedule *schedule, int thread)
{
    *cursor = (struct schedule_cursor){.schedule = schedule, .next = (uint64_t)thread};
}

bool schedule_take(struct schedule_cursor *cursor, int64_t now_us, uint64_t *ret_seq,
                   int64_t *ret_intended_us)
{
    struct schedule *schedule = cursor->schedule;
    int64_t due = schedule_next_us(cursor);
    if (due > now_us)
        return false;
    if (schedule_is_open(schedule->mode)) {
        *ret_seq = cursor->next;
        *ret_intended_us = due;
        cursor->next += (uint64_t)schedule->threads;
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
    if (cursor->next >= bound(schedule))
        return SCHEDULE_NEVER_US;
    int64_t due = due_us(schedule, cursor->next);
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

uint64_t schedule_due(const struct schedule *schedule, int64_t now_us, uint64_t taken)
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
    /* Counted by due_us() itself: the formula alone disagrees with it by one. */
    uint64_t due = (uint64_t)about_due(schedule, now_us - schedule->start_us);
    while (due > 0 && due_us(schedule, due - 1) >= now_us)
        due--;
    while (due_us(schedule, due) < now_us)
        due++;
    return due < requests ? due : requests;
}
