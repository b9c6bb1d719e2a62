/* The work ends with ROLLBACK and its connection goes back to the pool. That would do if an
 * advisory lock of a session ended with a transaction. The lock stays on the connection, which
 * stays open. */
#include "lab_slips.h"
#include "provider.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pooled {
    struct pooled *next; /* in the list of unused ones */
    PGconn *connection;
};

enum { URL_MAX = 512 };

struct pool {
    char url[URL_MAX];
    pthread_mutex_t mutex;
    struct pooled *unused;
};

/* -- the pool ---------------------------------------------------------------------------------- */

static void drop(struct pooled *pooled)
{
    PQfinish(pooled->connection);
    free(pooled);
}

/* NULL: no memory, or no database. */
static struct pooled *take(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct pooled *pooled = pool->unused;
    if (pooled != NULL)
        pool->unused = pooled->next;
    pthread_mutex_unlock(&pool->mutex);
    if (pooled != NULL)
        return pooled;
    pooled = calloc(1, sizeof *pooled);
    if (pooled != NULL)
        pooled->connection = PQconnectdb(pool->url);
    if (pooled != NULL && PQstatus(pooled->connection) == CONNECTION_OK)
        return pooled;
    if (pooled != NULL)
        drop(pooled);
    return NULL;
}

static void give_back(struct pool *pool, struct pooled *pooled)
{
    pthread_mutex_lock(&pool->mutex);
    pooled->next = pool->unused;
    pool->unused = pooled;
    pthread_mutex_unlock(&pool->mutex);
}

/* -- the provider ------------------------------------------------------------------------------ */

/* hold->private_.slot: the address of its connection. */
static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    static const char ask[] = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
    const char *const values[] = {attempt->hold->key};
    struct pooled *pooled = take(self);
    if (pooled == NULL)
        return LK_UNAVAILABLE;
    PGresult *result = PQexecParams(pooled->connection, ask, 1, NULL, values, NULL, NULL, 0);
    const bool answered = PQresultStatus(result) == PGRES_TUPLES_OK;
    const bool granted = answered && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    if (granted)
        attempt->hold->private_.slot = (uintptr_t)pooled;
    else if (answered)
        give_back(self, pooled);
    else
        drop(pooled); /* which frees the lock, if it was granted */
    return granted ? LK_OK : answered ? LK_BUSY : LK_UNAVAILABLE;
}

static lk_status release(void *self, lk_hold *hold)
{
    struct pooled *pooled = (struct pooled *)(uintptr_t)hold->private_.slot;
    if (pooled == NULL)
        return LK_LOST;
    hold->private_.slot = 0;
    PQclear(PQexec(pooled->connection, "ROLLBACK"));
    give_back(self, pooled);
    return LK_OK;
}

static lk_status open_pool(const lk_context *context, void **ret_self, lk_error *error)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a pool of connections");
    snprintf(pool->url, sizeof pool->url, "%.*s", (int)strcspn(context->endpoints, "?"),
             context->endpoints); /* the rest is for lockkit and the store, not for libpq */
    pthread_mutex_init(&pool->mutex, NULL);
    *ret_self = pool;
    return LK_OK;
}

static void close_pool(void *self)
{
    struct pool *pool = self;
    struct pooled *pooled;
    while ((pooled = pool->unused) != NULL) {
        pool->unused = pooled->next;
        drop(pooled);
    }
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

void lab_slip_rollback_only(struct seams *seams)
{
    static lk_provider wrong;
    wrong = (lk_provider){.info = lk_provider_builtin("pg-advisory")->info,
                          .open = open_pool,
                          .close = close_pool,
                          .try_acquire = try_acquire,
                          .release = release};
    wrong.info.caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED;
    lab_slip_provider(seams, &wrong);
}
