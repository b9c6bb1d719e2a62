#include "lanes.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* uthash ends the process without memory unless told otherwise. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { THREAD_STACK_BYTES = 512 * 1024 };

/* Operations of one resource in order of arrival. In the hash while it has a name; in the run queue
 * while it waits for a thread; freed by the thread that finds it empty. */
struct lane {
    char name[DB_RESOURCE_MAX + 1];
    struct op *head, *tail;
    struct lane *next; /* run queue */
    UT_hash_handle hh;
};

struct thread {
    struct lanes *lanes;
    pthread_t id;
    bool started;
    void *state;
    struct op **ops; /* of the turn */
};

struct lanes {
    struct lanes_options options;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct lane *by_name;
    struct lane *head, *tail; /* the run queue */
    size_t waiting, idle;
    bool closing;
    struct thread threads[];
};

static void *run_thread(void *arg);

static bool start_thread(struct lanes *lanes, struct thread *thread)
{
    pthread_attr_t attr;
    thread->lanes = lanes;
    thread->ops = calloc(lanes->options.batch, sizeof *thread->ops);
    thread->state = lanes->options.state_new(lanes->options.ctx);
    if (!thread->ops || !thread->state)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    thread->started = pthread_create(&thread->id, &attr, run_thread, thread) == 0;
    pthread_attr_destroy(&attr);
    if (thread->started)
        pthread_setname_np(thread->id, lanes->options.thread_name);
    return thread->started;
}

struct lanes *lanes_open(const struct lanes_options *options)
{
    assert(options->threads > 0 && options->batch > 0);
    struct lanes *lanes = calloc(1, sizeof *lanes + options->threads * sizeof lanes->threads[0]);
    if (!lanes)
        return NULL;
    lanes->options = *options;
    pthread_mutex_init(&lanes->mutex, NULL);
    pthread_cond_init(&lanes->work, NULL);
    for (size_t i = 0; i < options->threads; i++) {
        if (!start_thread(lanes, &lanes->threads[i])) {
            lanes_close(lanes);
            return NULL;
        }
    }
    return lanes;
}

void lanes_close(struct lanes *lanes)
{
    if (!lanes)
        return;
    pthread_mutex_lock(&lanes->mutex);
    lanes->closing = true;
    pthread_cond_broadcast(&lanes->work);
    pthread_mutex_unlock(&lanes->mutex);
    for (size_t i = 0; i < lanes->options.threads; i++) {
        struct thread *thread = &lanes->threads[i];
        if (thread->started)
            pthread_join(thread->id, NULL);
        if (thread->state)
            lanes->options.state_free(thread->state);
        free(thread->ops);
    }
    assert(!lanes->head && !lanes->by_name);
    pthread_cond_destroy(&lanes->work);
    pthread_mutex_destroy(&lanes->mutex);
    free(lanes);
}

/* -- under the mutex -------------------------------------------------------------------------- */

static void run_queue_push(struct lanes *lanes, struct lane *lane)
{
    lane->next = NULL;
    if (lanes->tail)
        lanes->tail->next = lane;
    else
        lanes->head = lane;
    lanes->tail = lane;
    if (lanes->idle > 0)
        pthread_cond_signal(&lanes->work);
}

static struct lane *run_queue_pop(struct lanes *lanes)
{
    struct lane *lane = lanes->head;
    lanes->head = lane->next;
    if (!lanes->head)
        lanes->tail = NULL;
    return lane;
}

static void lane_push(struct lanes *lanes, struct lane *lane, struct op *op)
{
    op->next = NULL;
    if (lane->tail)
        lane->tail->next = op;
    else
        lane->head = op;
    lane->tail = op;
    lanes->waiting++;
}

/* The lane to put an operation of this name into; a new one is in the run queue already. */
static struct lane *lane_for(struct lanes *lanes, const char *name)
{
    struct lane *lane = NULL;
    if (name)
        HASH_FIND_STR(lanes->by_name, name, lane);
    if (lane)
        return lane;
    lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    if (name) {
        snprintf(lane->name, sizeof lane->name, "%s", name);
        HASH_ADD_STR(lanes->by_name, name, lane);
        if (!lane->hh.tbl) { /* no memory for the table */
            free(lane);
            return NULL;
        }
    }
    run_queue_push(lanes, lane);
    return lane;
}

