/*
 * The connections of a store. Each is handed out for one use: a read, a snapshot, a transaction.
 * The one used last is handed out first, so that few are in use.
 *
 * While the server is away, one caller at a time tries to connect. The others get the last error at
 * once. So a server that does not answer blocks one thread, not all.
 */
#include "postgres.h"

#include <errno.h>
#include <poll.h>

void pool_open(struct pool *pool)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->freed, NULL);
}

static void close_idle(struct pool *pool)
{
    for (; pool->n_idle > 0; pool->n_open--)
        session_close(pool->idle[--pool->n_idle]);
}

void pool_close(struct pg_store *store)
{
    struct pool *pool = &store->pool;
    pthread_mutex_lock(&pool->mutex);
    close_idle(pool);
    while (pool->n_open > 0) {
        pthread_cond_wait(&pool->freed, &pool->mutex);
        close_idle(pool);
    }
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
}

/* True if the server has ended the connection, for example by a restart. */
static bool has_ended(const struct session *session)
{
    struct pollfd fd = {.fd = PQsocket(session->handle), .events = POLLRDHUP};
    return poll(&fd, 1, 0) != 0;
}

static struct session *take_idle(struct pool *pool)
{
    while (pool->n_idle > 0) {
        struct session *session = pool->idle[--pool->n_idle];
        if (!has_ended(session))
            return session;
        session_close(session);
        pool->n_open--;
    }
    return NULL;
}

/* Called with the mutex, which it releases while it connects. */
static db_status connect_one(struct pg_store *store, struct session **ret, db_error *error)
{
    struct pool *pool = &store->pool;
    db_error why = {.status = DB_OK};
    if (pool->away && pool->probing)
        return db_fail(error, pool->away_error.status, "%s", pool->away_error.message);
    bool probes = pool->away;
    if (probes)
        pool->probing = true;
    pool->n_open++;
    pthread_mutex_unlock(&pool->mutex);
    db_status status = session_open(store, false, ret, &why);
    pthread_mutex_lock(&pool->mutex);
    if (probes)
        pool->probing = false;
    pool->away = status != DB_OK;
    if (status == DB_OK)
        return DB_OK;
    pool->n_open--;
    pthread_cond_broadcast(&pool->freed);
    pool->away_error = why;
    return db_fail(error, why.status, "%s", why.message);
}

/* Called with the mutex. False: no connection was given back in time. */
static bool await_freed(struct pg_store *store, int64_t until_us)
{
    atomic_fetch_add(&store->counters.waiting, 1);
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    int code =
        pthread_cond_clockwait(&store->pool.freed, &store->pool.mutex, CLOCK_MONOTONIC, &until);
    atomic_fetch_sub(&store->counters.waiting, 1);
    return code != ETIMEDOUT;
}

db_status pool_take(struct pg_store *store, int64_t answer_ms, struct session **ret,
                    db_error *error)
{
    struct pool *pool = &store->pool;
    struct session *session = NULL;
    db_status status = DB_OK;
    int64_t until_us = db_now_us() + store->options.busy_ms * 1000;
    pthread_mutex_lock(&pool->mutex);
    while (status == DB_OK && !(session = take_idle(pool))) {
        if (pool->n_open < store->target.pool_max) {
            status = connect_one(store, &session, error);
            break;
        }
        if (!await_freed(store, until_us))
            status = db_fail(error, DB_BUSY,
                             "PostgreSQL: all %d connections stayed in use; raise pool=N in the "
                             "URL, or lower the number of workers",
                             store->target.pool_max);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (status != DB_OK)
        return status;
    session->answer_ms = answer_ms;
    session_clear(session);
    *ret = session;
    return DB_OK;
}

/* If a connection is lost, the idle ones are probably lost, too: it closes them. */
void pool_give(struct pg_store *store, struct session *session)
{
    struct pool *pool = &store->pool;
    pthread_mutex_lock(&pool->mutex);
    if (session->lost) {
        close_idle(pool);
        pool->n_open--;
        session_close(session);
    } else {
        pool->idle[pool->n_idle++] = session;
    }
    pthread_cond_broadcast(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}
