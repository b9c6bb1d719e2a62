#include "redis_mux_combine.h"

#include <assert.h>
#include <string.h>

/* -- one batch: written, then read ------------------------------------------------------------ */

void lk_redis_mux_fill(lk_redis_mux *mux, struct batch *batch)
{
    struct requests *queue = &mux->queue;
    assert(batch->requests.n == 0);
    batch->counting = false;
    while (queue->n > 0 && batch->requests.n < LK_REDIS_BATCH_MAX) {
        lk_redis_request *request = requests_take(queue);
        batch->counting |= (request->flags & LK_REDIS_WANT_REPLICAS) != 0;
        requests_add(&batch->requests, request);
    }
    mux->event = event_of_next_first(mux->event);
}

/* One system call for the whole batch. Fills batch->written. */
static lk_status write_to(lk_redis_mux *mux, lk_redis_connection *connection, struct batch *batch)
{
    static char asking[] = "*1\r\n$6\r\nASKING\r\n";
    struct iovec iov[2 * LK_REDIS_BATCH_MAX + 1];
    size_t n = 0;
    for (lk_redis_request *r = batch->requests.head; r != NULL; r = r->next) {
        if (r->flags & LK_REDIS_ASKING)
            iov[n++] = (struct iovec){.iov_base = asking, .iov_len = sizeof asking - 1};
        iov[n++] = (struct iovec){.iov_base = r->command.bytes, .iov_len = r->command.length};
    }
    if (batch->counting)
        iov[n++] =
            (struct iovec){.iov_base = mux->wait_command, .iov_len = strlen(mux->wait_command)};
    atomic_fetch_add_explicit(mux->context->commands, n, memory_order_relaxed);
    batch->written = lk_redis_connection_write(connection, iov, n, batch->deadline_us);
    return batch->written;
}

/* Connects first if need be. */
static lk_status write_batch(lk_redis_mux *mux)
{
    lk_redis_connection *connection = &mux->connection;
    struct batch *batch = &mux->batch;
    lk_redis_connection_look(connection);
    connection->used_us = lk_monotonic_us();
    batch->deadline_us =
        connection->used_us + mux->timeout_us + (batch->counting ? mux->replicas_us : 0);
    if (connection->fd < 0) {
        mux->demoted = mux->broken = false; /* both were said of the former connection */
        if (lk_redis_topology_connect(mux->topology, connection, batch->deadline_us) != LK_OK)
            return LK_UNAVAILABLE; /* whatever went wrong, no command was sent */
    }
    return write_to(mux, connection, batch);
}

/* LK_UNAVAILABLE: the server refuses the connection. */
static lk_status read_reply(lk_redis_mux *mux, lk_redis_request *request)
{
    lk_redis_connection *connection = &mux->connection;
    lk_redis_reply *reply = request->reply;
    int64_t deadline_us = mux->batch.deadline_us;
    lk_status status = LK_OK;
    if (request->flags & LK_REDIS_ASKING)
        status = lk_redis_connection_read(connection, reply, deadline_us);
    if (status == LK_OK)
        status = lk_redis_connection_read(connection, reply, deadline_us);
    if (status == LK_OK && lk_redis_reply_refuses(reply))
        status = lk_redis_connection_refused(connection, reply);
    if (status == LK_OK && reply->root.type == REDIS_REPLY_ERROR &&
        strncmp(reply->root.text, "READONLY", 8) == 0)
        mux->demoted = true;
    return status;
}

/* The answer to WAIT, for all that the batch has written. */
static lk_status read_replicas(lk_redis_mux *mux, const struct requests *done)
{
    lk_redis_reply count;
    lk_status status = lk_redis_connection_read(&mux->connection, &count, mux->batch.deadline_us);
    if (status == LK_OK && count.root.type == REDIS_REPLY_INTEGER)
        for (lk_redis_request *r = done->head; r != NULL; r = r->next)
            r->reply->replicas =
                count.root.integer > INT32_MAX ? INT32_MAX : (int32_t)count.root.integer;
    return status;
}

