/*
 * A command as Redis reads it (RESP): "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n". What hiredis' formatting
 * does, without sprintf and, unless it carries the text of a script, without the heap: that was
 * half the instructions of a lock.
 * Source: https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#ifndef LOCKKIT_REDIS_PROTOCOL_H
#define LOCKKIT_REDIS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

enum { LK_REDIS_ENCODED_MAX = 512 };

typedef struct lk_redis_encoded {
    char *bytes; /* in room, or on the heap: a encoded may not be copied */
    size_t length;
    char room[LK_REDIS_ENCODED_MAX];
} lk_redis_encoded;

/* Of n words. False: out of memory. Free it after use. */
bool lk_redis_encode(lk_redis_encoded *encoded, int n, const char *const *words);
void lk_redis_encoded_free(lk_redis_encoded *encoded);

#endif
