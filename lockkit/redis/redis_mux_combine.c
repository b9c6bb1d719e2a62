#include "redis_mux_combine.h"

#include <string.h>

/* After this long without traffic the connection is looked at before it is written to, so that a
 * server that has gone away meanwhile costs a reconnect and not an unknown outcome. */
enum { IDLE_US = 1000 };

static lk_status write_batch(lk_redis_mux *mux)
{
    lk_redis_connection *connection = &mux->connection;
    struct batch *batch = &mux->batch;
    if (connection->fd >= 0 && lk_monotonic_us() - mux->used_us > IDLE_US &&
        !lk_redis_connection_quiet(connection))
        lk_redis_connection_close(connection);
    mux->used_us = lk_monotonic_us();
    batch->deadline_us = mux->used_us + mux->timeout_us + (batch->counting ? mux->replicas_us : 0);
    if (connection->fd < 0) {
        mux->demoted = false;
        lk_status status = lk_redis_topology_connect(mux->topology, connection, batch->deadline_us);
        if (status != LK_OK)
            return LK_UNAVAILABLE; /* a greeting went wrong, no command was sent */
    }
    return lk_redis_batch_write(batch, connection, mux->wait_command, mux->context->commands);
}

/* Sentinels are to be asked for the master anew. */
static bool has_moved(const lk_redis_mux *mux)
{
    return mux->demoted && mux->topology->kind == LK_REDIS_SENTINEL;
}

/* The batch is written, and about to be read. Nothing is written ahead that should go to another
 * master, or that a WAIT may hold up. */
static void allow_ahead(lk_redis_mux *mux)
{
    if (!has_moved(mux) && mux->context->options->replicas == 0)
        atomic_store(&mux->under_way, mux->batch.requests.n);
}

static lk_status read_batch(lk_redis_mux *mux, struct requests *done)
{
    struct batch *batch = &mux->batch;
    lk_status status = lk_redis_requests_read(&batch->requests, &mux->connection,
                                              batch->deadline_us, done, &mux->demoted);
    if (status == LK_OK && batch->counting)
        status = lk_redis_batch_read_count(batch, &mux->connection, done);
    mux->used_us = lk_monotonic_us();
    return status;
}

/* What was written ends with status; when the server does not answer or cannot be reached, whatever
 * is queued ends too, so that a thousand callers do not each wait a timeout of their own. */
static void fail_batch(lk_redis_mux *mux, lk_status status, struct requests *done)
{
    bool away = status == LK_TIMEOUT || status == LK_UNAVAILABLE;
    if (status == LK_TIMEOUT)
        status = LK_UNKNOWN;
    mux->broken = true;
    atomic_store(&mux->under_way, 0);
    lk_redis_requests_fail(&mux->batch.requests, status, done);
    pthread_mutex_lock(&mux->mutex);
    memcpy(mux->last_error, mux->connection.message, sizeof mux->last_error);
    if (away)
        lk_redis_requests_fail(&mux->queue, LK_UNAVAILABLE, done);
    pthread_mutex_unlock(&mux->mutex);
}

/* What was written ahead is the batch now. On a connection that broke meanwhile it stays unknown.
 */
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

/* No more is written ahead. AHEAD_AWAITED: whoever is writing has the role from now on.
 * AHEAD_WRITTEN: it is ours. */
static enum ahead end_ahead(lk_redis_mux *mux)
{
    pthread_mutex_lock(&mux->mutex);
    atomic_store(&mux->under_way, 0);
    enum ahead is = mux->ahead_is == AHEAD_WRITING ? AHEAD_AWAITED : mux->ahead_is;
    mux->ahead_is = is == AHEAD_WRITTEN ? AHEAD_NONE : is;
    pthread_mutex_unlock(&mux->mutex);
    return is;
}

/* Before the next batch is taken: closes a connection that should not be written to again. */
static void tidy(lk_redis_mux *mux)
{
    lk_redis_connection *connection = &mux->connection;
    if (connection->fd < 0)
        return;
    if (!mux->broken && lk_redis_connection_leftover(connection)) {
        lk_redis_mux_note(mux, "Redis sent more answers than it was asked");
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
    mux_fill(mux, &mux->batch);
    bool any = mux->busy = mux->batch.requests.n > 0;
    pthread_mutex_unlock(&mux->mutex);
    return any;
}

/* The next batch, written, or why it could not be. False: there is none, or whoever is writing it
 * ahead has the role now. */
static bool next_batch(lk_redis_mux *mux, lk_status *ret)
{
    enum ahead ahead = end_ahead(mux);
    if (ahead == AHEAD_AWAITED)
        return false;
    if (ahead == AHEAD_WRITTEN) {
        *ret = take_ahead(mux);
        return true;
    }
    tidy(mux);
    if (!take_batch(mux))
        return false;
    *ret = write_batch(mux);
    return true;
}

/* Sees to it that the next batch is written, and gives the role to its first caller, or up. */
static void write_on(lk_redis_mux *mux, struct requests *done)
{
    lk_status status;
    while (next_batch(mux, &status)) {
        struct lk_redis_caller *next = mux->batch.requests.head->caller;
        if (status != LK_OK) {
            fail_batch(mux, status, done);
            continue;
        }
        uint32_t bell = next->bell;
        allow_ahead(mux);
        atomic_store(&next->combine, true); /* the role is theirs from here */
        lk_event_set_signal(&mux->bells, bell);
        return;
    }
}

/* Tells everybody whose last answer this was, but mine: true. */
static bool finish(lk_redis_mux *mux, struct requests *done, const struct lk_redis_caller *mine)
{
    bool mine_done = false;
    uint32_t bells = 0;
    while (done->n > 0) {
        lk_redis_request *request = requests_take(done);
        struct lk_redis_caller *caller = request->caller;
        uint32_t bell = caller->bell; /* it may be gone with its last request */
        if (atomic_fetch_sub(&caller->unanswered, 1) > 1)
            continue;
        if (caller == mine)
            mine_done = true;
        else
            bells |= bell;
    }
    if (bells != 0)
        lk_event_set_signal(&mux->bells, bells);
    return mine_done;
}

/* The batch ended with status. Hands out what is done, and the role. */
static bool end_batch(lk_redis_mux *mux, lk_status status, struct requests *done,
                      const struct lk_redis_caller *mine)
{
    if (status != LK_OK)
        fail_batch(mux, status, done);
    write_on(mux, done);
    return finish(mux, done, mine);
}

bool lk_redis_combine(lk_redis_mux *mux, struct lk_redis_caller *mine)
{
    struct requests done;
    lk_status status = LK_OK;
    requests_init(&done);
    if (!mine->combine) { /* nobody else is there */
        take_batch(mux);
        status = write_batch(mux);
        if (status == LK_OK)
            allow_ahead(mux);
    }
    mine->combine = false; /* what wakes it next may be its last answer */
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
    lk_redis_batch_write(&mux->ahead, &mux->ahead_connection, mux->wait_command,
                         mux->context->commands);
    pthread_mutex_lock(&mux->mutex);
    bool is_mine = mux->ahead_is == AHEAD_AWAITED;
    mux->ahead_is = AHEAD_WRITTEN;
    pthread_mutex_unlock(&mux->mutex);
    return is_mine && end_batch(mux, LK_OK, &done, mine);
}
