/*
 * One thread of a load: its connections, its share of the schedule, its counters. Nothing is shared
 * between threads but the schedule and the gate. load.c starts them and sums up.
 *   load_thread.c   the loop: opening, waiting, deadlines, events
 *   load_sending.c  one sending: its start, its outcome, its retry
 */
#ifndef LOAD_THREAD_H
#define LOAD_THREAD_H

#include "connection.h"
#include "schedule.h"
#include "timers.h"

#include <pthread.h>

/* Threads meet here: all connections are open before the clock starts. */
struct load_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on the monotonic clock */
    int ready, finished;    /* threads */
    atomic_uint wanted;     /* rises when the threads are to copy their results for the progress */
    enum { GATE_CLOSED, GATE_OPEN, GATE_CANCELLED } state;
};

struct load_thread {
    pthread_t id;
    const struct load_options *options;
    const struct load_workload *workload;
    struct load_gate *gate;
    struct schedule_cursor cursor;

    struct connection *connections;
    struct sending *behind; /* their arrays of pipelined requests; NULL without */
    int n_connections;
    struct connection_list idle, closed; /* free ones, the longest free first */
    struct connection_list busy;         /* in order of their deadlines */
    struct connection_list leaving;
    struct timers retries, wakes;
    uint64_t open; /* requests begun and not concluded: under way, or waiting for a retry */

    int64_t now_us;   /* the clock as last read */
    bool starved;     /* no connection was free when last looked for */
    int64_t freed_us; /* when one became free after that */
    int64_t last_outcome_us;
    int64_t latest_us; /* no answer is waited for longer; INT64_MAX until *stop */
    bool ended;        /* no new requests */
    struct load_result result;
    unsigned copied;         /* value of gate->wanted at the last copy */
    struct load_result copy; /* counters and latency, under gate->mutex; no histogram: unwanted */

    char text[LOAD_REQUEST_MAX];
    struct connection_io io;
};

/* Fills in a zeroed thread. Returns 0, or -1 with errno. load_thread_free() in any case. */
int load_thread_init(struct load_thread *thread, int number, struct schedule *schedule,
                     const struct target_address *addresses);
void load_thread_free(struct load_thread *thread);
void *load_thread_run(void *thread);

/* Puts a connection at the end of another of its thread's lists. */
void load_thread_move(struct connection *connection, struct connection_list *list);
/* Puts it among the busy ones, at its deadline's place: the end, unless what it waits for next was
 * pipelined before other connections' requests were sent. */
void load_thread_await(struct load_thread *thread, struct connection *connection);

/* Until when the answer to what was sent then is waited for. */
int64_t load_sending_deadline_us(const struct load_thread *thread, int64_t sent_us);
/* A connection that a request can be given to now; NULL: none. */
struct connection *load_sending_free(const struct load_thread *thread);
/* May a new request begin? Closed: no client has two, even while one of them waits for a retry. */
bool load_sending_may_begin(const struct load_thread *thread);
/* Starts what is due as long as a connection is free. True: more could start at once, but events
 * should have their turn first. */
bool load_sending_start_due(struct load_thread *thread);
/* Acts on what happened to a connection. */
void load_sending_event(struct load_thread *thread, struct connection *connection,
                        enum connection_event event);
/* The connection's deadline has passed. */
void load_sending_expire(struct load_thread *thread, struct connection *connection);
/* The time of a timer in thread->wakes has come. */
void load_sending_wake(struct load_thread *thread, struct connection *connection);

#endif
