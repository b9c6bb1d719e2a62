/* Trusts its subscription as long as the kernel does: it never asks for a sign of life. A waiter
 * subscribes and then sleeps until a message comes or the lease of the holder ends. */
#include "lab_redis.h"
#include "lab_slips.h"
#include "provider.h"

#include <poll.h>
#include <stdlib.h>

static const lk_provider *right;
static const lk_context *of_client; /* the lab's service has one for this guard */

static lk_status open_noting(const lk_context *context, void **ret_self, lk_error *error)
{
    of_client = context;
    return right->open(context, ret_self, error);
}

/* The right guard would take attempt->waiter for a waiter of its own. */
static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    void *line = attempt->waiter;
    attempt->waiter = NULL;
    const lk_status status = right->try_acquire(self, attempt);
    attempt->waiter = line;
    return status;
}

/* Waits for an answer or a message. False: none came in time, or the connection ended. */
static bool hear(redisContext *line, int64_t until_us)
{
    const lk_env *env = of_client->env;
    struct pollfd readable = {.fd = line->fd, .events = POLLIN};
    void *reply = NULL;
    while (redisGetReplyFromReader(line, &reply) == REDIS_OK && reply == NULL) {
        const int64_t left_us = until_us - env->now_us(env->ctx);
        if (left_us <= 0 || poll(&readable, 1, (int)(left_us / 1000) + 1) < 0 ||
            (readable.revents != 0 && redisBufferRead(line) != REDIS_OK))
            return false;
    }
    const bool heard = reply != NULL;
    freeReplyObject(reply);
    return heard;
}

/* Returns a connection on which SUBSCRIBE was sent, or NULL. */
static redisContext *subscribe(const char *key)
{
    int done = 0;
    redisContext *line =
        lab_redis_connect(of_client->endpoints, of_client->options->command_timeout_ms);
    if (line != NULL &&
        redisAppendCommand(line, "SUBSCRIBE redisson_lock__channel:{%s}", key) == REDIS_OK)
        while (!done && redisBufferWrite(line, &done) == REDIS_OK)
            continue;
    if (done)
        return line;
    redisFree(line);
    return NULL;
}

/* attempt->waiter: its connection. */
static lk_status wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    const lk_env *env = of_client->env;
    (void)self;
    if (attempt->waiter == NULL) {
        env->point(env->ctx, LK_POINT_SUBSCRIBE, attempt->hold->key);
        attempt->waiter = subscribe(attempt->hold->key);
    }
    redisContext *line = attempt->waiter;
    if (line == NULL)
        return LK_UNAVAILABLE;
    hear(line, until_us); /* first the answer to SUBSCRIBE: then the core tries again */
    return line->err == 0 ? LK_OK : LK_UNAVAILABLE;
}

static void wait_end(void *self, lk_attempt *attempt)
{
    (void)self;
    redisFree(attempt->waiter);
    attempt->waiter = NULL;
}

void lab_slip_unproved_line(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("redis-reentrant");
    wrong = *right;
    wrong.open = open_noting;
    wrong.try_acquire = try_acquire;
    wrong.wait = wait;
    wrong.wait_end = wait_end;
    lab_slip_provider(seams, &wrong);
}
