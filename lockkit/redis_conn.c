#include "redis_conn.h"

#include "redis_cluster.h"
#include "redis_topology.h"

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
    char *command;
    size_t length;
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

struct lk_redis {
    const lk_context *context;
    lk_redis_topology *topology; /* its one connection goes where this says */
    lk_redis_cluster *cluster;   /* all commands go there instead; NULL: no cluster */
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

static void combine(lk_redis *redis, struct call *mine);

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

/* One command to one node. */
static lk_status run_here(lk_redis *redis, int flags, lk_redis_reply *reply, int n,
                          const char **words)
{
    struct call call = {.reply = reply, .flags = flags};
    int length = redisFormatCommandArgv(&call.command, n, words, NULL);
    if (length < 0)
        return LK_NO_MEMORY;
    call.length = (size_t)length;
    reply->replicas = 0;
    sem_init(&call.wake, 0, 0);

    pthread_mutex_lock(&redis->mutex);
    bool lead = !redis->busy;
    redis->busy = true;
    calls_add(&redis->queue, &call);
    pthread_mutex_unlock(&redis->mutex);
    if (!lead)
        wait_for(&call.wake);
    if (lead || call.combine)
        combine(redis, &call);

    sem_destroy(&call.wake);
    redisFreeCommand(call.command);
    return call.status;
}

static void note_error(lk_redis *redis, const char *message)
{
    pthread_mutex_lock(&redis->mutex);
    snprintf(redis->last_error, sizeof redis->last_error, "%s", message);
    pthread_mutex_unlock(&redis->mutex);
}

lk_status lk_redis_run_with(lk_redis *redis, int flags, lk_redis_reply *reply, int n,
                            const char **words)
{
    if (redis->cluster == NULL)
        return run_here(redis, flags, reply, n, words);
    char message[LK_MESSAGE_MAX] = "";
    lk_status status = lk_redis_cluster_run(redis->cluster, flags, reply, n, words, message);
    if (status != LK_OK)
        note_error(redis, message);
    return status;
}

lk_status lk_redis_run(lk_redis *redis, lk_redis_reply *reply, int n, const char **words)
{
    return lk_redis_run_with(redis, 0, reply, n, words);
}

lk_status lk_redis_run_try(lk_redis *redis, lk_attempt *attempt, lk_redis_reply *reply, int n,
                           const char **words)
{
    bool counted = redis->context->options->replicas > 0;
    lk_status status = lk_redis_run_with(redis, counted ? LK_REDIS_COUNTED : 0, reply, n, words);
    attempt->replicas = status == LK_OK ? reply->replicas : 0;
    return status;
}

lk_status lk_redis_expect(lk_redis *redis, lk_redis_reply *reply, int type, lk_status status)
{
    if (status != LK_OK)
        return status;
    status = lk_redis_reply_status(reply);
    if (status == LK_OK && type != 0 && reply->root.type != type)
        status = LK_PROTOCOL;
    if (status != LK_OK) {
        char message[LK_MESSAGE_MAX];
        snprintf(message, sizeof message, "Redis answered: %.200s",
                 reply->root.type == REDIS_REPLY_ERROR ? reply->root.text : "a wrong type");
        note_error(redis, message);
    }
    return status;
}

lk_status lk_redis_ping(lk_redis *redis)
{
    lk_redis *node[LK_REDIS_NODES_MAX];
    size_t n = lk_redis_nodes(redis, node, LK_REDIS_NODES_MAX);
    lk_status status = n > 0 ? LK_OK : LK_UNAVAILABLE;
    for (size_t i = 0; i < n && status == LK_OK; i++) {
        lk_redis_reply reply;
        status = lk_redis_command(node[i], &reply, "PING");
        status = lk_redis_expect(node[i], &reply, REDIS_REPLY_STATUS, status);
    }
    return status;
}

/* -- the combiner ----------------------------------------------------------------------------- */

/* Moves what is queued to the batch, as much as one write takes; gives up the role if nothing is.
 */
static bool take_batch(lk_redis *redis)
{
    assert(redis->batch.n == 0);
    pthread_mutex_lock(&redis->mutex);
    while (redis->queue.n > 0 && redis->batch.n < LK_REDIS_BATCH_MAX)
        calls_add(&redis->batch, calls_take(&redis->queue));
    bool any = redis->busy = redis->batch.n > 0;
    pthread_mutex_unlock(&redis->mutex);
    return any; /* if none, the batch is somebody else's by now */
}

static lk_status write_batch(lk_redis *redis)
{
    lk_redis_stream *stream = &redis->stream;
    int64_t now_us = lk_redis_now_us();
    redis->counting = false;
    for (struct call *call = redis->batch.head; call != NULL; call = call->next)
        redis->counting |= (call->flags & LK_REDIS_COUNTED) != 0;
    redis->deadline_us = now_us + redis->timeout_us + (redis->counting ? redis->replicas_us : 0);
    if (stream->fd >= 0 && now_us - redis->used_us > IDLE_US && !lk_redis_stream_quiet(stream))
        lk_redis_stream_close(stream);
    if (stream->fd < 0) {
        lk_status status = lk_redis_topology_connect(redis->topology, stream, redis->deadline_us);
        if (status != LK_OK)
            return LK_UNAVAILABLE; /* a greeting went wrong, no command was sent */
    }
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (struct call *call = redis->batch.head; call != NULL; call = call->next) {
        if (call->flags & LK_REDIS_ASKING)
            iov[n++] = (struct iovec){.iov_base = asking, .iov_len = sizeof asking - 1};
        iov[n++] = (struct iovec){.iov_base = call->command, .iov_len = call->length};
    }
    if (redis->counting)
        iov[n++] =
            (struct iovec){.iov_base = redis->wait_command, .iov_len = strlen(redis->wait_command)};
    atomic_fetch_add_explicit(redis->context->commands, n, memory_order_relaxed);
    return lk_redis_stream_write(stream, iov, n, redis->deadline_us);
}

/* WAIT answers for all that the batch wrote. */
static lk_status read_count(lk_redis *redis, const struct calls *done)
{
    lk_redis_reply count;
    lk_status status = lk_redis_stream_read(&redis->stream, &count, redis->deadline_us);
    if (status == LK_OK && count.root.type == REDIS_REPLY_INTEGER)
        for (struct call *call = done->head; call != NULL; call = call->next)
            call->reply->replicas = (int32_t)count.root.integer;
    return status;
}

/* Reads the answers of the batch; answered calls move to done. */
static lk_status read_batch(lk_redis *redis, struct calls *done)
{
    lk_status status = LK_OK;
    redis->demoted = false;
    while (redis->batch.n > 0) {
        struct call *call = redis->batch.head;
        if (call->flags & LK_REDIS_ASKING)
            status = lk_redis_stream_read(&redis->stream, call->reply, redis->deadline_us);
        if (status == LK_OK)
            status = lk_redis_stream_read(&redis->stream, call->reply, redis->deadline_us);
        if (status != LK_OK)
            return status;
        redis->demoted |= call->reply->root.type == REDIS_REPLY_ERROR &&
                          strncmp(call->reply->root.text, "READONLY", 8) == 0;
        call->status = LK_OK;
        calls_add(done, calls_take(&redis->batch));
    }
    if (redis->counting)
        status = read_count(redis, done);
    redis->used_us = lk_redis_now_us();
    if (status == LK_OK && lk_redis_stream_leftover(&redis->stream)) {
        snprintf(redis->stream.message, sizeof redis->stream.message,
                 "Redis sent more answers than it was asked");
        return LK_PROTOCOL;
    }
    if (status == LK_OK && redis->demoted && redis->topology->kind == LK_REDIS_SENTINEL)
        lk_redis_stream_close(&redis->stream); /* the next batch asks for the master */
    return status;
}

/* The connection is of no more use. What was written ends with status; when the server does not
 * answer or cannot be reached, whatever is queued ends too, so that a thousand callers do not each
 * wait a timeout of their own. */
static void fail_batch(lk_redis *redis, lk_status status, struct calls *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    if (status == LK_TIMEOUT)
        status = LK_UNKNOWN;
    lk_redis_stream_close(&redis->stream);
    while (redis->batch.n > 0) {
        struct call *call = calls_take(&redis->batch);
        call->status = status;
        calls_add(done, call);
    }
    pthread_mutex_lock(&redis->mutex);
    memcpy(redis->last_error, redis->stream.message, sizeof redis->last_error);
    while (away && redis->queue.n > 0) {
        struct call *call = calls_take(&redis->queue);
        call->status = LK_UNAVAILABLE;
        calls_add(done, call);
    }
    pthread_mutex_unlock(&redis->mutex);
}

/* Serves one batch, that of the own call, and starts the next one. */
static void combine(lk_redis *redis, struct call *mine)
{
    struct calls done;
    calls_init(&done);
    lk_status status = mine->combine ? LK_OK : (take_batch(redis), write_batch(redis));
    if (status == LK_OK)
        status = read_batch(redis, &done);
    for (;;) {
        if (status != LK_OK)
            fail_batch(redis, status, &done);
        if (!take_batch(redis))
            break;
        status = write_batch(redis);
        if (status == LK_OK) {
            struct call *next = redis->batch.head;
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

static lk_redis *new_redis(const lk_context *context)
{
    const lk_options *options = context->options;
    lk_redis *redis = calloc(1, sizeof *redis);
    lk_redis_topology *topology = calloc(1, sizeof *topology);
    if (redis == NULL || topology == NULL) {
        free(redis);
        free(topology);
        return NULL;
    }
    redis->context = context;
    redis->topology = topology;
    redis->timeout_us = options->command_timeout_ms * US_PER_MS;
    redis->replicas_us = options->replicas_ms * US_PER_MS;
    snprintf(redis->wait_command, sizeof redis->wait_command, "WAIT %" PRId32 " %" PRId64 "\r\n",
             options->replicas, options->replicas_ms);
    pthread_mutex_init(&redis->mutex, NULL);
    calls_init(&redis->queue);
    calls_init(&redis->batch);
    lk_redis_stream_init(&redis->stream);
    return redis;
}

lk_status lk_redis_open(const lk_context *context, lk_redis **ret, lk_error *error)
{
    lk_redis *redis = new_redis(context);
    if (redis == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis connection");
    lk_status status = lk_redis_topology_parse(context->endpoints, redis->topology, error);
    if (status == LK_OK && redis->topology->kind == LK_REDIS_CLUSTER)
        status = lk_redis_cluster_open(context, redis->topology, &redis->cluster, error);
    if (status == LK_OK)
        *ret = redis;
    else
        lk_redis_close(redis);
    return status;
}

lk_status lk_redis_open_node(const lk_context *context, const lk_redis_url *url, lk_redis **ret,
                             lk_error *error)
{
    lk_redis *redis = new_redis(context);
    if (redis == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis connection");
    redis->topology->node = *url;
    *ret = redis;
    return LK_OK;
}

void lk_redis_close(lk_redis *redis)
{
    assert(!redis->busy);
    if (redis->cluster != NULL)
        lk_redis_cluster_close(redis->cluster);
    lk_redis_stream_close(&redis->stream);
    pthread_mutex_destroy(&redis->mutex);
    free(redis->topology);
    free(redis);
}

const lk_redis_url *lk_redis_endpoint(const lk_redis *redis)
{
    assert(redis->topology->kind == LK_REDIS_NODE);
    return &redis->topology->node;
}

lk_status lk_redis_connect(lk_redis *redis, lk_redis_stream *stream, int64_t deadline_us)
{
    return redis->cluster != NULL ? lk_redis_cluster_connect(redis->cluster, stream, deadline_us)
                                  : lk_redis_topology_connect(redis->topology, stream, deadline_us);
}

bool lk_redis_moves(const lk_redis *redis)
{
    return redis->topology->kind != LK_REDIS_NODE;
}

size_t lk_redis_nodes(lk_redis *redis, lk_redis **ret, size_t max)
{
    if (redis->cluster != NULL)
        return lk_redis_cluster_masters(redis->cluster, ret, max);
    assert(max > 0);
    ret[0] = redis;
    return 1;
}

void lk_redis_last_error(lk_redis *redis, char *ret, size_t size)
{
    pthread_mutex_lock(&redis->mutex);
    snprintf(ret, size, "%s", redis->last_error);
    pthread_mutex_unlock(&redis->mutex);
}
