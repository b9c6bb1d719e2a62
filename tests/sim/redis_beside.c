#include "redis_beside.h"
#include "sim_redis.h"
#include "sim_world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* -- in the place of the simulated world ------------------------------------------------------- */

void sim_count(enum sim_event event)
{
    (void)event;
}

int64_t sim_redis_now_us(const struct sim_redis *redis)
{
    struct timespec now;
    (void)redis;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

int sim_redis_publish(struct sim_redis *redis, const char *channel, const char *message)
{
    (void)redis;
    (void)channel;
    (void)message;
    return 0;
}

void sim_redis_wrote(struct sim_redis *redis)
{
    (void)redis;
}

/* -- answers ----------------------------------------------------------------------------------- */

size_t redis_text(const redisReply *reply, char *to, size_t size)
{
    size_t n = 0;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        return (size_t)snprintf(to, size, ":%lld ", reply->integer);
    case REDIS_REPLY_NIL:
        return (size_t)snprintf(to, size, "nil ");
    case REDIS_REPLY_ERROR:
        return (size_t)snprintf(to, size, "-%.*s ", (int)strcspn(reply->str, " "), reply->str);
    case REDIS_REPLY_ARRAY:
        n = (size_t)snprintf(to, size, "*%zu ", reply->elements);
        for (size_t i = 0; i < reply->elements; i++)
            n += redis_text(reply->element[i], to + n, size - n);
        return n;
    default:
        return (size_t)snprintf(to, size, "%c%s ", reply->type == REDIS_REPLY_STATUS ? '+' : '$',
                                reply->str);
    }
}
