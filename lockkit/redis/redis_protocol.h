/*
 * RESP2, the protocol of Redis: a command as bytes, and a reply as a fixed struct.
 *
 * Neither needs the heap, unless a command carries the text of a script. hiredis parses the
 * replies; its formatting of commands took half the instructions of a lock and is not used. Source:
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
#ifndef LOCKKIT_REDIS_PROTOCOL_H
#define LOCKKIT_REDIS_PROTOCOL_H

#include "lockkit.h"

#include <hiredis/hiredis.h>

enum {
    LK_REDIS_ENCODED_MAX = 512, /* bytes of a command that needs no heap */
    LK_REDIS_ITEMS_MAX = 4,     /* elements of an array reply; ours have at most three */
    LK_REDIS_TEXT_MAX = 640     /* bytes of all strings of one reply */
};

/* -- commands --------------------------------------------------------------------------------- */

/* "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" */
typedef struct lk_redis_encoded {
    char *bytes; /* in own, or on the heap: the struct may not be copied */
    size_t length;
    char own[LK_REDIS_ENCODED_MAX];
} lk_redis_encoded;

/* Encodes a command of n words. False: out of memory. Free it after use. */
bool lk_redis_encode(lk_redis_encoded *encoded, int n, const char *const *words);
void lk_redis_encoded_free(lk_redis_encoded *encoded);

/* -- replies ---------------------------------------------------------------------------------- */

/* One value: REDIS_REPLY_* of hiredis. */
typedef struct lk_redis_item {
    int type;
    int64_t integer;  /* of an integer; number of elements of an array */
    const char *text; /* of a string, status or error; NUL-terminated, in the reply's text */
    size_t length;
} lk_redis_item;

typedef struct lk_redis_reply {
    lk_redis_item root;
    lk_redis_item item[LK_REDIS_ITEMS_MAX]; /* elements when root is an array */
    int32_t replicas; /* that have what the command wrote; see lk_redis_run_try() */
    size_t used;
    char text[LK_REDIS_TEXT_MAX];
} lk_redis_reply;

/* For a redisReader whose privdata is the lk_redis_reply. The reply's used is 0 before it begins.
 */
extern redisReplyObjectFunctions lk_redis_reply_functions;

/* True for the refusals of a server that is full (maxclients) or in protected mode. It has read
 * nothing that was sent, and closes the connection. */
bool lk_redis_reply_refuses(const lk_redis_reply *reply);

/*
 * What a reply means for its command:
 *     LK_OK           it is no error
 *     LK_UNAVAILABLE  an error that says "not now" (LOADING, READONLY, OOM ...): certainly not done
 *     LK_BUSY         WRONGTYPE: the key belongs to another kind of guard
 *     LK_PROTOCOL     every other error
 */
lk_status lk_redis_reply_status(const lk_redis_reply *reply);

#endif
