/* The subscriber's thread: makes the connection, makes it again, subscribes, reads. The mutex is
 * held, except while the thread connects, waits, reads or calls on_message. */
#include "redis_sub_thread.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { REMAKE_MS = 100, US_PER_MS = 1000 };

/* Sends SUBSCRIBE or UNSUBSCRIBE for each channel in state from, which then is in state to. */
static lk_status send_all(lk_redis_sub *sub, const char *verb, enum lk_redis_channel_state from,
                          enum lk_redis_channel_state to)
{
    lk_status status = LK_OK;
    for (struct lk_redis_channel *channel = sub->channels; channel != NULL && status == LK_OK;
         channel = channel->hh.next) {
        if (channel->state != from)
            continue;
        lk_redis_encoded command;
        if (!lk_redis_encode(&command, 2, (const char *[]){verb, channel->name}))
            return LK_NO_MEMORY;
        struct iovec iov = {.iov_base = command.bytes, .iov_len = command.length};
        status = lk_redis_connection_write(&sub->connection, &iov, 1,
                                           lk_monotonic_us() + sub->timeout_us);
        lk_redis_encoded_free(&command);
        atomic_fetch_add_explicit(sub->context->commands, 1, memory_order_relaxed);
        channel->state = to;
    }
    return status;
}

/* The connection has ended or could not be made. Marks all channels with listeners to be subscribed
 * again, and tells on_message, which wakes all waiters. */
static void lose(lk_redis_sub *sub)
{
    lk_redis_connection_close(&sub->connection);
    sub->pinged = false;
    sub->due_us = 0;
    sub->silent = false;
    sub->n_failures++;
    for (struct lk_redis_channel *channel = sub->channels, *next; channel != NULL; channel = next) {
        next = channel->hh.next;
        channel->state = CHANNEL_WANTED;
        if (channel->listeners == 0)
            lk_redis_sub_forget(sub, channel);
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
        lk_redis_connect(sub->redis, &sub->connection, lk_monotonic_us() + sub->timeout_us);
    pthread_mutex_lock(&sub->mutex);
    if (status != LK_OK)
        lose(sub);
}

/* The answer to PING has one shape while a channel is subscribed, and another otherwise. */
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
    if (is_pong(&sub->reply)) {
        sub->pinged = false;
        sub->due_us = lk_monotonic_us() + sub->ping_us;
        return LK_OK;
    }
    if (sub->reply.root.type != REDIS_REPLY_ARRAY || sub->reply.root.integer != 3 ||
        kind->type != REDIS_REPLY_STRING || name->type != REDIS_REPLY_STRING)
        return LK_PROTOCOL;
    struct lk_redis_channel *channel = lk_redis_sub_find(sub, name->text);
    if (strcmp(kind->text, "message") == 0 && payload->type == REDIS_REPLY_STRING) {
        if (channel != NULL && channel->listeners == 0 && channel->state == CHANNEL_LIVE)
            channel->state = CHANNEL_LEFT;
        pthread_mutex_unlock(&sub->mutex);
        sub->on_message(sub->arg, name->text, payload->text);
        pthread_mutex_lock(&sub->mutex);
    } else if (strcmp(kind->text, "subscribe") == 0) {
        if (channel != NULL && channel->state == CHANNEL_ASKED)
            channel->state = CHANNEL_LIVE;
        pthread_cond_broadcast(&sub->changed);
    } else if (strcmp(kind->text, "unsubscribe") == 0) {
        if (channel != NULL && channel->listeners == 0)
            lk_redis_sub_forget(sub, channel);
        else if (channel != NULL)
            channel->state = CHANNEL_WANTED; /* a listener came meanwhile */
    } else {
        return LK_PROTOCOL;
    }
    return LK_OK;
}

/* Reads what has arrived. poll(2) tells of later bytes. */
static lk_status read_all(lk_redis_sub *sub)
{
    for (;;) {
        lk_status status =
            lk_redis_connection_read(&sub->connection, &sub->reply, LK_REDIS_NO_WAIT);
        if (status != LK_OK)
            return status == LK_TIMEOUT ? LK_OK : status;
        pthread_mutex_lock(&sub->mutex);
        status = handle(sub);
        pthread_mutex_unlock(&sub->mutex);
        if (status != LK_OK || !lk_redis_connection_leftover(&sub->connection))
            return status;
    }
}

