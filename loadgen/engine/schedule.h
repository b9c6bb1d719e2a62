/*
 * Which request is due when: deals sequence numbers to the threads so that each is handled once.
 * One schedule is shared by all threads of a run; each has a cursor of its own.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "load.h"

#define SCHEDULE_NEVER_US INT64_MAX

/* A place in the sequence of requests, and on the axis on which they come one per unit on average:
 * evenly request i is at i, otherwise where a Poisson process of rate 1 has its i-th point. */
struct schedule_point {
    uint64_t seq;
    double at;
};

struct schedule {
    enum load_mode mode;
    enum load_arrivals arrivals;
    uint64_t seed;
    double rate;  /* per second; LOAD_RAMP: at the end */
    double from;  /* per second; LOAD_RAMP: at the start */
    double slope; /* LOAD_RAMP: by which the rate rises in a second, per second */
    int threads;
    int64_t start_us;
    _Atomic int64_t end_us;        /* what is due before it is sent, if a connection is free */
    _Atomic uint64_t requests;     /* bound on sequence numbers */
    _Atomic uint64_t next;         /* burst and closed: the next number */
    struct schedule_point counted; /* schedule_due(): those before it are due */
    int64_t counted_us;            /* when the last of them was */
};

struct schedule_cursor {
    struct schedule *schedule;
    struct schedule_point next; /* open model: this thread's next; it takes every threads-th */
};

/* Before the threads start; schedule_begin() when they are ready. */
void schedule_init(struct schedule *schedule, const struct load_options *options);
/* Sent at a time of its own, whatever becomes of the others: LOAD_RATE, LOAD_RAMP. */
bool schedule_is_open(enum load_mode mode);
void schedule_begin(struct schedule *schedule, int64_t start_us, int64_t duration_ms);
void schedule_cursor_init(struct schedule_cursor *cursor, struct schedule *schedule, int thread);

/* Takes the next request if one is due now. Any thread, each with its own cursor. */
bool schedule_take(struct schedule_cursor *cursor, int64_t now_us, uint64_t *ret_seq,
                   int64_t *ret_intended_us);
/* When this cursor's next request is due (may be past); SCHEDULE_NEVER_US: none is to come. */
int64_t schedule_next_us(const struct schedule_cursor *cursor);
/* No request is due from now on; what was due stays. Any thread. */
void schedule_stop(struct schedule *schedule, int64_t now_us);
/* The workload had nothing to send for seq: requests end before it. Any thread. */
void schedule_exhausted(struct schedule *schedule, uint64_t seq);
/* How many requests have fallen due by now, whatever became of them. `taken` answers for closed
 * mode, where a request is due when it is sent. One thread, the same each time. */
uint64_t schedule_due(struct schedule *schedule, int64_t now_us, uint64_t taken);
/* How many will fall due in the duration, at most `most`; an open model. */
uint64_t schedule_planned(const struct load_options *options, uint64_t most);

#endif
