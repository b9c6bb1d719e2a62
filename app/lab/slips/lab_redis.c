#include "lab_redis.h"

#include <stdio.h>
#include <sys/time.h>

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
        redisSetTimeout(connection, timeout) == REDIS_OK)
        return connection;
    redisFree(connection);
    return NULL;
}