static bool has_more(const lk_redis_sub *sub)
{
    struct pollfd connection = {.fd = sub->connection.fd, .events = POLLIN};
    return poll(&connection, 1, 0) > 0;
}

/* Sends PING when it is due. LK_UNKNOWN: the answer to the last PING is overdue, and no byte waits
 * to be read, so the connection is silent. Only the answer to PING proves the connection. A message
 * does not: it may arrive although all that this side sends is lost. */
static lk_status prove_connection(lk_redis_sub *sub)
{
    static char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct iovec iov = {.iov_base = ping, .iov_len = sizeof ping - 1};
    int64_t now_us = lk_monotonic_us();
    if (now_us < sub->due_us)
        return LK_OK;
    if (sub->pinged)
        return has_more(sub) ? LK_OK : LK_UNKNOWN;
    sub->pinged = true;
    sub->due_us = now_us + (sub->ping_us > sub->timeout_us ? sub->ping_us : sub->timeout_us);
    atomic_fetch_add_explicit(sub->context->commands, 1, memory_order_relaxed);
    return lk_redis_connection_write(&sub->connection, &iov, 1,
                                     lk_monotonic_us() + sub->timeout_us);
}

/* Waits until bytes arrive, a kick comes, or the time is over. */
static lk_status listen_for(lk_redis_sub *sub, int timeout_ms)
{
    struct pollfd watched[2] = {{.fd = sub->kick_fd, .events = POLLIN},
                                {.fd = sub->connection.fd, .events = POLLIN}};
    int n = poll(watched, 2, timeout_ms);
    if (n < 0 && errno != EINTR) { /* the kernel has no memory: wait before the next try */
        nanosleep(&(struct timespec){.tv_nsec = REMAKE_MS * 1000000L}, NULL);
        return LK_UNAVAILABLE;
    }
    if (n > 0 && watched[0].revents != 0) {
        uint64_t kicks;
        ssize_t size = read(sub->kick_fd, &kicks, sizeof kicks);
        (void)size;
        assert(size == sizeof kicks);
    }
    return n > 0 && watched[1].revents != 0 ? read_all(sub) : LK_OK;
}

static bool anybody_listens(const lk_redis_sub *sub)
{
    return HASH_COUNT(sub->channels) > sub->n_idle;
}

/* Subscribes and unsubscribes what is due, and connects first if need be. */
static lk_status catch_up(lk_redis_sub *sub)
{
    if (sub->silent && sub->connection.fd >= 0)
        lose(sub);
    if (sub->connection.fd < 0 && anybody_listens(sub))
        connect_again(sub);
    if (sub->connection.fd < 0)
        return LK_OK;
    lk_status status = send_all(sub, "UNSUBSCRIBE", CHANNEL_LEFT, CHANNEL_DROPPING);
    return status == LK_OK ? send_all(sub, "SUBSCRIBE", CHANNEL_WANTED, CHANNEL_ASKED) : status;
}

/* How long to listen, in ms for poll(2). */
static int listen_ms(lk_redis_sub *sub, bool listened)
{
    if (!listened)
        return -1;
    if (sub->connection.fd < 0)
        return REMAKE_MS;
    int64_t now_us = lk_monotonic_us();
    if (sub->due_us == 0)
        sub->due_us = now_us + sub->ping_us;
    int64_t left_us = sub->due_us - now_us;
    return left_us > 0 ? (int)(left_us / US_PER_MS) + 1 : 0;
}

void *lk_redis_sub_run(void *arg)
{
    lk_redis_sub *sub = arg;
    pthread_mutex_lock(&sub->mutex);
    while (!sub->stop) {
        lk_status status = catch_up(sub);
        if (status == LK_OK) {
            bool listened = anybody_listens(sub);
            int timeout_ms = listen_ms(sub, listened);
            sub->dozes = !listened;
            pthread_mutex_unlock(&sub->mutex);
            status = listen_for(sub, timeout_ms);
            if (status == LK_OK && listened && sub->connection.fd >= 0)
                status = prove_connection(sub);
            pthread_mutex_lock(&sub->mutex);
            sub->dozes = false;
        }
        if (status != LK_OK)
            lose(sub);
    }
    pthread_mutex_unlock(&sub->mutex);
    return NULL;
}
