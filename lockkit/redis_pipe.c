#include "redis_pipe.h"
#include "redis_wire.h"

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

/* One command, on its caller's stack. */
struct call {
    lk_redis_wire command;
    lk_redis_reply *reply;
    int flags; /* LK_REDIS_ASKING ... */
    lk_status status;
    bool combine; /* woken to read its batch, not because it is done */
    struct call *next;
    sem_t wake;
};

/* Calls in order of arrival. */
struct calls {
    struct call *head, **tail;
    size_t n;
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

    /* The combiner's, handed over with the role. */
    struct calls batch; /* written, to be answered */
    int64_t deadline_us;
    int64_t used_us; /* last traffic */
    bool counting;   /* WAIT stands at the end of the batch */
    bool demoted;    /* READONLY was answered */
    lk_redis_stream stream;
};

static void combine(lk_redis_pipe *pipe, struct call *mine);

/* -- queues of calls -------------------------------------------------------------------------- */

static void calls_init(struct calls *calls)
{
    *calls = (struct calls){.tail = &calls->head};
}

static void calls_add(struct calls *calls, struct call *call)
{
    call->next = NULL;
    *calls->tail = call;
    calls->tail = &call->next;
    calls->n++;
}

static struct call *calls_take(struct calls *calls)
{
    struct call *call = calls->head;
    calls->head = call->next;
    if (calls->head == NULL)
        calls->tail = &calls->head;
    calls->n--;
    return call;
}

/* -- a caller --------------------------------------------------------------------------------- */

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert(errno == EINTR);
}

lk_status lk_redis_pipe_run(lk_redis_pipe *pipe, int flags, lk_redis_reply *reply, int n,
                            const char **words)
{
    struct call call;
    if (!lk_redis_wire_make(&call.command, n, words))
        return LK_NO_MEMORY;
    call.reply = reply;
    call.flags = flags;
    call.combine = false;
    reply->replicas = 0;
    sem_init(&call.wake, 0, 0);

    pthread_mutex_lock(&pipe->mutex);
    bool lead = !pipe->busy;
    pipe->busy = true;
    calls_add(&pipe->queue, &call);
    pthread_mutex_unlock(&pipe->mutex);
    if (!lead)
        wait_for(&call.wake);
    if (lead || call.combine)
        combine(pipe, &call);

    sem_destroy(&call.wake);
    lk_redis_wire_free(&call.command);
    return call.status;
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

static lk_status write_batch(lk_redis_pipe *pipe)
{
    lk_redis_stream *stream = &pipe->stream;
    int64_t now_us = lk_redis_now_us();
    pipe->counting = false;
    for (struct call *call = pipe->batch.head; call != NULL; call = call->next)
        pipe->counting |= (call->flags & LK_REDIS_COUNTED) != 0;
    pipe->deadline_us = now_us + pipe->timeout_us + (pipe->counting ? pipe->replicas_us : 0);
    if (stream->fd >= 0 && now_us - pipe->used_us > IDLE_US && !lk_redis_stream_quiet(stream))
        lk_redis_stream_close(stream);
    if (stream->fd < 0) {
        lk_status status = lk_redis_topology_connect(pipe->topology, stream, pipe->deadline_us);
        if (status != LK_OK)
            return LK_UNAVAILABLE; /* a greeting went wrong, no command was sent */
    }
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (struct call *call = pipe->batch.head; call != NULL; call = call->next) {
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
        for (struct call *call = done->head; call != NULL; call = call->next)
            call->reply->replicas = (int32_t)count.root.integer;
    return status;
}

/* Reads the answers of the batch; answered calls move to done. */
static lk_status read_batch(lk_redis_pipe *pipe, struct calls *done)
{
    lk_status status = LK_OK;
    pipe->demoted = false;
    while (pipe->batch.n > 0) {
        struct call *call = pipe->batch.head;
        if (call->flags & LK_REDIS_ASKING)
            status = lk_redis_stream_read(&pipe->stream, call->reply, pipe->deadline_us);
        if (status == LK_OK)
            status = lk_redis_stream_read(&pipe->stream, call->reply, pipe->deadline_us);
        if (status != LK_OK)
            return status;
        pipe->demoted |= call->reply->root.type == REDIS_REPLY_ERROR &&
                         strncmp(call->reply->root.text, "READONLY", 8) == 0;
        call->status = LK_OK;
        calls_add(done, calls_take(&pipe->batch));
    }
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

/* The connection is of no more use. What was written ends with status; when the server does not
 * answer or cannot be reached, whatever is queued ends too, so that a thousand callers do not each
 * wait a timeout of their own. */
static void fail_batch(lk_redis_pipe *pipe, lk_status status, struct calls *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    if (status == LK_TIMEOUT)
        status = LK_UNKNOWN;
    lk_redis_stream_close(&pipe->stream);
    while (pipe->batch.n > 0) {
        struct call *call = calls_take(&pipe->batch);
        call->status = status;
        calls_add(done, call);
    }
    pthread_mutex_lock(&pipe->mutex);
    memcpy(pipe->last_error, pipe->stream.message, sizeof pipe->last_error);
    while (away && pipe->queue.n > 0) {
        struct call *call = calls_take(&pipe->queue);
        call->status = LK_UNAVAILABLE;
        calls_add(done, call);
    }
    pthread_mutex_unlock(&pipe->mutex);
}

/* Serves one batch, that of the own call, and starts the next one. */
static void combine(lk_redis_pipe *pipe, struct call *mine)
{
    struct calls done;
    calls_init(&done);
    lk_status status = mine->combine ? LK_OK : (take_batch(pipe), write_batch(pipe));
    if (status == LK_OK)
        status = read_batch(pipe, &done);
    for (;;) {
        if (status != LK_OK)
            fail_batch(pipe, status, &done);
        if (!take_batch(pipe))
            break;
        status = write_batch(pipe);
        if (status == LK_OK) {
            struct call *next = pipe->batch.head;
            next->combine = true;
            sem_post(&next->wake); /* the role is theirs from here */
            break;
        }
    }
    while (done.n > 0) {
        struct call *call = calls_take(&done);
        if (call != mine)
            sem_post(&call->wake);
    }
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
    calls_init(&pipe->batch);
    lk_redis_stream_init(&pipe->stream);
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
