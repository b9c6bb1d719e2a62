#include "lock_world.h"
#include "process.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

struct sandbox *world_sandbox;
struct sandbox_server *world_redis;

int world_open(void **state)
{
    (void)state;
    if (sandbox_open(&world_sandbox) != 0)
        return -1;
    world_redis = sandbox_redis(world_sandbox, NULL);
    return world_redis != NULL ? 0 : -1;
}

int world_close(void **state)
{
    (void)state;
    sandbox_close(world_sandbox);
    return 0;
}

lk_client *world_client_at(const char *guard, int port, const lk_options *options)
{
    char url[64];
    lk_client *client;
    lk_error error;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    if (lk_open(guard, url, options, &client, &error) == LK_OK)
        return client;
    fprintf(stderr, "cannot open %s at %s: %s\n", guard, url, error.message);
    return NULL;
}

lk_client *world_client(const char *guard, const lk_options *options)
{
    return world_client_at(guard, world_redis->port, options);
}

lk_status world_acquire(lk_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
                        lk_hold *hold)
{
    lk_request request = {.key = key, .lease_ms = lease_ms, .wait_ms = wait_ms};
    return lk_acquire(client, &request, hold);
}

/* NULL when Redis does not answer; the reply is the caller's. */
static redisReply *ask(const char *format, va_list args)
{
    redisContext *context = redisConnect("127.0.0.1", world_redis->port);
    redisReply *reply = context != NULL ? redisvCommand(context, format, args) : NULL;
    if (context != NULL)
        redisFree(context);
    return reply;
}

static int64_t integer_of(redisReply *reply)
{
    int64_t integer = INT64_MIN;
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR)
        integer =
            reply->type == REDIS_REPLY_INTEGER ? reply->integer : reply->type != REDIS_REPLY_NIL;
    freeReplyObject(reply);
    return integer;
}

int64_t world_ask(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int64_t integer = integer_of(ask(format, args));
    va_end(args);
    return integer;
}

void world_ask_text(char *ret, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(format, args);
    va_end(args);
    snprintf(ret, size, "%s", reply != NULL && reply->str != NULL ? reply->str : "");
    freeReplyObject(reply);
}

struct question {
    const char *format;
    va_list *args;
    int64_t want;
};

static bool is_answered(void *arg)
{
    struct question *question = arg;
    va_list args;
    va_copy(args, *question->args);
    int64_t integer = integer_of(ask(question->format, args));
    va_end(args);
    return integer == question->want;
}

bool world_becomes(int64_t want, int64_t wait_ms, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct question question = {.format = format, .args = &args, .want = want};
    bool is = wait_until(is_answered, &question, wait_ms);
    va_end(args);
    return is;
}
