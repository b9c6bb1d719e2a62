#include "redis_mux_combine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

/* -- a caller --------------------------------------------------------------------------------- */

/* What falls to who has queued up. */
enum task { TASK_NONE, TASK_COMBINE, TASK_WRITE_AHEAD };

/* As many wait as are under way: in the long run half of the callers each, so that Redis works for
 * the one half while the other half wakes up and asks anew. */
static bool is_time_to_write_ahead(const lk_redis_pipe *pipe)
{
    size_t under_way = atomic_load(&pipe->under_way);
    return pipe->ahead_is == AHEAD_NONE && under_way > 0 && pipe->queue.n >= under_way;
}

static enum task enqueue(lk_redis_pipe *pipe, lk_redis_call *calls, size_t n,
                         struct lk_redis_caller *caller)
{
    enum task task = TASK_NONE;
    pthread_mutex_lock(&pipe->mutex);
    caller->bell = pipe->bell;
    pipe->bell = bell_of_others(pipe->bell);
    for (size_t i = 0; i < n; i++) {
        calls[i].reply->replicas = 0;
        calls_add(&pipe->queue, &calls[i]);
    }
    if (!pipe->busy) {
        pipe->busy = true;
        task = TASK_COMBINE;
    } else if (is_time_to_write_ahead(pipe)) {
        pipe->ahead_is = AHEAD_WRITING;
        pipe_fill(pipe, &pipe->ahead);
        task = TASK_WRITE_AHEAD;
    }
    pthread_mutex_unlock(&pipe->mutex);
    return task;
}

/* Until all are answered. They may stand in two batches, so that their caller combines twice. */
static void run(lk_redis_pipe *pipe, lk_redis_call *calls, size_t n)
{
    struct lk_redis_caller caller = {.unanswered = n};
    for (size_t i = 0; i < n; i++)
        calls[i].caller = &caller;
    enum task task = enqueue(pipe, calls, n, &caller);
    bool done = (task == TASK_COMBINE && lk_redis_combine(pipe, &caller)) ||
                (task == TASK_WRITE_AHEAD && lk_redis_write_ahead(pipe, &caller));
    while (!done)
        done = !caller_sleep(&caller, &pipe->bells, &pipe->spin) || lk_redis_combine(pipe, &caller);
}

lk_status lk_redis_pipe_run(lk_redis_pipe *pipe, int flags, lk_redis_reply *reply, int n,
                            const char **words)
{
    lk_redis_call call;
    if (!lk_redis_wire_make(&call.command, n, words))
        return LK_NO_MEMORY;
    call.reply = reply;
    call.flags = flags;
    run(pipe, &call, 1);
    lk_redis_wire_free(&call.command);
    return call.status;
}

void lk_redis_pipe_run_each(lk_redis_pipe *pipe, lk_redis_query *const *queries, size_t n)
{
    lk_redis_call calls[LK_EACH_MAX];
    size_t made = 0;
    assert(n <= LK_EACH_MAX);
    for (; made < n; made++) {
        if (!lk_redis_wire_make(&calls[made].command, queries[made]->n, queries[made]->words))
            break;
        calls[made].reply = queries[made]->reply;
        calls[made].flags = queries[made]->flags;
    }
    if (made > 0)
        run(pipe, calls, made);
    for (size_t i = 0; i < n; i++)
        queries[i]->status = i < made ? calls[i].status : LK_NO_MEMORY;
    while (made > 0)
        lk_redis_wire_free(&calls[--made].command);
}

/* -- opening and closing ---------------------------------------------------------------------- */

lk_redis_pipe *lk_redis_pipe_open(const lk_context *context, lk_redis_topology *topology)
{
    const lk_options *options = context->options;
    lk_redis_pipe *pipe = calloc(1, sizeof *pipe);
    if (pipe == NULL)
        return NULL;
    pipe->context = context;
    pipe->topology = topology;
    pipe->timeout_us = options->command_timeout_ms * US_PER_MS;
    pipe->replicas_us = options->replicas_ms * US_PER_MS;
    snprintf(pipe->wait_command, sizeof pipe->wait_command, "WAIT %" PRId32 " %" PRId64 "\r\n",
             options->replicas, options->replicas_ms);
    pipe->bell = BELL_FIRST;
    pthread_mutex_init(&pipe->mutex, NULL);
    calls_init(&pipe->queue);
    calls_init(&pipe->batch.calls);
    calls_init(&pipe->ahead.calls);
    lk_redis_stream_init(&pipe->stream);
    pipe->spin.most_us = options->spin_us;
    pipe->stream.spin.most_us = options->spin_us;
    return pipe;
}

void lk_redis_pipe_close(lk_redis_pipe *pipe)
{
    assert(!pipe->busy);
    lk_redis_stream_close(&pipe->stream);
    pthread_mutex_destroy(&pipe->mutex);
    free(pipe);
}

void lk_redis_pipe_note(lk_redis_pipe *pipe, const char *message)
{
    pthread_mutex_lock(&pipe->mutex);
    snprintf(pipe->last_error, sizeof pipe->last_error, "%s", message);
    pthread_mutex_unlock(&pipe->mutex);
}

void lk_redis_pipe_last_error(lk_redis_pipe *pipe, char *ret, size_t size)
{
    pthread_mutex_lock(&pipe->mutex);
    snprintf(ret, size, "%s", pipe->last_error);
    pthread_mutex_unlock(&pipe->mutex);
}
