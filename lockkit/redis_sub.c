#include "redis_sub.h"
#include "redis_wire.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uthash.h>

enum { REMAKE_MS = 100, PING_MS = 1000, US_PER_MS = 1000, US_PER_S = 1000000 };

enum channel_state {
    WANTED, /* to be subscribed */
    ASKED,  /* SUBSCRIBE sent */
    LIVE,
    LEFT,    /* to be unsubscribed */
    DROPPING /* UNSUBSCRIBE sent */
};

struct channel {
    char name[LK_REDIS_CHANNEL_MAX];
    enum channel_state state;
    int64_t listeners;
    UT_hash_handle hh;
};

struct lk_redis_sub {
    const lk_context *context;
    lk_redis *redis;
    lk_redis_on_message *on_message;
    void *arg;
    int64_t timeout_us;
    int kick_fd; /* wakes the thread */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the rest but the stream */
    pthread_cond_t changed;
    struct channel *channels;
    uint64_t n_failures; /* connections that could not be made, or broke */
    size_t n_idle;
    bool started, stop;
    bool silent; /* a SUBSCRIBE was not answered in time: the connection is given up */

    lk_redis_stream stream; /* the thread's */
    bool pinged;            /* and nothing has come since */
    lk_redis_reply reply;
};

static lk_status start(lk_redis_sub *sub);

/* -- listeners -------------------------------------------------------------------------------- */

static void kick(lk_redis_sub *sub)
{
    ssize_t n = write(sub->kick_fd, &(uint64_t){1}, sizeof(uint64_t));
    assert(n == sizeof(uint64_t));
}

static struct channel *find(lk_redis_sub *sub, const char *name)
{
    struct channel *channel;
    HASH_FIND_STR(sub->channels, name, channel);
    return channel;
}

static struct channel *find_or_add(lk_redis_sub *sub, const char *name)
{
    struct channel *channel = find(sub, name);
    if (channel == NULL && (channel = calloc(1, sizeof *channel)) != NULL) {
        assert(strlen(name) < sizeof channel->name);
        strcpy(channel->name, name);
        sub->n_idle++;
        HASH_ADD_STR(sub->channels, name, channel);
    }
    return channel;
}

static void forget(lk_redis_sub *sub, struct channel *channel)
{
    assert(channel->listeners == 0);
    HASH_DEL(sub->channels, channel);
    free(channel);
    sub->n_idle--;
}

static void stop_listening(lk_redis_sub *sub, struct channel *channel)
{
    assert(channel->listeners > 0);
    if (--channel->listeners > 0)
        return;
    sub->n_idle++;
    if (channel->state == WANTED) {
        forget(sub, channel);
        return;
    }
    if (sub->n_idle <= LK_REDIS_IDLE_MAX)
        return;
    for (struct channel *other = sub->channels; other != NULL; other = other->hh.next)
        if (other->listeners == 0 && other->state == LIVE) { /* the oldest stands first */
            other->state = LEFT;
            kick(sub);
            return;
        }
}