/* Answered requests move to done. */
static lk_status read_batch(lk_redis_mux *mux, struct requests *done)
{
    struct batch *batch = &mux->batch;
    lk_status status = LK_OK;
    while (batch->requests.n > 0 && status == LK_OK) {
        status = read_reply(mux, batch->requests.head);
        if (status == LK_OK) {
            batch->requests.head->status = LK_OK;
            requests_add(done, requests_take(&batch->requests));
        }
    }
    if (status == LK_OK && batch->counting)
        status = read_replicas(mux, done);
    mux->connection.used_us = lk_monotonic_us();
    return status;
}

/* All of them move to done without an answer. */
static void fail(struct requests *requests, lk_status status, struct requests *done)
{
    while (requests->n > 0) {
        lk_redis_request *request = requests_take(requests);
        request->status = status;
        requests_add(done, request);
    }
}

/* The batch ends with status. If the server does not answer or cannot be reached, the queue ends
 * too, so that a thousand callers do not each wait for a timeout of their own. */
static void fail_batch(lk_redis_mux *mux, lk_status status, struct requests *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    mux->broken = true;
    atomic_store(&mux->under_way, 0);
    fail(&mux->batch.requests, status == LK_TIMEOUT ? LK_UNKNOWN : status, done);
    pthread_mutex_lock(&mux->mutex);
    memcpy(mux->last_error, mux->connection.message, sizeof mux->last_error);
    if (away)
        fail(&mux->queue, LK_UNAVAILABLE, done);
    pthread_mutex_unlock(&mux->mutex);
}

/* -- writing ahead ---------------------------------------------------------------------------- */

/* True: the Sentinels are to be asked for the master anew. */
static bool has_moved(const lk_redis_mux *mux)
{
    return mux->demoted && mux->topology->kind == LK_REDIS_SENTINEL;
}

/* The batch is written and about to be read. Nothing is written ahead that belongs to another
 * master, or that a WAIT may hold up. */
static void allow_ahead(lk_redis_mux *mux)
{
    if (!has_moved(mux) && mux->context->options->replicas == 0)
        atomic_store(&mux->under_way, mux->batch.requests.n);
}

/* Nothing more is written ahead. AHEAD_AWAITED: the thread that is writing is the combiner from
 * here. AHEAD_WRITTEN: the batch ahead is ours. */
static enum ahead end_ahead(lk_redis_mux *mux)
{
    pthread_mutex_lock(&mux->mutex);
    atomic_store(&mux->under_way, 0);
    enum ahead is = mux->ahead_is == AHEAD_WRITING ? AHEAD_AWAITED : mux->ahead_is;
    mux->ahead_is = is == AHEAD_WRITTEN ? AHEAD_NONE : is;
    pthread_mutex_unlock(&mux->mutex);
    return is;
}

/* What was written ahead becomes the batch. If the connection broke meanwhile, its outcome is
 * unknown. */
static lk_status take_ahead(lk_redis_mux *mux)
{
    struct batch *ahead = &mux->ahead;
    requests_append(&mux->batch.requests, &ahead->requests);
    mux->batch.deadline_us = ahead->deadline_us;
    mux->batch.counting = ahead->counting;
    if (!mux->broken && ahead->written != LK_OK)
        memcpy(mux->connection.message, mux->ahead_connection.message,
               sizeof mux->connection.message);
    return mux->broken && ahead->written == LK_OK ? LK_UNKNOWN : ahead->written;
}

/* -- the role of the combiner ----------------------------------------------------------------- */

/* Before the next batch is taken: closes a connection that must not be written to again. */
static void close_if_broken(lk_redis_mux *mux)
{
    lk_redis_connection *connection = &mux->connection;
    if (connection->fd < 0)
        return;
    if (!mux->broken && lk_redis_connection_leftover(connection)) {
        lk_redis_mux_note(mux, "Redis sent more answers than it was asked for");
        mux->broken = true;
    }
    if (mux->broken || has_moved(mux))
        lk_redis_connection_close(connection);
    mux->broken = false;
}

