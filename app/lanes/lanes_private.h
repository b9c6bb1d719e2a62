/* Between lanes.c and lanes_turn.c. Everything here is used under the mutex. */
#ifndef LANES_PRIVATE_H
#define LANES_PRIVATE_H

#include "hash_map.h"
#include "lanes.h"

#include <pthread.h>

/* Operations of one resource in order of arrival. In the hash while it has a name; in a run queue
 * while it waits for a thread; freed by the thread that finds it empty. */
struct lane {
    char name[DB_RESOURCE_MAX + 1];
    struct op *head, *tail;
    size_t n;
    bool next_single;  /* its next turn is a serve() */
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
    struct run_queue single, many; /* for serve(); for serve_many() */
    uint64_t n_places;
    size_t n_many; /* threads in serve_many() */
    size_t waiting;
    struct thread *idle; /* the last one first: its caches are warm */
    bool waking;         /* a thread was called and has not started yet */
    bool closing;
    struct thread threads[];
};

/* Whether there is work for serve_many() now; for any thread. */
bool lanes_have_many(const struct lanes *lanes);
bool lanes_have_work(const struct lanes *lanes);
/* Calls an idle thread if there is work. One at a time: a thread takes its turn, then calls the
 * next one if there is more work. */
void lanes_call(struct lanes *lanes);

struct lane *run_queue_pop(struct run_queue *queue);
/* Takes up to a batch. */
size_t lane_take(struct lanes *lanes, struct lane *lane, struct op **ret_ops);
/* Puts n >= 0 postponed operations back to the front. If n > 0, the lane's next turn is a serve().
 */
void lane_put_back(struct lanes *lanes, struct lane *lane, struct op **ops, size_t n);
/* After a turn: puts the lane at the end of the line, or frees it if it is empty. */
void lane_return(struct lanes *lanes, struct lane *lane);

/* lanes_turn.c: the body of a thread. arg: its struct thread. */
void *lanes_thread(void *arg);

#endif
