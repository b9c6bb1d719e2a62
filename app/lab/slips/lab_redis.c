#include "lab_redis.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

/* With the password of the environment, if there is one. A user's name is not known here. */
static bool log_in(redisContext *connection)
{
    const char *password = getenv("LOCKKIT_REDIS_AUTH");
    if (password == NULL || password[0] == '\0')
        return true;
    redisReply *reply = redisCommand(connection, "AUTH %s", password);
    bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return good;
}

redisContext *lab_redis_connect(const char *url, int64_t timeout_ms)
{
    const struct timeval timeout = {.tv_sec = timeout_ms / 1000,
                                    .tv_usec = timeout_ms % 1000 * 1000};
    char host[256];
    int port;
    if (sscanf(url, "redis://%255[^:/,]:%d", host, &port) != 2)
        return NULL;
    redisContext *connection = redisConnectWithTimeout(host, port, timeout);
    if (connection != NULL && connection->err == 0 &&
        redisSetTimeout(connection, timeout) == REDIS_OK && log_in(connection))
        return connection;
    redisFree(connection);
    return NULL;
}
