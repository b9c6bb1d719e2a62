#include "redis_mux_combine.h"

#include <string.h>

/* After this long without traffic the connection is looked at before it is written to, so that a
 * server that has gone away meanwhile costs a reconnect and not an unknown outcome. */
enum { IDLE_US = 1000 };

static lk_status write_batch(lk_redis_pipe *pipe)
{
    lk_redis_stream *stream = &pipe->stream;
    struct batch *batch = &pipe->batch;
    if (stream->fd >= 0 && lk_monotonic_us() - pipe->used_us > IDLE_US &&
        !lk_redis_stream_quiet(stream))
        lk_redis_stream_close(stream);
    pipe->used_us = lk_monotonic_us();
    batch->deadline_us =
        pipe->used_us + pipe->timeout_us + (batch->counting ? pipe->replicas_us : 0);
    if (stream->fd < 0) {
        pipe->demoted = false;
        lk_status status = lk_redis_topology_connect(pipe->topology, stream, batch->deadline_us);
        if (status != LK_OK)
            return LK_UNAVAILABLE; /* a greeting went wrong, no command was sent */
    }
    return lk_redis_batch_write(batch, stream, pipe->wait_command, pipe->context->commands);
}

/* Sentinels are to be asked for the master anew. */
static bool has_moved(const lk_redis_pipe *pipe)
{
    return pipe->demoted && pipe->topology->kind == LK_REDIS_SENTINEL;
}

/* The batch is written, and about to be read. Nothing is written ahead that should go to another
 * master, or that a WAIT may hold up. */
static void allow_ahead(lk_redis_pipe *pipe)
{
    if (!has_moved(pipe) && pipe->context->options->replicas == 0)
        atomic_store(&pipe->under_way, pipe->batch.calls.n);
}

static lk_status read_batch(lk_redis_pipe *pipe, struct calls *done)
{
    struct batch *batch = &pipe->batch;
    lk_status status =
        lk_redis_calls_read(&batch->calls, &pipe->stream, batch->deadline_us, done, &pipe->demoted);
    if (status == LK_OK && batch->counting)
        status = lk_redis_batch_read_count(batch, &pipe->stream, done);
    pipe->used_us = lk_monotonic_us();
    return status;
}

/* What was written ends with status; when the server does not answer or cannot be reached, whatever
 * is queued ends too, so that a thousand callers do not each wait a timeout of their own. */
static void fail_batch(lk_redis_pipe *pipe, lk_status status, struct calls *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    if (status == LK_TIMEOUT)
        status = LK_UNKNOWN;
    pipe->broken = true;
    atomic_store(&pipe->under_way, 0);
    lk_redis_calls_fail(&pipe->batch.calls, status, done);
    pthread_mutex_lock(&pipe->mutex);
    memcpy(pipe->last_error, pipe->stream.message, sizeof pipe->last_error);
    if (away)
        lk_redis_calls_fail(&pipe->queue, LK_UNAVAILABLE, done);
    pthread_mutex_unlock(&pipe->mutex);
}

/* What was written ahead is the batch now. On a connection that broke meanwhile it stays unknown.
 */
static lk_status take_ahead(lk_redis_pipe *pipe)
{
    struct batch *ahead = &pipe->ahead;
    calls_append(&pipe->batch.calls, &ahead->calls);
    pipe->batch.deadline_us = ahead->deadline_us;
    pipe->batch.counting = ahead->counting;
    if (!pipe->broken && ahead->written != LK_OK)
        memcpy(pipe->stream.message, pipe->ahead_stream.message, sizeof pipe->stream.message);
    return pipe->broken && ahead->written == LK_OK ? LK_UNKNOWN : ahead->written;
}

/* No more is written ahead. AHEAD_AWAITED: whoever is writing has the role from now on.
 * AHEAD_WRITTEN: it is ours. */
static enum ahead end_ahead(lk_redis_pipe *pipe)
{
    pthread_mutex_lock(&pipe->mutex);
    atomic_store(&pipe->under_way, 0);
    enum ahead is = pipe->ahead_is == AHEAD_WRITING ? AHEAD_AWAITED : pipe->ahead_is;
    pipe->ahead_is = is == AHEAD_WRITTEN ? AHEAD_NONE : is;
    pthread_mutex_unlock(&pipe->mutex);
    return is;
}

