/* One Redis, and the guards of one Redis. */
#include "lock_world.h"
#include "process.h"
#include "redis.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { SECOND_MS = 1000 };

struct sandbox_server *world_redis;

/* The caller frees the reply; NULL if Redis does not answer. */
static redisReply *ask(const char *format, va_list args)
{
    redisContext *context = redis_connect(world_redis->port);
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

bool world_stands(const lk_hold *hold)
{
    char token[LK_TOKEN_MAX + 1];
    world_ask_text(token, sizeof token, "GET %s", hold->key);
    return strcmp(token, hold->token) == 0;
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

/* -- the family ---------------------------------------------------------------------------------
 */

static const char *const guards[] = {
    "redis-setnx",     "redis-setnx-expire", "redis-set",       "redis-getset",    "redis-token",
    "redis-reentrant", "redis-fair",         "redis-readwrite", "redis-semaphore", NULL,
};

static bool start(struct sandbox *sandbox)
{
    world_redis = sandbox_redis(sandbox, NULL);
    return world_redis != NULL;
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    snprintf(ret, size, "redis://127.0.0.1:%d", proxy_port != 0 ? proxy_port : world_redis->port);
}

static int port(void)
{
    return world_redis->port;
}

static struct sandbox_server *server(size_t i)
{
    return i == 0 ? world_redis : NULL;
}

static void wipe(void)
{
    world_ask("FLUSHALL");
}

static bool exists(const char *key)
{
    return world_ask("EXISTS %s", key) == 1;
}

static bool remove_lock(const char *key)
{
    return world_ask("DEL %s", key) == 1;
}

static int64_t left_ms(const char *key)
{
    int64_t left = world_ask("PTTL %s", key);
    return left < 0 ? -1 : left;
}

static int64_t leftovers(void)
{
    return world_ask("EVAL %s 0",
                     "return #redis.call('KEYS', '*') - #redis.call('KEYS', '*:fence')");
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    bool whole_seconds = strcmp(guard->name, "redis-setnx-expire") == 0;
    return whole_seconds ? (lease_ms + SECOND_MS - 1) / SECOND_MS * SECOND_MS : lease_ms;
}

const struct lock_family family_redis = {
    .name = "redis",
    .guards = guards,
    .fast = true,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .server = server,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
