/* A connection to a Redis on loopback, with the password of the environment. */
#ifndef CONNECT_REDIS_H
#define CONNECT_REDIS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>

/* NULL: it failed. */
static inline redisContext *connect_redis(int port)
{
    const char *password = getenv("LOCKKIT_REDIS_AUTH");
    redisContext *context = redisConnect("127.0.0.1", port);
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0)
        reply = redisCommand(context, "AUTH %s", password != NULL ? password : "");
    bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (good)
        return context;
    if (context != NULL)
        redisFree(context);
    return NULL;
}

#endif
