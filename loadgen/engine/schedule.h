/*
 * Which request is due when. Gives out sequence numbers so that one thread handles each. All
 * threads of a run share one schedule. Each has its own cursor.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "load.h"

#define SCHEDULE_NEVER_US INT64_MAX

/* A request's number, and its place on an axis with one request per unit on average:
 * - LOAD_EVEN: request i is at i
 * - LOAD_POISSON: request i is at the i-th point of a Poisson process of rate 1 */
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
    double slope; /* LOAD_RAMP: rise of the rate per second, per second */
    int threads;
    int64_t start_us;
    _Atomic int64_t end_us;        /* requests due before it are sent if a connection is free */
    _Atomic uint64_t requests;     /* bound on sequence numbers */
    _Atomic uint64_t next;         /* burst and closed: the next number */
    struct schedule_point counted; /* schedule_due(): the requests before it are due */
    int64_t counted_us;            /* when the last of them was due */
};

struct schedule_cursor {
    struct schedule *schedule;
    struct schedule_point next; /* open model: this thread's next; it takes every threads-th */
};

/* Call before the threads start, and schedule_begin() when they are ready. */
void schedule_init(struct schedule *schedule, const struct load_options *options);
/* Open model (LOAD_RATE, LOAD_RAMP): each request is due at its own time, whatever happens to
 * others. */
bool schedule_is_open(enum load_mode mode);
void schedule_begin(struct schedule *schedule, int64_t start_us, int64_t duration_ms);
void schedule_cursor_init(struct schedule_cursor *cursor, struct schedule *schedule, int thread);

/* Takes the next request if one is due now. Any thread, each with its own cursor. */
bool schedule_take(struct schedule_cursor *cursor, int64_t now_us, uint64_t *ret_seq,
                   int64_t *ret_intended_us);
/* When this cursor's next request is due, perhaps in the past. SCHEDULE_NEVER_US: none is left. */
int64_t schedule_next_us(const struct schedule_cursor *cursor);
/* No request falls due after now_us. Any thread. */
void schedule_stop(struct schedule *schedule, int64_t now_us);
/* The workload had nothing to send for seq: it and all later requests are cancelled. Any thread. */
void schedule_exhausted(struct schedule *schedule, uint64_t seq);
/* How many requests were due by now, sent or not. In closed mode this is `taken`: a request is due
 * when it is sent. Call it from one thread only. */
uint64_t schedule_due(struct schedule *schedule, int64_t now_us, uint64_t taken);
/* How many will fall due in the duration, at most `most`. For an open model. */
uint64_t schedule_planned(const struct load_options *options, uint64_t most);

#endif
