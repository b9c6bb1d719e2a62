/* Answers of Redis as text, to compare those of the model with those of a real server. */
#ifndef SIM_REDIS_TEXT_H
#define SIM_REDIS_TEXT_H

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Returns how many bytes. */
static inline size_t redis_text(const redisReply *reply, char *to, size_t size)
{
    size_t n = 0;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        return (size_t)snprintf(to, size, ":%lld ", reply->integer);
    case REDIS_REPLY_NIL:
        return (size_t)snprintf(to, size, "nil ");
    case REDIS_REPLY_ERROR: /* by its code: the rest differs from version to version */
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

#endif
