#include "redis_mux_combine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

/* -- a caller --------------------------------------------------------------------------------- */

/* What a caller has to do once its requests are queued. */
enum task { TASK_SLEEP, TASK_COMBINE, TASK_WRITE_AHEAD };

/* As many requests are queued as are under way. In the long run each batch has half of the callers:
 * Redis works for one half while the other half wakes up and asks again. */
static bool is_time_to_write_ahead(const lk_redis_mux *mux)
{
    size_t under_way = atomic_load(&mux->under_way);
    return mux->ahead_is == AHEAD_NONE && under_way > 0 && mux->queue.n >= under_way;
}

static enum task enqueue(lk_redis_mux *mux, lk_redis_request *requests, size_t n,
                         struct lk_redis_caller *caller)
{
    enum task task = TASK_SLEEP;
    pthread_mutex_lock(&mux->mutex);
    caller->event = mux->event;
    mux->event = event_of_others(mux->event);
    for (size_t i = 0; i < n; i++) {
        requests[i].reply->replicas = 0;
        requests_add(&mux->queue, &requests[i]);
    }
    if (!mux->busy) {
        mux->busy = true;
        task = TASK_COMBINE;
    } else if (is_time_to_write_ahead(mux)) {
        mux->ahead_is = AHEAD_WRITING;
        lk_redis_mux_fill(mux, &mux->ahead);
        task = TASK_WRITE_AHEAD;
    }
    pthread_mutex_unlock(&mux->mutex);
    return task;
}

bool lk_redis_caller_sleep(lk_redis_mux *mux, struct lk_redis_caller *caller)
{
    uint32_t began = lk_event_set_count(&mux->event_set);
    lk_spinning spinning = lk_spin_begin(&mux->spin);
    for (;;) {
        uint32_t signals = lk_event_set_count(&mux->event_set);
        bool combine = atomic_load(&caller->combine);
        if (combine || atomic_load(&caller->unanswered) == 0) {
            lk_spin_found(&spinning);
            return combine;
        }
        if (signals != began)
            spinning = lk_spin_begin(&mux->spin);
        began = signals;
        if (!lk_spin_on(&spinning))
            lk_event_set_wait(&mux->event_set, signals, caller->event);
    }
}

/* Returns when all are answered. They may stand in two batches. */
static void run(lk_redis_mux *mux, lk_redis_request *requests, size_t n)
{
    struct lk_redis_caller caller = {.unanswered = n};
    for (size_t i = 0; i < n; i++)
        requests[i].caller = &caller;
    enum task task = enqueue(mux, requests, n, &caller);
    bool done = (task == TASK_COMBINE && lk_redis_combine(mux, &caller)) ||
                (task == TASK_WRITE_AHEAD && lk_redis_write_ahead(mux, &caller));
    while (!done)
        done = !lk_redis_caller_sleep(mux, &caller) || lk_redis_combine(mux, &caller);
}

lk_status lk_redis_mux_run(lk_redis_mux *mux, int flags, lk_redis_reply *reply, int n,
                           const char **words)
{
    lk_redis_request request;
    if (!lk_redis_encode(&request.command, n, words))
        return LK_NO_MEMORY;
    request.reply = reply;
    request.flags = flags;
    run(mux, &request, 1);
    lk_redis_encoded_free(&request.command);
    return request.status;
}

void lk_redis_mux_run_each(lk_redis_mux *mux, lk_redis_query *const *queries, size_t n)
{
    lk_redis_request requests[LK_EACH_MAX];
    size_t made = 0;
    assert(n <= LK_EACH_MAX);
    for (; made < n; made++) {
        if (!lk_redis_encode(&requests[made].command, queries[made]->n, queries[made]->words))
            break;
        requests[made].reply = queries[made]->reply;
        requests[made].flags = queries[made]->flags;
    }
    if (made > 0)
        run(mux, requests, made);
    for (size_t i = 0; i < n; i++)
        queries[i]->status = i < made ? requests[i].status : LK_NO_MEMORY;
    while (made > 0)
        lk_redis_encoded_free(&requests[--made].command);
}

/* -- opening and closing ---------------------------------------------------------------------- */

lk_redis_mux *lk_redis_mux_open(const lk_context *context, lk_redis_topology *topology)
{
    const lk_options *options = context->options;
    lk_redis_mux *mux = calloc(1, sizeof *mux);
    if (mux == NULL)
        return NULL;
    mux->context = context;
    mux->topology = topology;
    mux->timeout_us = options->command_timeout_ms * US_PER_MS;
    mux->replicas_us = options->replicas_ms * US_PER_MS;
    snprintf(mux->wait_command, sizeof mux->wait_command, "WAIT %" PRId32 " %" PRId64 "\r\n",
             options->replicas, options->replicas_ms);
    mux->event = EVENT_FIRST;
    pthread_mutex_init(&mux->mutex, NULL);
    requests_init(&mux->queue);
    requests_init(&mux->batch.requests);
    requests_init(&mux->ahead.requests);
    lk_redis_connection_init(&mux->connection);
    mux->spin.most_us = options->spin_us;
    mux->connection.spin.most_us = options->spin_us;
    return mux;
}

void lk_redis_mux_close(lk_redis_mux *mux)
{
    assert(!mux->busy);
    lk_redis_connection_close(&mux->connection);
    pthread_mutex_destroy(&mux->mutex);
    free(mux);
}

void lk_redis_mux_note(lk_redis_mux *mux, const char *message)
{
    pthread_mutex_lock(&mux->mutex);
    snprintf(mux->last_error, sizeof mux->last_error, "%s", message);
    pthread_mutex_unlock(&mux->mutex);
}

void lk_redis_mux_last_error(lk_redis_mux *mux, char *ret, size_t size)
{
    pthread_mutex_lock(&mux->mutex);
    snprintf(ret, size, "%s", mux->last_error);
    pthread_mutex_unlock(&mux->mutex);
}
