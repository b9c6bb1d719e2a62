/*
 * One thread of a load: its connections, its share of the schedule, its counters. Threads share
 * only the schedule and the gate. load.c starts them and sums up.
 *
 * - load_thread.c   the loop: opening, waiting, deadlines, events
 * - load_sending.c  one sending: its start, its outcome, its retry
 */
#ifndef LOAD_THREAD_H
#define LOAD_THREAD_H

#include "connection.h"
#include "schedule.h"
#include "timers.h"

#include <pthread.h>

/* The threads wait here until all have opened their connections. Then the clock starts. */
struct load_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* on the monotonic clock */
    int ready, finished;    /* threads */
    atomic_uint wanted;     /* rises when the threads must copy their results for the progress */
    enum { GATE_CLOSED, GATE_OPEN, GATE_CANCELLED } state;
};

struct load_thread {
    pthread_t id;
    const struct load_options *options;
    const struct load_workload *workload;
    struct load_gate *gate;
    struct schedule_cursor cursor;

    struct connection *connections;
    struct sending *behind; /* the connections' arrays of pipelined requests; NULL without */
    int n_connections;
    struct connection_list idle, closed; /* free connections, the longest free first */
    struct connection_list busy;         /* in order of their deadlines */
    struct connection_list leaving;
    struct timers retries, wakes;
    uint64_t open; /* requests under way or waiting for a retry */

    int64_t now_us;   /* the clock as last read */
    bool starved;     /* no connection was free when last looked for */
    int64_t freed_us; /* when one became free after that */
    int64_t last_outcome_us;
    int64_t latest_us; /* the latest deadline of any answer; INT64_MAX until *stop */
    bool ended;        /* no new requests */
    struct load_result result;
    /* Under gate->mutex: */
    unsigned copied;         /* value of gate->wanted before the last copy */
    bool has_ended;          /* the copy is the last one */
    struct load_result copy; /* counters and latency; no histogram: no copy */

    char text[LOAD_REQUEST_MAX];
    struct connection_io io;
};

/* Fills in a zeroed thread. Returns 0, or -1 with errno. Call load_thread_free() in any case. */
int load_thread_init(struct load_thread *thread, int number, struct schedule *schedule,
                     const struct target_address *addresses);
void load_thread_free(struct load_thread *thread);
void *load_thread_run(void *thread);

/* Moves a connection to the end of a list of its thread. */
void load_thread_move(struct connection *connection, struct connection_list *list);
/* Moves a connection into the busy list at its deadline's place. That is the end, unless its next
 * request was pipelined before other connections sent theirs. */
void load_thread_await(struct load_thread *thread, struct connection *connection);

/* A connection that can take a request now; NULL: none. */
struct connection *load_sending_free(const struct load_thread *thread);
/* May a new request begin? In closed mode, a request that waits for a retry still counts as under
 * way. */
bool load_sending_may_begin(const struct load_thread *thread);
/* Starts due requests while a connection is free. True: more can start after handling events. */
bool load_sending_start_due(struct load_thread *thread);
/* Handles an event of a connection. */
void load_sending_event(struct load_thread *thread, struct connection *connection,
                        enum connection_event event);
/* The connection's deadline has passed. */
void load_sending_expire(struct load_thread *thread, struct connection *connection);
/* A timer of this connection in thread->wakes is due. */
void load_sending_wake(struct load_thread *thread, struct connection *connection);

#endif
