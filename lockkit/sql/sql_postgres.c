/* The connections of a client, handed out for the length of one use; and rows over them. */
#include "sql_postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the pool --------------------------------------------------------------------------------- */

static int64_t deadline_us(const lk_pg_pool *pool)
{
    return lk_monotonic_us() + pool->target.context->options->command_timeout_ms * 1000;
}

/* With the mutex. What the server is about to end for its idleness is not worth the risk. */
static lk_pg_conn *take_idle(lk_pg_pool *pool)
{
    while (pool->n_idle > 0) {
        const struct lk_pg_idle *idle = &pool->idle[--pool->n_idle];
        bool stale = lk_monotonic_us() - idle->since_us > LK_PG_IDLE_MS * INT64_C(1000) * 3 / 4;
        if (!stale && !lk_pg_has_ended(idle->conn))
            return idle->conn;
        lk_pg_disconnect(idle->conn);
        pool->n_open--;
    }
    return NULL;
}

/* With the mutex, which is let go while connecting. What another caller has begun goes first. */
static lk_status connect_one(lk_pg_pool *pool, int64_t until_us, lk_pg_conn **ret)
{
    for (;;) {
        const bool begun = pool->n_half_made > 0;
        lk_pg_conn *conn = begun ? pool->half_made[--pool->n_half_made] : NULL;
        pool->n_open += !begun;
        pthread_mutex_unlock(&pool->mutex);
        lk_status status = lk_pg_connect(&pool->target, until_us, &conn);
        pthread_mutex_lock(&pool->mutex);
        if (status == LK_OK) {
            *ret = conn;
            return LK_OK;
        }
        if (status == LK_TIMEOUT) {
            pool->half_made[pool->n_half_made++] = conn;
            pthread_cond_signal(&pool->freed);
            return LK_UNAVAILABLE;
        }
        pool->n_open--;
        if (!begun)
            return status;
    }
}

/* A server that gives no more connections may serve others of ours: then, as when the pool is used
 * up, one that is given back will do. */
lk_status lk_pg_take(lk_pg_pool *pool, lk_pg_conn **ret)
{
    int64_t until_us = deadline_us(pool);
    lk_pg_conn *conn;
    lk_status status = LK_BUSY;
    bool late = false;
    pthread_mutex_lock(&pool->mutex);
    while ((conn = take_idle(pool)) == NULL && !late) {
        if (pool->n_half_made > 0 || pool->n_open < pool->target.pool_max) {
            status = connect_one(pool, until_us, &conn);
            bool met = status == LK_BUSY || status == LK_LOST;
            if (status == LK_LOST || (status == LK_BUSY && pool->n_open == 0))
                status = LK_UNAVAILABLE;
            if (!met || pool->n_open == 0)
                break;
        }
        late = !lk_wait_until(&pool->freed, &pool->mutex, until_us);
    }
    if (late && pool->n_open == pool->target.pool_max)
        lk_note(pool->target.context, status, "all %d connections to PostgreSQL stayed in use",
                pool->n_open);
    pthread_mutex_unlock(&pool->mutex);
    if (conn == NULL)
        return status;
    *ret = conn;
    return LK_OK;
}

void lk_pg_give(lk_pg_pool *pool, lk_pg_conn *conn)
{
    pthread_mutex_lock(&pool->mutex);
    pool->idle[pool->n_idle++] = (struct lk_pg_idle){.conn = conn, .since_us = lk_monotonic_us()};
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}

void lk_pg_drop(lk_pg_pool *pool, lk_pg_conn *conn)
{
    lk_pg_disconnect(conn);
    pthread_mutex_lock(&pool->mutex);
    pool->n_open--;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}

/* -- statements that may still be done -------------------------------------------------------- */

/* False: no room to note another one. */
static bool may_become_unknown(lk_pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool room = pool->n_unknown + pool->target.pool_max <= LK_PG_UNKNOWN_MAX;
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

static void note_unknown(lk_pg_pool *pool, int process)
{
    pthread_mutex_lock(&pool->mutex);
    pool->unknown[pool->n_unknown++] = process;
    pthread_mutex_unlock(&pool->mutex);
}

/* 0: there is none. */
static int first_unknown(lk_pg_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    int process = pool->n_unknown > 0 ? pool->unknown[0] : 0;
    pthread_mutex_unlock(&pool->mutex);
    return process;
}

static void forget_unknown(lk_pg_pool *pool, int process)
{
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < pool->n_unknown; i++)
        if (pool->unknown[i] == process)
            pool->unknown[i--] = pool->unknown[--pool->n_unknown];
    pthread_mutex_unlock(&pool->mutex);
}