/* False: nothing is queued, and the role is given up. */
static bool take_batch(lk_redis_mux *mux)
{
    pthread_mutex_lock(&mux->mutex);
    lk_redis_mux_fill(mux, &mux->batch);
    bool any = mux->busy = mux->batch.requests.n > 0;
    pthread_mutex_unlock(&mux->mutex);
    return any;
}

/* The next batch is written, or *ret says why it is not. False: there is none, or the thread that
 * writes it ahead is the combiner now. */
static bool next_batch(lk_redis_mux *mux, lk_status *ret)
{
    enum ahead ahead = end_ahead(mux);
    if (ahead == AHEAD_AWAITED)
        return false;
    if (ahead == AHEAD_WRITTEN) {
        *ret = take_ahead(mux);
        return true;
    }
    close_if_broken(mux);
    if (!take_batch(mux))
        return false;
    *ret = write_batch(mux);
    return true;
}

/* Writes the next batch and makes its first caller the combiner. Without a next batch there is no
 * combiner any more. */
static void pass_on(lk_redis_mux *mux, struct requests *done)
{
    lk_status status;
    while (next_batch(mux, &status)) {
        struct lk_redis_caller *next = mux->batch.requests.head->caller;
        if (status != LK_OK) {
            fail_batch(mux, status, done);
            continue;
        }
        uint32_t event = next->event;
        allow_ahead(mux);
        atomic_store(&next->combine, true); /* from here the next combiner may run */
        lk_event_set_signal(&mux->event_set, event);
        return;
    }
}

/* Wakes each caller that has its last answer. True: mine is one of them, and is not woken. */
static bool hand_out(lk_redis_mux *mux, struct requests *done, const struct lk_redis_caller *mine)
{
    bool mine_done = false;
    uint32_t events = 0;
    while (done->n > 0) {
        lk_redis_request *request = requests_take(done);
        struct lk_redis_caller *caller = request->caller;
        uint32_t event = caller->event; /* read before its last answer: then it may be gone */
        if (atomic_fetch_sub(&caller->unanswered, 1) > 1)
            continue;
        if (caller == mine)
            mine_done = true;
        else
            events |= event;
    }
    if (events != 0)
        lk_event_set_signal(&mux->event_set, events);
    return mine_done;
}

/* The batch ended with status. Redis gets the next one before the answers are handed out, so that
 * it has work while the answered threads wake up. */
static bool end_batch(lk_redis_mux *mux, lk_status status, struct requests *done,
                      const struct lk_redis_caller *mine)
{
    if (status != LK_OK)
        fail_batch(mux, status, done);
    pass_on(mux, done);
    return hand_out(mux, done, mine);
}

bool lk_redis_combine(lk_redis_mux *mux, struct lk_redis_caller *mine)
{
    struct requests done;
    lk_status status = LK_OK;
    requests_init(&done);
    if (!mine->combine) { /* the connection was idle: nothing is written yet */
        take_batch(mux);
        status = write_batch(mux);
        if (status == LK_OK)
            allow_ahead(mux);
    }
    mine->combine = false; /* the next wake-up may bring the last answer, and no role */
    if (status == LK_OK)
        status = read_batch(mux, &done);
    return end_batch(mux, status, &done, mine);
}

bool lk_redis_write_ahead(lk_redis_mux *mux, const struct lk_redis_caller *mine)
{
    struct requests done;
    requests_init(&done);
    mux->ahead.deadline_us = lk_monotonic_us() + mux->timeout_us;
    mux->ahead_connection.fd = mux->connection.fd;
    write_to(mux, &mux->ahead_connection, &mux->ahead);
    pthread_mutex_lock(&mux->mutex);
    bool is_combiner = mux->ahead_is == AHEAD_AWAITED;
    mux->ahead_is = AHEAD_WRITTEN;
    pthread_mutex_unlock(&mux->mutex);
    return is_combiner && end_batch(mux, LK_OK, &done, mine);
}