/* Before the next batch is taken: closes a connection that should not be written to again. */
static void tidy(lk_redis_pipe *pipe)
{
    lk_redis_stream *stream = &pipe->stream;
    if (stream->fd < 0)
        return;
    if (!pipe->broken && lk_redis_stream_leftover(stream)) {
        lk_redis_pipe_note(pipe, "Redis sent more answers than it was asked");
        pipe->broken = true;
    }
    if (pipe->broken || has_moved(pipe))
        lk_redis_stream_close(stream);
    pipe->broken = false;
}

/* False: nothing is queued, and the role is given up. */
static bool take_batch(lk_redis_pipe *pipe)
{
    pthread_mutex_lock(&pipe->mutex);
    pipe_fill(pipe, &pipe->batch);
    bool any = pipe->busy = pipe->batch.calls.n > 0;
    pthread_mutex_unlock(&pipe->mutex);
    return any;
}

/* The next batch, written, or why it could not be. False: there is none, or whoever is writing it
 * ahead has the role now. */
static bool next_batch(lk_redis_pipe *pipe, lk_status *ret)
{
    enum ahead ahead = end_ahead(pipe);
    if (ahead == AHEAD_AWAITED)
        return false;
    if (ahead == AHEAD_WRITTEN) {
        *ret = take_ahead(pipe);
        return true;
    }
    tidy(pipe);
    if (!take_batch(pipe))
        return false;
    *ret = write_batch(pipe);
    return true;
}

/* Sees to it that the next batch is written, and gives the role to its first caller, or up. */
static void write_on(lk_redis_pipe *pipe, struct calls *done)
{
    lk_status status;
    while (next_batch(pipe, &status)) {
        struct lk_redis_caller *next = pipe->batch.calls.head->caller;
        if (status != LK_OK) {
            fail_batch(pipe, status, done);
            continue;
        }
        uint32_t bell = next->bell;
        allow_ahead(pipe);
        atomic_store(&next->combine, true); /* the role is theirs from here */
        lk_bells_ring(&pipe->bells, bell);
        return;
    }
}

/* Tells everybody whose last answer this was, but mine: true. */
static bool finish(lk_redis_pipe *pipe, struct calls *done, const struct lk_redis_caller *mine)
{
    bool mine_done = false;
    uint32_t bells = 0;
    while (done->n > 0) {
        lk_redis_call *call = calls_take(done);
        struct lk_redis_caller *caller = call->caller;
        uint32_t bell = caller->bell; /* it may be gone with its last call */
        if (atomic_fetch_sub(&caller->unanswered, 1) > 1)
            continue;
        if (caller == mine)
            mine_done = true;
        else
            bells |= bell;
    }
    if (bells != 0)
        lk_bells_ring(&pipe->bells, bells);
    return mine_done;
}

/* The batch ended with status. Hands out what is done, and the role. */
static bool end_batch(lk_redis_pipe *pipe, lk_status status, struct calls *done,
                      const struct lk_redis_caller *mine)
{
    if (status != LK_OK)
        fail_batch(pipe, status, done);
    write_on(pipe, done);
    return finish(pipe, done, mine);
}

bool lk_redis_combine(lk_redis_pipe *pipe, struct lk_redis_caller *mine)
{
    struct calls done;
    lk_status status = LK_OK;
    calls_init(&done);
    if (!mine->combine) { /* nobody else is there */
        take_batch(pipe);
        status = write_batch(pipe);
        if (status == LK_OK)
            allow_ahead(pipe);
    }
    mine->combine = false; /* what wakes it next may be its last answer */
    if (status == LK_OK)
        status = read_batch(pipe, &done);
    return end_batch(pipe, status, &done, mine);
}

bool lk_redis_write_ahead(lk_redis_pipe *pipe, const struct lk_redis_caller *mine)
{
    struct calls done;
    calls_init(&done);
    pipe->ahead.deadline_us = lk_monotonic_us() + pipe->timeout_us;
    pipe->ahead_stream.fd = pipe->stream.fd;
    lk_redis_batch_write(&pipe->ahead, &pipe->ahead_stream, pipe->wait_command,
                         pipe->context->commands);
    pthread_mutex_lock(&pipe->mutex);
    bool is_mine = pipe->ahead_is == AHEAD_AWAITED;
    pipe->ahead_is = AHEAD_WRITTEN;
    pthread_mutex_unlock(&pipe->mutex);
    return is_mine && end_batch(pipe, LK_OK, &done, mine);
}
