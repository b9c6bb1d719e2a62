/* Lanes and the threads' turns; for lanes.c and lanes_turn.c only. Everything here is used under
 * the mutex. */
#ifndef LANES_PRIVATE_H
#define LANES_PRIVATE_H

#include "lanes.h"

#include <pthread.h>

/* uthash ends the process without memory unless told otherwise. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Operations of one resource in order of arrival. In the hash while it has a name; in a run queue
 * while it waits for a thread; freed by the thread that finds it empty. */
struct lane {
    char name[DB_RESOURCE_MAX + 1];
    struct op *head, *tail;
    size_t n;
    bool alone;        /* its next turn is by itself */
    uint64_t place;    /* in the order of arrival in a run queue */
    struct lane *next; /* run queue */
    UT_hash_handle hh;
};

struct run_queue {
    struct lane *head, *tail;
};

struct thread {
    struct lanes *lanes;
    pthread_t id;
    bool started;
    void *state;
    struct op **ops;       /* of the turn */
    pthread_cond_t wanted; /* not idle any more */
    bool idle;
    struct thread *next_idle;
};

struct lanes {
    struct lanes_options options;
    pthread_mutex_t mutex;
    struct lane *by_name;
    struct run_queue singles, company; /* by itself; may be served together */
    uint64_t n_places;
    size_t n_companies; /* served together now */
    size_t waiting;
    struct thread *idle; /* who came last stands first: his caches are warm */
    bool waking;         /* a thread has been called and has not come yet */
    bool closing;
    struct thread threads[];
};

/* Of the line that may be served together, now; of any. */
bool lanes_have_company(const struct lanes *lanes);
bool lanes_have_work(const struct lanes *lanes);
/* Calls an idle thread if there is work. One at a time: who comes takes what he can, and calls the
 * next one if something is left. */
void lanes_call(struct lanes *lanes);

struct lane *run_queue_pop(struct run_queue *queue);
/* As many as a batch has. */
size_t lane_take(struct lanes *lanes, struct lane *lane, struct op **ret_ops);
/* What was left of a share, n >= 0: to the front of its lane, whose next turn is by itself. */
void lane_put_back(struct lanes *lanes, struct lane *lane, struct op **ops, size_t n);
/* After a turn: to the end of the line, or away. */
void lane_return(struct lanes *lanes, struct lane *lane);

/* lanes_turn.c: what a thread does; arg: its struct thread. */
void *lanes_thread(void *arg);

#endif
