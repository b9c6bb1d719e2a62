#include "redis.h"
#include "process.h"
#include "sandbox_process.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct redis_watch {
    redisContext *context;
};

struct redisContext *redis_connect(int port)
{
    return sandbox_redis_login(redisConnect("127.0.0.1", port));
}

int64_t redis_do(const struct sandbox_server *redis, const char *format, ...)
{
    int64_t result = INT64_MIN;
    redisContext *context = redis_connect(redis->port);
    va_list args;
    va_start(args, format);
    redisReply *reply = context != NULL ? redisvCommand(context, format, args) : NULL;
    va_end(args);
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        result = reply->integer;
    else if (reply != NULL && reply->type == REDIS_REPLY_NIL)
        result = 0;
    else if (reply != NULL &&
             (reply->type == REDIS_REPLY_STATUS || reply->type == REDIS_REPLY_STRING))
        result = 1;
    freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return result;
}

struct redis_watch *redis_watch_open(const struct sandbox_server *redis)
{
    struct redis_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return NULL;
    watch->context = redis_connect(redis->port);
    redisReply *reply = watch->context != NULL ? redisCommand(watch->context, "MONITOR") : NULL;
    if (reply == NULL) {
        redis_watch_close(watch);
        return NULL;
    }
    freeReplyObject(reply);
    return watch;
}

bool redis_watch_sees(struct redis_watch *watch, const char *text, int64_t wait_ms)
{
    int64_t deadline_ms = test_now_ms() + wait_ms;
    for (;;) {
        void *next = NULL;
        if (redisReaderGetReply(watch->context->reader, &next) != REDIS_OK)
            return false;
        if (next != NULL) {
            redisReply *reply = next;
            bool seen = reply->str != NULL && strstr(reply->str, text) != NULL;
            freeReplyObject(reply);
            if (seen)
                return true;
            continue;
        }
        int64_t left_ms = deadline_ms - test_now_ms();
        struct pollfd readable = {.fd = watch->context->fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&readable, 1, (int)left_ms) <= 0 ||
            redisBufferRead(watch->context) != REDIS_OK)
            return false;
    }
}

void redis_watch_close(struct redis_watch *watch)
{
    if (watch != NULL && watch->context != NULL)
        redisFree(watch->context);
    free(watch);
}
