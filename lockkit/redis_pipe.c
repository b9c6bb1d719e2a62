#include "redis_pipe.h"
#include "redis_calls.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After this long without traffic the connection is looked at before it is written to, so that a
 * server that has gone away meanwhile costs a reconnect and not an unknown outcome. */
enum { IDLE_US = 1000, US_PER_MS = 1000, WAIT_COMMAND_MAX = 64 };

/* Waits for one call or several, all on its stack. */
struct lk_redis_caller {
    sem_t wake;                /* to combine, or because another answered the last one */
    bool combine;              /* which of the two */
    _Atomic size_t unanswered; /* who takes it to 0 tells */
};

struct lk_redis_pipe {
    const lk_context *context;
    lk_redis_topology *topology; /* the connection goes where this says */
    int64_t timeout_us, replicas_us;
    char wait_command[WAIT_COMMAND_MAX]; /* "WAIT replicas replicas_ms" */

    pthread_mutex_t mutex; /* guards the next four */
    struct calls queue;    /* not yet written */
    bool busy;             /* somebody combines */
    char last_error[LK_MESSAGE_MAX];

    /* The combiner's, handed over with the role; owed may outlast it. */
    struct calls owed;  /* posted, written before the batch, to be answered */
    struct calls batch; /* written, to be answered */
    int64_t deadline_us;
    int64_t used_us; /* last traffic */
    bool counting;   /* WAIT stands at the end of the batch */
    bool demoted;    /* READONLY was answered */
    lk_redis_stream stream;
};

static bool combine(lk_redis_pipe *pipe, struct lk_redis_caller *mine);
static void write_on(lk_redis_pipe *pipe, struct calls *done);
static bool finish(struct calls *done, const struct lk_redis_caller *mine);

/* -- a caller --------------------------------------------------------------------------------- */

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert(errno == EINTR);
}

/* True: the caller combines. */
static bool enqueue(lk_redis_pipe *pipe, lk_redis_call *calls, size_t n)
{
    pthread_mutex_lock(&pipe->mutex);
    bool lead = !pipe->busy;
    pipe->busy = true;
    for (size_t i = 0; i < n; i++) {
        calls[i].reply->replicas = 0;
        calls_add(&pipe->queue, &calls[i]);
    }
    pthread_mutex_unlock(&pipe->mutex);
    return lead;
}