static size_t lane_take(struct lanes *lanes, struct lane *lane, struct op **ret_ops)
{
    size_t n = 0;
    while (lane->head && n < lanes->options.batch) {
        ret_ops[n++] = lane->head;
        lane->head = lane->head->next;
    }
    if (!lane->head)
        lane->tail = NULL;
    lanes->waiting -= n;
    return n;
}

/* After a turn: to the end of the line, or away. */
static void lane_return(struct lanes *lanes, struct lane *lane)
{
    if (lane->head) {
        run_queue_push(lanes, lane);
        return;
    }
    if (lane->name[0])
        HASH_DEL(lanes->by_name, lane);
    free(lane);
}

/* -- serving ---------------------------------------------------------------------------------- */

static void *run_thread(void *arg)
{
    struct thread *thread = arg;
    struct lanes *lanes = thread->lanes;
    pthread_mutex_lock(&lanes->mutex);
    for (;;) {
        while (!lanes->head && !lanes->closing) {
            lanes->idle++;
            pthread_cond_wait(&lanes->work, &lanes->mutex);
            lanes->idle--;
        }
        if (!lanes->head)
            break;
        struct lane *lane = run_queue_pop(lanes);
        size_t n = lane_take(lanes, lane, thread->ops);
        pthread_mutex_unlock(&lanes->mutex);
        if (n > 0) /* else it was spread before its turn */
            lanes->options.serve(thread->state, thread->ops, n);
        pthread_mutex_lock(&lanes->mutex);
        lane_return(lanes, lane);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}

/* -- submitting ------------------------------------------------------------------------------- */

bool lanes_submit(struct lanes *lanes, const char *name, struct op *op)
{
    pthread_mutex_lock(&lanes->mutex);
    assert(!lanes->closing);
    struct lane *lane = NULL;
    if (lanes->waiting < lanes->options.waiting_max)
        lane = lane_for(lanes, name);
    if (lane)
        lane_push(lanes, lane, op);
    pthread_mutex_unlock(&lanes->mutex);
    return lane != NULL;
}

/* A lane of its own for op. */
static bool detach(struct lanes *lanes, struct op *op)
{
    struct lane *lane = lane_for(lanes, NULL);
    if (lane)
        lane_push(lanes, lane, op);
    return lane != NULL;
}

size_t lanes_spread(struct lanes *lanes, const char *name, struct op **ops, size_t n)
{
    struct lane *lane;
    size_t spread = 0;
    pthread_mutex_lock(&lanes->mutex);
    while (spread < n && detach(lanes, ops[spread]))
        spread++;
    HASH_FIND_STR(lanes->by_name, name, lane);
    if (lane) { /* a new one will be made for whoever comes */
        HASH_DEL(lanes->by_name, lane);
        lane->name[0] = '\0';
    }
    while (lane && lane->head) {
        struct op *op = lane->head, *rest = op->next;
        if (!detach(lanes, op)) {
            op->next = rest;
            break;
        }
        lane->head = rest;
        lanes->waiting--;
    }
    if (lane && !lane->head)
        lane->tail = NULL;
    pthread_mutex_unlock(&lanes->mutex);
    return spread;
}

bool lanes_goes_on(struct lanes *lanes, const char *name)
{
    struct lane *lane;
    pthread_mutex_lock(&lanes->mutex);
    HASH_FIND_STR(lanes->by_name, name, lane);
    bool goes_on = lane && lane->head && !lanes->head;
    pthread_mutex_unlock(&lanes->mutex);
    return goes_on;
}

size_t lanes_more(struct lanes *lanes, const char *name, struct op **ops)
{
    struct lane *lane;
    pthread_mutex_lock(&lanes->mutex);
    HASH_FIND_STR(lanes->by_name, name, lane);
    size_t n = lane ? lane_take(lanes, lane, ops) : 0;
    pthread_mutex_unlock(&lanes->mutex);
    return n;
}

size_t lanes_waiting(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    size_t waiting = lanes->waiting;
    pthread_mutex_unlock(&lanes->mutex);
    return waiting;
}