/* Until the channel is live, or cannot be. */
static lk_status await_live(lk_redis_sub *sub, struct channel *channel, int64_t wait_us)
{
    bool whole = wait_us >= sub->timeout_us;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t us = until.tv_nsec / 1000 + (whole ? sub->timeout_us : wait_us);
    until.tv_sec += us / US_PER_S;
    until.tv_nsec = us % US_PER_S * 1000;
    uint64_t failures = sub->n_failures;
    kick(sub);
    while (channel->state != LIVE) {
        if (sub->n_failures != failures)
            return LK_UNAVAILABLE;
        if (pthread_cond_timedwait(&sub->changed, &sub->mutex, &until) == ETIMEDOUT &&
            channel->state != LIVE) {
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
    lk_status status = sub->started ? LK_OK : start(sub);
    struct channel *channel = status == LK_OK ? find_or_add(sub, name) : NULL;
    if (channel == NULL) {
        pthread_mutex_unlock(&sub->mutex);
        return LK_NO_MEMORY;
    }
    if (channel->listeners++ == 0)
        sub->n_idle--;
    if (channel->state == LEFT)
        channel->state = LIVE; /* UNSUBSCRIBE was not sent yet */
    bool was_live = channel->state == LIVE;
    if (!was_live)
        status = await_live(sub, channel, wait_us > 0 ? wait_us : 0);
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
    stop_listening(sub, find(sub, name));
    pthread_mutex_unlock(&sub->mutex);
}

uint64_t lk_redis_sub_live(lk_redis_sub *sub, const char *name)
{
    pthread_mutex_lock(&sub->mutex);
    struct channel *channel = find(sub, name);
    uint64_t live = channel != NULL && channel->state == LIVE ? sub->n_failures + 1 : 0;
    pthread_mutex_unlock(&sub->mutex);
    return live;
}

/* -- the thread: the mutex is held, but not while it connects, reads or calls on_message ---------
 */

/* SUBSCRIBE and UNSUBSCRIBE for all channels in state from. */
static lk_status send_all(lk_redis_sub *sub, const char *verb, enum channel_state from,
                          enum channel_state to)
{
    lk_status status = LK_OK;
    for (struct channel *channel = sub->channels; channel != NULL && status == LK_OK;
         channel = channel->hh.next) {
        if (channel->state != from)
            continue;
        lk_redis_wire command;
        if (!lk_redis_wire_make(&command, 2, (const char *[]){verb, channel->name}))
            return LK_NO_MEMORY;
        struct iovec iov = {.iov_base = command.bytes, .iov_len = command.length};
        status = lk_redis_stream_write(&sub->stream, &iov, 1, lk_redis_now_us() + sub->timeout_us);
        lk_redis_wire_free(&command);
        atomic_fetch_add_explicit(sub->context->commands, 1, memory_order_relaxed);
        channel->state = to;
    }
    return status;
}

/* The connection is gone, or could not be made: what is listened to is to be subscribed anew. */
static void lose(lk_redis_sub *sub)
{
    lk_redis_stream_close(&sub->stream);
    sub->pinged = false;
    sub->silent = false;
    sub->n_failures++;
    for (struct channel *channel = sub->channels, *next; channel != NULL; channel = next) {
        next = channel->hh.next;
        channel->state = WANTED;
        if (channel->listeners == 0)
            forget(sub, channel);
    }
    pthread_cond_broadcast(&sub->changed);
    pthread_mutex_unlock(&sub->mutex);
    sub->on_message(sub->arg, NULL, NULL);
    pthread_mutex_lock(&sub->mutex);
}

static void connect_again(lk_redis_sub *sub)
{
    pthread_mutex_unlock(&sub->mutex);
    lk_status status =
        lk_redis_connect(sub->redis, &sub->stream, lk_redis_now_us() + sub->timeout_us);
    pthread_mutex_lock(&sub->mutex);
    if (status != LK_OK)
        lose(sub);
}

/* The answer to PING: one shape while subscribed, another when not. */
static bool is_pong(const lk_redis_reply *reply)
{
    const lk_redis_item *item = reply->root.type == REDIS_REPLY_ARRAY && reply->root.integer == 2
                                    ? &reply->item[0]
                                    : &reply->root;
    return item->text != NULL && strcasecmp(item->text, "pong") == 0;
}

/* "subscribe" channel count | "unsubscribe" channel count | "message" channel payload | pong */
static lk_status handle(lk_redis_sub *sub)
{
    const lk_redis_item *kind = &sub->reply.item[0], *name = &sub->reply.item[1];
    const lk_redis_item *payload = &sub->reply.item[2];
    if (is_pong(&sub->reply))
        return LK_OK;
    if (sub->reply.root.type != REDIS_REPLY_ARRAY || sub->reply.root.integer != 3 ||
        kind->type != REDIS_REPLY_STRING || name->type != REDIS_REPLY_STRING)
        return LK_PROTOCOL;
    struct channel *channel = find(sub, name->text);
    if (strcmp(kind->text, "message") == 0 && payload->type == REDIS_REPLY_STRING) {
        if (channel != NULL && channel->listeners == 0 && channel->state == LIVE)
            channel->state = LEFT;
        pthread_mutex_unlock(&sub->mutex);
        sub->on_message(sub->arg, name->text, payload->text);
        pthread_mutex_lock(&sub->mutex);
    } else if (strcmp(kind->text, "subscribe") == 0) {
        if (channel != NULL && channel->state == ASKED)
            channel->state = LIVE;
        pthread_cond_broadcast(&sub->changed);
    } else if (strcmp(kind->text, "unsubscribe") == 0) {
        if (channel != NULL && channel->listeners == 0)
            forget(sub, channel);
        else if (channel != NULL)
            channel->state = WANTED; /* somebody came meanwhile */
    } else {
        return LK_PROTOCOL;
    }
    return LK_OK;
}

/* Everything that has arrived, as far as one look tells: poll(2) tells of the rest. */
static lk_status read_all(lk_redis_sub *sub)
{
    for (;;) {
        lk_status status = lk_redis_stream_read(&sub->stream, &sub->reply, LK_REDIS_NO_WAIT);
        if (status != LK_OK)
            return status == LK_TIMEOUT ? LK_OK : status;
        sub->pinged = false;
        pthread_mutex_lock(&sub->mutex);
        status = handle(sub);
        pthread_mutex_unlock(&sub->mutex);
        if (status != LK_OK || !lk_redis_stream_leftover(&sub->stream))
            return status;
    }
}

/* Nothing has come for a while. */
static lk_status sound(lk_redis_sub *sub)
{
    static char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct iovec iov = {.iov_base = ping, .iov_len = sizeof ping - 1};
    if (sub->pinged)
        return LK_UNKNOWN; /* the last one was not answered: gone without a word */
    sub->pinged = true;
    atomic_fetch_add_explicit(sub->context->commands, 1, memory_order_relaxed);
    return lk_redis_stream_write(&sub->stream, &iov, 1, lk_redis_now_us() + sub->timeout_us);
}

/* Until something arrives, or a kick, or for so long. */
static lk_status listen_for(lk_redis_sub *sub, int timeout_ms)
{
    struct pollfd watched[2] = {{.fd = sub->kick_fd, .events = POLLIN},
                                {.fd = sub->stream.fd, .events = POLLIN}};
    int n = poll(watched, 2, timeout_ms);
    assert(n >= 0 || errno == EINTR);
    if (n > 0 && watched[0].revents != 0) {
        uint64_t kicks;
        ssize_t size = read(sub->kick_fd, &kicks, sizeof kicks);
        assert(size == sizeof kicks);
    }
    if (n == 0 && sub->stream.fd >= 0)
        return sound(sub);
    return n > 0 && watched[1].revents != 0 ? read_all(sub) : LK_OK;
}

static bool anybody_listens(const lk_redis_sub *sub)
{
    return HASH_COUNT(sub->channels) > sub->n_idle;
}

/* Subscribes and unsubscribes what is due, over a new connection if need be. */
static lk_status catch_up(lk_redis_sub *sub)
{
    if (sub->silent && sub->stream.fd >= 0)
        lose(sub);
    if (sub->stream.fd < 0 && anybody_listens(sub))
        connect_again(sub);
    if (sub->stream.fd < 0)
        return LK_OK;
    lk_status status = send_all(sub, "UNSUBSCRIBE", LEFT, DROPPING);
    return status == LK_OK ? send_all(sub, "SUBSCRIBE", WANTED, ASKED) : status;
}

static void *run(void *arg)
{
    lk_redis_sub *sub = arg;
    pthread_mutex_lock(&sub->mutex);
    while (!sub->stop) {
        lk_status status = catch_up(sub);
        if (status == LK_OK) {
            bool listened = anybody_listens(sub);
            int timeout_ms = -1;
            if (sub->stream.fd < 0 && listened)
                timeout_ms = REMAKE_MS;
            else if (sub->stream.fd >= 0 && listened && lk_redis_moves(sub->redis))
                timeout_ms = PING_MS;
            pthread_mutex_unlock(&sub->mutex);
            status = listen_for(sub, timeout_ms);
            pthread_mutex_lock(&sub->mutex);
        }
        if (status != LK_OK)
            lose(sub);
    }
    pthread_mutex_unlock(&sub->mutex);
    return NULL;
}

/* -- opening and closing ---------------------------------------------------------------------- */

static lk_status start(lk_redis_sub *sub)
{
    sigset_t all, before; /* the program's signals are for the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&sub->thread, NULL, run, sub);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sub->started = failed == 0;
    return failed == 0 ? LK_OK : LK_NO_MEMORY;
}

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
    sub->kick_fd = kick_fd;
    lk_redis_stream_init(&sub->stream);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sub->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    lk_redis_stream_close(&sub->stream);
    while (sub->channels != NULL)
        forget(sub, sub->channels);
    close(sub->kick_fd);
    pthread_cond_destroy(&sub->changed);
    pthread_mutex_destroy(&sub->mutex);
    free(sub);
}