/* Until all are answered. They may stand in two batches, so that their caller combines twice. */
static void run(lk_redis_pipe *pipe, lk_redis_call *calls, size_t n)
{
    struct lk_redis_caller caller = {.unanswered = n};
    sem_init(&caller.wake, 0, 0);
    for (size_t i = 0; i < n; i++) {
        calls[i].answered = NULL;
        calls[i].caller = &caller;
    }
    bool done = enqueue(pipe, calls, n) && combine(pipe, &caller);
    while (!done) {
        wait_for(&caller.wake);
        done = !caller.combine || combine(pipe, &caller);
    }
    sem_destroy(&caller.wake);
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

bool lk_redis_pipe_post(lk_redis_pipe *pipe, lk_redis_call *call, int n, const char **words)
{
    if (!lk_redis_wire_make(&call->command, n, words))
        return false;
    call->flags = 0;
    if (enqueue(pipe, call, 1)) {
        struct calls done;
        calls_init(&done);
        write_on(pipe, &done);
        finish(&done, NULL);
    }
    return true;
}

/* -- the combiner ----------------------------------------------------------------------------- */

/* Moves what is queued to the batch, as much as one write takes; gives up the role if nothing is.
 */
static bool take_batch(lk_redis_pipe *pipe)
{
    assert(pipe->batch.n == 0);
    pthread_mutex_lock(&pipe->mutex);
    while (pipe->queue.n > 0 && pipe->batch.n < LK_REDIS_BATCH_MAX)
        calls_add(&pipe->batch, calls_take(&pipe->queue));
    bool any = pipe->busy = pipe->batch.n > 0;
    pthread_mutex_unlock(&pipe->mutex);
    return any; /* if none, the batch is somebody else's by now */
}

/* Reads the answers to calls, which move to done one by one. */
static lk_status read_answers(lk_redis_pipe *pipe, struct calls *calls, struct calls *done)
{
    lk_status status = LK_OK;
    while (calls->n > 0) {
        lk_redis_call *call = calls->head;
        if (call->flags & LK_REDIS_ASKING)
            status = lk_redis_stream_read(&pipe->stream, call->reply, pipe->deadline_us);
        if (status == LK_OK)
            status = lk_redis_stream_read(&pipe->stream, call->reply, pipe->deadline_us);
        if (status != LK_OK)
            return status;
        pipe->demoted |= call->reply->root.type == REDIS_REPLY_ERROR &&
                         strncmp(call->reply->root.text, "READONLY", 8) == 0;
        call->status = LK_OK;
        calls_add(done, calls_take(calls));
    }
    return LK_OK;
}

/* The connection is of no more use, and what was written to it will not be answered. */
static void hang_up(lk_redis_pipe *pipe, struct calls *written, lk_status status,
                    struct calls *done)
{
    lk_redis_stream_close(&pipe->stream);
    while (written->n > 0) {
        lk_redis_call *call = calls_take(written);
        call->status = status;
        calls_add(done, call);
    }
}

/* Before a connection that was idle is written to. LK_UNAVAILABLE: the server does not answer. */
static lk_status look(lk_redis_pipe *pipe, struct calls *done)
{
    lk_status status = read_answers(pipe, &pipe->owed, done);
    if (status == LK_TIMEOUT)
        return LK_UNAVAILABLE;
    if (status != LK_OK || !lk_redis_stream_quiet(&pipe->stream))
        hang_up(pipe, &pipe->owed, status, done);
    return LK_OK;
}

static lk_status write_batch(lk_redis_pipe *pipe, struct calls *done)
{
    lk_redis_stream *stream = &pipe->stream;
    if (stream->fd >= 0 && lk_redis_now_us() - pipe->used_us > IDLE_US && look(pipe, done) != LK_OK)
        return LK_UNAVAILABLE;
    pipe->counting = false;
    for (lk_redis_call *call = pipe->batch.head; call != NULL; call = call->next)
        pipe->counting |= (call->flags & LK_REDIS_COUNTED) != 0;
    pipe->used_us = lk_redis_now_us();
    pipe->deadline_us = pipe->used_us + pipe->timeout_us + (pipe->counting ? pipe->replicas_us : 0);
    if (stream->fd < 0) {
        pipe->demoted = false;
        lk_status status = lk_redis_topology_connect(pipe->topology, stream, pipe->deadline_us);
        if (status != LK_OK)
            return LK_UNAVAILABLE; /* a greeting went wrong, no command was sent */
    }
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (lk_redis_call *call = pipe->batch.head; call != NULL; call = call->next) {
        if (call->flags & LK_REDIS_ASKING)
            iov[n++] = (struct iovec){.iov_base = asking, .iov_len = sizeof asking - 1};
        iov[n++] = (struct iovec){.iov_base = call->command.bytes, .iov_len = call->command.length};
    }
    if (pipe->counting)
        iov[n++] =
            (struct iovec){.iov_base = pipe->wait_command, .iov_len = strlen(pipe->wait_command)};
    atomic_fetch_add_explicit(pipe->context->commands, n, memory_order_relaxed);
    return lk_redis_stream_write(stream, iov, n, pipe->deadline_us);
}

/* WAIT answers for all that the batch wrote. */
static lk_status read_count(lk_redis_pipe *pipe, const struct calls *done)
{
    lk_redis_reply count;
    lk_status status = lk_redis_stream_read(&pipe->stream, &count, pipe->deadline_us);
    if (status == LK_OK && count.root.type == REDIS_REPLY_INTEGER)
        for (lk_redis_call *call = done->head; call != NULL; call = call->next)
            call->reply->replicas = (int32_t)count.root.integer;
    return status;
}

/* Reads what is owed, then the answers of the batch; answered calls move to done. */
static lk_status read_batch(lk_redis_pipe *pipe, struct calls *done)
{
    lk_status status = read_answers(pipe, &pipe->owed, done);
    if (status == LK_OK)
        status = read_answers(pipe, &pipe->batch, done);
    if (status != LK_OK)
        return status;
    if (pipe->counting)
        status = read_count(pipe, done);
    pipe->used_us = lk_redis_now_us();
    if (status == LK_OK && lk_redis_stream_leftover(&pipe->stream)) {
        snprintf(pipe->stream.message, sizeof pipe->stream.message,
                 "Redis sent more answers than it was asked");
        return LK_PROTOCOL;
    }
    if (status == LK_OK && pipe->demoted && pipe->topology->kind == LK_REDIS_SENTINEL)
        lk_redis_stream_close(&pipe->stream); /* the next batch asks for the master */
    return status;
}

/* What was written ends with status; when the server does not answer or cannot be reached, whatever
 * is queued ends too, so that a thousand callers do not each wait a timeout of their own. */
static void fail_batch(lk_redis_pipe *pipe, lk_status status, struct calls *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    if (status == LK_TIMEOUT)
        status = LK_UNKNOWN;
    /* What was posted was written, whatever became of the batch. */
    hang_up(pipe, &pipe->owed, status == LK_UNAVAILABLE ? LK_UNKNOWN : status, done);
    hang_up(pipe, &pipe->batch, status, done);
    pthread_mutex_lock(&pipe->mutex);
    memcpy(pipe->last_error, pipe->stream.message, sizeof pipe->last_error);
    while (away && pipe->queue.n > 0) {
        lk_redis_call *call = calls_take(&pipe->queue);
        call->status = LK_UNAVAILABLE;
        calls_add(done, call);
    }
    pthread_mutex_unlock(&pipe->mutex);
}

/* Writes what is queued and gives the role to the first caller who waits, or up. */
static void write_on(lk_redis_pipe *pipe, struct calls *done)
{
    while (take_batch(pipe)) {
        lk_status status = write_batch(pipe, done);
        lk_redis_call *next = calls_first_waiting(&pipe->batch);
        if (status != LK_OK) {
            fail_batch(pipe, status, done);
        } else if (next != NULL) {
            next->caller->combine = true;
            sem_post(&next->caller->wake); /* the role is theirs from here */
            return;
        } else {
            calls_append(&pipe->owed, &pipe->batch);
        }
    }
}

/* Tells everybody whose last answer this was, but mine: true. */
static bool finish(struct calls *done, const struct lk_redis_caller *mine)
{
    bool mine_done = false;
    while (done->n > 0) {
        lk_redis_call *call = calls_take(done);
        if (call->answered != NULL) {
            lk_redis_wire_free(&call->command);
            call->answered(call);
            continue;
        }
        struct lk_redis_caller *caller = call->caller; /* the call may be gone with its last */
        if (atomic_fetch_sub(&caller->unanswered, 1) > 1)
            continue;
        if (caller == mine)
            mine_done = true;
        else
            sem_post(&caller->wake);
    }
    return mine_done;
}

/* Serves one batch, with a call of the caller in it, and starts the next one. True: it has all its
 * answers, and nobody will wake it. */
static bool combine(lk_redis_pipe *pipe, struct lk_redis_caller *mine)
{
    struct calls done;
    calls_init(&done);
    lk_status status = mine->combine ? LK_OK : (take_batch(pipe), write_batch(pipe, &done));
    mine->combine = false; /* what wakes it next may be its last answer */
    if (status == LK_OK)
        status = read_batch(pipe, &done);
    if (status != LK_OK)
        fail_batch(pipe, status, &done);
    write_on(pipe, &done);
    return finish(&done, mine);
}

void lk_redis_pipe_collect(lk_redis_pipe *pipe)
{
    struct calls done;
    calls_init(&done);
    pthread_mutex_lock(&pipe->mutex);
    bool lead = !pipe->busy && pipe->owed.n > 0;
    pipe->busy = pipe->busy || lead;
    pthread_mutex_unlock(&pipe->mutex);
    if (!lead)
        return;
    lk_status status = read_batch(pipe, &done);
    if (status != LK_OK)
        fail_batch(pipe, status, &done);
    write_on(pipe, &done);
    finish(&done, NULL);
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
    pthread_mutex_init(&pipe->mutex, NULL);
    calls_init(&pipe->queue);
    calls_init(&pipe->owed);
    calls_init(&pipe->batch);
    lk_redis_stream_init(&pipe->stream);
    return pipe;
}

void lk_redis_pipe_close(lk_redis_pipe *pipe)
{
    assert(!pipe->busy && pipe->owed.n == 0);
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
