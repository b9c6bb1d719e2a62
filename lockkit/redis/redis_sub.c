#include "redis_sub_thread.h"
#include "thread.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { US_PER_MS = 1000, PING_MS = 1000 };

/* -- channels and their listeners ------------------------------------------------------------- */

static void kick(lk_redis_sub *sub)
{
    ssize_t n = write(sub->kick_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)n;
    assert(n == sizeof(uint64_t));
}

struct lk_redis_channel *lk_redis_sub_find(lk_redis_sub *sub, const char *name)
{
    struct lk_redis_channel *channel;
    HASH_FIND_STR(sub->channels, name, channel);
    return channel;
}

static struct lk_redis_channel *find_or_add(lk_redis_sub *sub, const char *name)
{
    struct lk_redis_channel *channel = lk_redis_sub_find(sub, name);
    if (channel == NULL && (channel = calloc(1, sizeof *channel)) != NULL) {
        assert(strlen(name) < sizeof channel->name);
        strcpy(channel->name, name);
        HASH_ADD_STR(sub->channels, name, channel);
        if (channel->hh.tbl == NULL) { /* no memory for the table */
            free(channel);
            return NULL;
        }
        sub->n_idle++;
    }
    return channel;
}

void lk_redis_sub_forget(lk_redis_sub *sub, struct lk_redis_channel *channel)
{
    assert(channel->listeners == 0);
    HASH_DEL(sub->channels, channel);
    free(channel);
    sub->n_idle--;
}

static void stop_listening(lk_redis_sub *sub, struct lk_redis_channel *channel)
{
    assert(channel->listeners > 0);
    if (--channel->listeners > 0)
        return;
    sub->n_idle++;
    if (channel->state == CHANNEL_WANTED) {
        lk_redis_sub_forget(sub, channel);
        return;
    }
    if (sub->n_idle <= LK_REDIS_IDLE_MAX)
        return;
    for (struct lk_redis_channel *other = sub->channels; other != NULL; other = other->hh.next)
        if (other->listeners == 0 && other->state == CHANNEL_LIVE) { /* the oldest is first */
            other->state = CHANNEL_LEFT;
            kick(sub);
            return;
        }
}

/* Waits until the channel is subscribed, or cannot be. */
static lk_status await_live(lk_redis_sub *sub, struct lk_redis_channel *channel, int64_t wait_us)
{
    bool whole = wait_us >= sub->timeout_us;
    int64_t until_us = lk_monotonic_us() + (whole ? sub->timeout_us : wait_us);
    uint64_t failures = sub->n_failures;
    kick(sub);
    while (channel->state != CHANNEL_LIVE) {
        if (sub->n_failures != failures)
            return LK_UNAVAILABLE;
        if (!lk_wait_until(&sub->changed, &sub->mutex, until_us) &&
            channel->state != CHANNEL_LIVE) {
            sub->silent = whole;
            kick(sub);
            return LK_UNAVAILABLE;
        }
    }
    return LK_OK;
}

lk_status lk_redis_sub_join(lk_redis_sub *sub, const char *name, int64_t wait_us,
                            bool *ret_was_live)
{
    pthread_mutex_lock(&sub->mutex);
    sub->started = sub->started || lk_thread_start(&sub->thread, lk_redis_sub_run, sub);
    lk_status status = sub->started ? LK_OK : LK_NO_MEMORY;
    struct lk_redis_channel *channel = status == LK_OK ? find_or_add(sub, name) : NULL;
    if (channel == NULL) {
        pthread_mutex_unlock(&sub->mutex);
        return LK_NO_MEMORY;
    }
    if (channel->listeners++ == 0)
        sub->n_idle--;
    if (channel->state == CHANNEL_LEFT)
        channel->state = CHANNEL_LIVE; /* UNSUBSCRIBE is not sent yet */
    bool was_live = channel->state == CHANNEL_LIVE;
    if (!was_live)
        status = await_live(sub, channel, wait_us > 0 ? wait_us : 0);
    else if (sub->dozes)
        kick(sub); /* from now on the connection is proved */
    if (status != LK_OK)
        stop_listening(sub, channel);
    pthread_mutex_unlock(&sub->mutex);
    if (status == LK_OK && ret_was_live != NULL)
        *ret_was_live = was_live;
    return status;
}

void lk_redis_sub_leave(lk_redis_sub *sub, const char *name)
{
    pthread_mutex_lock(&sub->mutex);
    stop_listening(sub, lk_redis_sub_find(sub, name));
    pthread_mutex_unlock(&sub->mutex);
}

uint64_t lk_redis_sub_live(lk_redis_sub *sub, const char *name)
{
    pthread_mutex_lock(&sub->mutex);
    struct lk_redis_channel *channel = lk_redis_sub_find(sub, name);
    uint64_t live = channel != NULL && channel->state == CHANNEL_LIVE ? sub->n_failures + 1 : 0;
    pthread_mutex_unlock(&sub->mutex);
    return live;
}

/* -- opening and closing ---------------------------------------------------------------------- */

lk_status lk_redis_sub_open(const lk_context *context, lk_redis *redis,
                            lk_redis_on_message *on_message, void *arg, lk_redis_sub **ret,
                            lk_error *error)
{
    lk_redis_sub *sub = calloc(1, sizeof *sub);
    int kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sub == NULL || kick_fd < 0) {
        free(sub);
        if (kick_fd >= 0)
            close(kick_fd);
        return lk_fail(error, LK_NO_MEMORY, "no memory or descriptors for a Redis subscriber");
    }
    sub->context = context;
    sub->redis = redis;
    sub->on_message = on_message;
    sub->arg = arg;
    sub->timeout_us = context->options->command_timeout_ms * US_PER_MS;
    sub->ping_us = PING_MS * US_PER_MS;
    sub->kick_fd = kick_fd;
    lk_redis_connection_init(&sub->connection);
    pthread_cond_init(&sub->changed, NULL);
    pthread_mutex_init(&sub->mutex, NULL);
    *ret = sub;
    return LK_OK;
}

void lk_redis_sub_close(lk_redis_sub *sub)
{
    pthread_mutex_lock(&sub->mutex);
    sub->stop = true;
    pthread_mutex_unlock(&sub->mutex);
    if (sub->started) {
        kick(sub);
        pthread_join(sub->thread, NULL);
    }
    lk_redis_connection_close(&sub->connection);
    while (sub->channels != NULL)
        lk_redis_sub_forget(sub, sub->channels);
    close(sub->kick_fd);
    pthread_cond_destroy(&sub->changed);
    pthread_mutex_destroy(&sub->mutex);
    free(sub);
}
