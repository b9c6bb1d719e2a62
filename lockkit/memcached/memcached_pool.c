#include "memcached_pool.h"
#include "monotonic.h"

#include <pthread.h>
#include <stdlib.h>

/* After this time without traffic a connection is tested before it is used. */
enum { IDLE_US = 1000, US_PER_MS = 1000 };

struct lk_memcached_pool {
    const lk_context *context;
    lk_memcached_server server;
    int64_t timeout_us;

    pthread_mutex_t mutex; /* guards free */
    pthread_cond_t returned;
    lk_memcached_connection *free;
    lk_memcached_connection connections[LK_MEMCACHED_CONNECTIONS_MAX];
};

lk_status lk_memcached_open(const lk_context *context, lk_memcached_pool **ret, lk_error *error)
{
    lk_memcached_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for memcached connections");
    lk_status status = lk_memcached_server_read(context->endpoints, &pool->server, error);
    if (status != LK_OK) {
        free(pool);
        return status;
    }
    pthread_cond_init(&pool->returned, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pool->context = context;
    pool->timeout_us = context->options->command_timeout_ms * US_PER_MS;
    for (int i = 0; i < LK_MEMCACHED_CONNECTIONS_MAX; i++) {
        pool->connections[i] =
            (lk_memcached_connection){.context = context, .fd = -1, .next = pool->free};
        pool->free = &pool->connections[i];
    }
    *ret = pool;
    return LK_OK;
}

void lk_memcached_close(lk_memcached_pool *pool)
{
    for (int i = 0; i < LK_MEMCACHED_CONNECTIONS_MAX; i++)
        lk_memcached_disconnect(&pool->connections[i]);
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

lk_memcached_connection *lk_memcached_take(lk_memcached_pool *pool)
{
    int64_t until_us = lk_monotonic_us() + pool->timeout_us;
    pthread_mutex_lock(&pool->mutex);
    while (pool->free == NULL && lk_wait_until(&pool->returned, &pool->mutex, until_us))
        continue;
    lk_memcached_connection *connection = pool->free;
    if (connection != NULL)
        pool->free = connection->next;
    pthread_mutex_unlock(&pool->mutex);
    if (connection == NULL) {
        lk_note(pool->context, LK_UNAVAILABLE, "all %d connections to memcached stayed in use",
                LK_MEMCACHED_CONNECTIONS_MAX);
        return NULL;
    }
    int64_t start_us = lk_monotonic_us();
    connection->deadline_us = start_us + pool->timeout_us;
    if (connection->fd >= 0 && start_us - connection->used_us > IDLE_US &&
        !lk_memcached_is_quiet(connection))
        lk_memcached_disconnect(connection);
    if (connection->fd >= 0 || lk_memcached_connect(&pool->server, connection) == LK_OK)
        return connection;
    lk_memcached_give(pool, connection, false);
    return NULL;
}

void lk_memcached_give(lk_memcached_pool *pool, lk_memcached_connection *connection, bool usable)
{
    if (!usable || connection->begin != connection->end) /* more answers than questions */
        lk_memcached_disconnect(connection);
    connection->used_us = lk_monotonic_us();
    pthread_mutex_lock(&pool->mutex);
    connection->next = pool->free;
    pool->free = connection;
    pthread_cond_signal(&pool->returned);
    pthread_mutex_unlock(&pool->mutex);
}
