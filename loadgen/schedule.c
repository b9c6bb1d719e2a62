#include "schedule.h"

static uint64_t bound(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->requests, memory_order_relaxed);
}

static int64_t end_us(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->end_us, memory_order_relaxed);
}

static int64_t due_us(const struct schedule *schedule, uint64_t seq)
{
    return schedule->start_us + (int64_t)((double)seq * 1e6 / schedule->rate);
}

void schedule_init(struct schedule *schedule, const struct load_options *options)
{
    schedule->mode = options->mode;
    schedule->rate = options->rate;
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
    if (schedule->mode == LOAD_RATE) {
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
    if (schedule->mode != LOAD_RATE) {
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
    /* Counted by due_us() itself, from just below: the division alone disagrees with it by one. */
    uint64_t due = (uint64_t)((double)(now_us - schedule->start_us) * schedule->rate / 1e6);
    while (due_us(schedule, due) < now_us)
        due++;
    return due < requests ? due : requests;
}
