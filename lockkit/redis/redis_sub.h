/*
 * The subscriber: a second connection of a client, on which messages arrive. Redis allows nothing
 * else on it. It is opened for the first listener, shared by all, and read by one thread of its
 * own.
 *
 * A channel without listeners stays subscribed until its next message, or until too many channels
 * are idle. On a contended lock the next listener comes soon, and saves a round trip.
 *
 * While there are listeners, a PING once a second proves the connection. Without it, a connection
 * whose packets vanish would look open for hours. If the answer does not come within a second (or
 * within the command timeout if that is longer), the connection ends. A connection that has ended
 * is made again while there are listeners. Messages may be lost meanwhile, so on_message(NULL)
 * wakes all waiters, and each tries again.
 *
 * Threading: every function may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_SUB_H
#define LOCKKIT_REDIS_SUB_H

#include "redis_command.h"

enum { LK_REDIS_CHANNEL_MAX = LK_KEY_MAX + 64, LK_REDIS_IDLE_MAX = 256 };

typedef struct lk_redis_sub lk_redis_sub;

/* Called from the subscriber's thread. Must not block and must not call back. channel NULL:
 * messages of any channel may have been lost, or the server is away. */
typedef void lk_redis_on_message(void *arg, const char *channel, const char *payload);

/* Opens no connection yet. Borrows redis and context. LK_OK, LK_NO_MEMORY. */
lk_status lk_redis_sub_open(const lk_context *context, lk_redis *redis,
                            lk_redis_on_message *on_message, void *arg, lk_redis_sub **ret,
                            lk_error *error);
/* There may be no listeners. */
void lk_redis_sub_close(lk_redis_sub *sub);

/*
 * Listens to channel: what is published after the return reaches on_message. Counted: each call is
 * followed by one lk_redis_sub_leave(). *ret_was_live (may be NULL): the channel was subscribed
 * before the call. Returns LK_OK, LK_UNAVAILABLE (at the latest after wait_us or the command
 * timeout), LK_NO_MEMORY.
 */
lk_status lk_redis_sub_join(lk_redis_sub *sub, const char *channel, int64_t wait_us,
                            bool *ret_was_live);
void lk_redis_sub_leave(lk_redis_sub *sub, const char *channel);
/* 0 while the channel is not subscribed. Else a number, which changes if the subscription is
 * interrupted: a message may then have been missed. */
uint64_t lk_redis_sub_live(lk_redis_sub *sub, const char *channel);

#endif