lk_status lk_pg_pool_run(lk_pg_pool *pool, int statement, const lk_sql_arg *args, lk_sql_each *each,
                         void *arg)
{
    lk_pg_conn *conn;
    bool settled = (pool->target.set->settled & 1u << statement) != 0;
    if (settled && !may_become_unknown(pool))
        return LK_UNAVAILABLE;
    lk_status status = lk_pg_take(pool, &conn);
    if (status != LK_OK)
        return status == LK_BUSY ? LK_UNAVAILABLE : status;
    status = lk_pg_run(conn, statement, args, each, arg);
    if (status == LK_UNKNOWN && settled)
        note_unknown(pool, lk_pg_process(conn));
    if (status == LK_UNKNOWN || status == LK_PROTOCOL) /* the next one looks for the tables */
        lk_pg_drop(pool, conn);
    else
        lk_pg_give(pool, conn);
    return status == LK_BUSY ? LK_UNAVAILABLE : status; /* by a statement, not by a holder */
}

static int take_number(void *arg, const lk_sql_row *row)
{
    *(int64_t *)arg = row->number[0];
    return 1;
}

/* lk_sql_settle() of what lk_pg_pool_run() called unknown. */
static lk_status settle(void *self, int statement)
{
    lk_pg_pool *pool = self;
    int process;
    while ((process = first_unknown(pool)) != 0) {
        int64_t ended = 1; /* no row: there is no such session */
        const lk_sql_arg args[] = {
            {.number = process},
            {.text = pool->target.name},
            {.number = pool->target.context->options->command_timeout_ms / 2 + 1}};
        lk_status status = lk_pg_pool_run(pool, statement, args, take_number, &ended);
        if (status != LK_OK || !ended)
            return LK_UNKNOWN;
        forget_unknown(pool, process);
    }
    return LK_OK;
}

lk_status lk_pg_pool_open(lk_pg_pool *pool, const lk_context *context, const lk_sql_set *set,
                          bool blocks, lk_error *error)
{
    lk_status status = lk_pg_target_parse(context->endpoints, &pool->target, error);
    if (status != LK_OK)
        return status;
    pool->target.context = context;
    pool->target.set = set;
    pool->target.blocks = blocks;
    snprintf(pool->target.name, sizeof pool->target.name, "lockkit %s", context->client_id);
    if (pool->target.pool_max == 0)
        pool->target.pool_max = blocks ? LK_PG_POOL_HOLDS : LK_PG_POOL_ROWS;
    pthread_cond_init(&pool->freed, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    return LK_OK;
}

void lk_pg_pool_close(lk_pg_pool *pool)
{
    while (pool->n_idle > 0)
        lk_pg_disconnect(pool->idle[--pool->n_idle].conn);
    while (pool->n_half_made > 0)
        lk_pg_disconnect(pool->half_made[--pool->n_half_made]);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
}

/* -- rows ------------------------------------------------------------------------------------- */

static lk_status open_pool(const lk_context *context, const char *address, const lk_sql_set *set,
                           void **ret_self, lk_error *error)
{
    (void)address;
    lk_pg_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for PostgreSQL connections");
    lk_status status = lk_pg_pool_open(pool, context, set, false, error);
    if (status != LK_OK)
        free(pool);
    else
        *ret_self = pool;
    return status;
}

static void close_pool(void *self)
{
    lk_pg_pool_close(self);
    free(self);
}

static lk_status run(void *self, int statement, const lk_sql_arg *args, lk_sql_each *each,
                     void *arg)
{
    return lk_pg_pool_run(self, statement, args, each, arg);
}

static const char *const schemes[] = {"postgres://", "postgresql://", NULL};

const struct lk_sql_backend lk_postgres_backend = {
    .schemes = schemes,
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .settle = settle,
};
