/*
 * One connection to one Redis node, shared by all threads of a client.
 *
 * Flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat combining and the synchronization-
 * parallelism tradeoff", SPAA 2010): the caller who finds the connection idle becomes the combiner.
 * It writes everything queued in one system call and reads all the replies; before it hands them
 * out it writes what has queued up meanwhile, and makes the first caller of that batch the next
 * combiner. So Redis has work while the answered threads wake up, nobody serves others for more
 * than one batch, and no thread of its own stands between a caller and the socket.
 *
 * A batch that is not answered within the command timeout takes the connection with it: a late
 * reply can never answer another command. The next call connects anew.
 *
 * Threading: every function may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_CONN_H
#define LOCKKIT_REDIS_CONN_H

#include "provider.h"
#include "redis_stream.h"

enum { LK_REDIS_BATCH_MAX = 128 /* commands of one write */ };

typedef struct lk_redis lk_redis;

/* Parses context->endpoints; connects on first use. LK_OK, LK_INVALID, LK_NO_MEMORY. */
lk_status lk_redis_open(const lk_context *context, lk_redis **ret, lk_error *error);
/* No call may be under way. */
void lk_redis_close(lk_redis *redis);

const lk_redis_url *lk_redis_endpoint(const lk_redis *redis);

/*
 * Sends one command of n words and waits for its reply.
 * LK_OK: *reply is filled (it may be an error reply: see lk_redis_reply_status()).
 * LK_UNAVAILABLE: certainly not sent. LK_UNKNOWN: sent, no answer. LK_PROTOCOL: the answer was
 * none of the protocol's. Returns within twice the command timeout.
 */
lk_status lk_redis_run(lk_redis *redis, lk_redis_reply *reply, int n, const char **words);

/* "GET", key -> 2, {"GET", key} */
#define LK_REDIS_WORDS(...)                                                                        \
    (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[])          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define lk_redis_command(redis, reply, ...)                                                        \
    lk_redis_run((redis), (reply), LK_REDIS_WORDS(__VA_ARGS__))

/* For the status and reply of lk_redis_run(): a reply that is an error, or not of the wanted type
 * (REDIS_REPLY_*; 0: any), becomes a status: see lk_redis_reply_status(); LK_PROTOCOL for another
 * type. */
lk_status lk_redis_expect(lk_redis *redis, lk_redis_reply *reply, int type, lk_status status);

/* PING. */
lk_status lk_redis_ping(lk_redis *redis);

/* What went wrong last, for people; "" when nothing has. */
void lk_redis_last_error(lk_redis *redis, char *ret, size_t size);

#endif
