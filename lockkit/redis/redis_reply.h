/*
 * What Redis answers: hiredis' parser puts it into a fixed struct, without allocation. One value,
 * or an array of few.
 */
#ifndef LOCKKIT_REDIS_REPLY_H
#define LOCKKIT_REDIS_REPLY_H

#include "lockkit.h"

#include <hiredis/hiredis.h>

enum {
    LK_REDIS_ITEMS_MAX = 4, /* elements of an array reply; ours have at most three */
    LK_REDIS_TEXT_MAX = 640 /* bytes of all strings of one reply */
};

/* One value: REDIS_REPLY_* of hiredis. */
typedef struct lk_redis_item {
    int type;
    int64_t integer;  /* of an integer; count of an array */
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

/* For a redisReader whose privdata is the lk_redis_reply; its used is 0 before a reply begins. */
extern redisReplyObjectFunctions lk_redis_reply_functions;

/* The server is full (maxclients) or in protected mode: it has read nothing that was sent, and
 * closes the connection. */
bool lk_redis_reply_refuses(const lk_redis_reply *reply);

/* What an answer means for a command: LK_OK; LK_UNAVAILABLE for errors that say "not now" (LOADING,
 * READONLY, OOM ...: certainly not done); LK_BUSY for WRONGTYPE (the key belongs to another kind of
 * guard); LK_PROTOCOL for every other error. */
lk_status lk_redis_reply_status(const lk_redis_reply *reply);

#endif
