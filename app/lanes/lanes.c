#include "lanes_private.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREAD_STACK_BYTES = 1024 * 1024,
    MANY_THREADS_MAX = 2 /* while one waits for the lock server, the other one writes */
};

static void call_thread(struct lanes *lanes);

static bool start_thread(struct lanes *lanes, struct thread *thread)
{
    pthread_attr_t attr;
    thread->lanes = lanes;
    pthread_cond_init(&thread->wanted, NULL);
    thread->ops = calloc(lanes->options.batch, sizeof *thread->ops);
    thread->state = lanes->options.state_new(lanes->options.ctx);
    if (!thread->ops || !thread->state)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    thread->started = pthread_create(&thread->id, &attr, lanes_thread, thread) == 0;
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
    while (lanes->idle)
        call_thread(lanes);
    pthread_mutex_unlock(&lanes->mutex);
    for (size_t i = 0; i < lanes->options.threads && lanes->threads[i].lanes; i++) {
        struct thread *thread = &lanes->threads[i];
        if (thread->started)
            pthread_join(thread->id, NULL);
        if (thread->state)
            lanes->options.state_free(thread->state);
        free(thread->ops);
        pthread_cond_destroy(&thread->wanted);
    }
    assert(!lanes->single.head && !lanes->many.head && !lanes->by_name);
    pthread_mutex_destroy(&lanes->mutex);
    free(lanes);
}

/* -- under the mutex -------------------------------------------------------------------------- */

static void run_queue_push(struct lanes *lanes, struct lane *lane)
{
    bool many = lanes->options.serve_many && !lane->next_single && lane->name[0];
    struct run_queue *queue = many ? &lanes->many : &lanes->single;
    lane->place = lanes->n_places++;
    lane->next = NULL;
    if (queue->tail)
        queue->tail->next = lane;
    else
        queue->head = lane;
    queue->tail = lane;
}

struct lane *run_queue_pop(struct run_queue *queue)
{
    struct lane *lane = queue->head;
    queue->head = lane->next;
    if (!queue->head)
        queue->tail = NULL;
    return lane;
}

bool lanes_have_many(const struct lanes *lanes)
{
    return lanes->many.head && lanes->n_many < MANY_THREADS_MAX;
}

bool lanes_have_work(const struct lanes *lanes)
{
    return lanes->single.head || lanes_have_many(lanes);
}

static void call_thread(struct lanes *lanes)
{
    struct thread *thread = lanes->idle;
    lanes->idle = thread->next_idle;
    thread->idle = false;
    pthread_cond_signal(&thread->wanted);
}

void lanes_call(struct lanes *lanes)
{
    if (lanes->waking || !lanes->idle || !lanes_have_work(lanes))
        return;
    lanes->waking = true;
    call_thread(lanes);
}

static void lane_push(struct lanes *lanes, struct lane *lane, struct op *op)
{
    op->next = NULL;
    if (lane->tail)
        lane->tail->next = op;
    else
        lane->head = op;
    lane->tail = op;
    lane->n++;
    lanes->waiting++;
}

/* The lane for an operation of this name. A new lane is already in the run queue. */
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

size_t lane_take(struct lanes *lanes, struct lane *lane, struct op **ret_ops)
{
    size_t n = 0;
    while (lane->head && n < lanes->options.batch) {
        ret_ops[n++] = lane->head;
        lane->head = lane->head->next;
    }
    if (!lane->head)
        lane->tail = NULL;
    lane->n -= n;
    lanes->waiting -= n;
    return n;
}

void lane_put_back(struct lanes *lanes, struct lane *lane, struct op **ops, size_t n)
{
    lane->next_single = n > 0;
    for (size_t i = n; i-- > 0;) {
        ops[i]->next = lane->head;
        lane->head = ops[i];
        if (!lane->tail)
            lane->tail = ops[i];
    }
    lane->n += n;
    lanes->waiting += n;
}

void lane_return(struct lanes *lanes, struct lane *lane)
{
    if (lane->head) {
        run_queue_push(lanes, lane);
        return;
    }
    if (lane->name[0])
        HASH_DEL(lanes->by_name, lane);
    free(lane);
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
    lanes_call(lanes);
    pthread_mutex_unlock(&lanes->mutex);
    return lane != NULL;
}

/* Gives op a lane of its own. False: no memory. */
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
    if (lane) { /* the next operation of this name makes a new lane */
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
        lane->n--;
        lanes->waiting--;
    }
    if (lane && !lane->head)
        lane->tail = NULL;
    lanes_call(lanes);
    pthread_mutex_unlock(&lanes->mutex);
    return spread;
}

bool lanes_goes_on(struct lanes *lanes, const char *name)
{
    struct lane *lane;
    pthread_mutex_lock(&lanes->mutex);
    HASH_FIND_STR(lanes->by_name, name, lane);
    bool goes_on = lane && lane->head && !lanes->single.head && !lanes->many.head;
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

/* -- withdrawing ------------------------------------------------------------------------------ */

struct withdrawal {
    struct lanes *lanes;
    bool (*gone)(const struct op *op);
    struct op *ops;
};

static void lane_withdraw(struct withdrawal *w, struct lane *lane)
{
    struct op **at = &lane->head;
    lane->tail = NULL;
    while (*at) {
        struct op *op = *at;
        if (!w->gone(op)) {
            lane->tail = op;
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = w->ops;
        w->ops = op;
        lane->n--;
        w->lanes->waiting--;
    }
}

/* A lane that is empty then leaves the queue: strangers may have made thousands. */
static void queue_withdraw(struct withdrawal *w, struct run_queue *queue)
{
    struct lane **at = &queue->head;
    queue->tail = NULL;
    while (*at) {
        struct lane *lane = *at;
        lane_withdraw(w, lane);
        if (lane->head) {
            queue->tail = lane;
            at = &lane->next;
        } else {
            *at = lane->next;
            lane_return(w->lanes, lane);
        }
    }
}

struct op *lanes_withdraw(struct lanes *lanes, bool (*gone)(const struct op *op))
{
    struct withdrawal w = {.lanes = lanes, .gone = gone};
    pthread_mutex_lock(&lanes->mutex);
    if (lanes->waiting > 0) { /* also in the lanes that a thread serves now */
        for (struct lane *lane = lanes->by_name; lane; lane = lane->hh.next)
            lane_withdraw(&w, lane);
        queue_withdraw(&w, &lanes->single);
        queue_withdraw(&w, &lanes->many);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return w.ops;
}

size_t lanes_waiting(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    size_t waiting = lanes->waiting;
    pthread_mutex_unlock(&lanes->mutex);
    return waiting;
}
