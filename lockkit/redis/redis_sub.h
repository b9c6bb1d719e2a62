/*
 * The connection of a client on which messages arrive: Redis allows nothing else on it. Opened by
 * the first who wants to listen, shared by all, read by one thread of its own.
 *
 * A channel that nobody listens to any more stays subscribed until its next message, or until too
 * many are idle: on a contended lock the next listener is there before long, and saves a round
 * trip.
 *
 * While anybody listens, a PING once a second proves the line, in every topology: packets may
 * vanish without a word, and the kernel would notice after hours. An answer that does not come
 * within a second, or the command timeout if that is longer, ends the connection. A broken
 * connection is remade while anybody listens. Messages may be lost meanwhile: everybody is told to
 * look for himself.
 *
 * Threading: every function may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_SUB_H
#define LOCKKIT_REDIS_SUB_H

#include "redis_command.h"

enum { LK_REDIS_CHANNEL_MAX = LK_KEY_MAX + 64, LK_REDIS_IDLE_MAX = 256 };

typedef struct lk_redis_sub lk_redis_sub;

/* Called from the connection's thread; must not block and must not call back. channel NULL:
 * messages of any channel may have been lost, or the server is away. */
typedef void lk_redis_on_message(void *arg, const char *channel, const char *payload);

/* Opens no connection yet, and later one to where redis is then. Borrows redis and context. LK_OK,
 * LK_NO_MEMORY. */
lk_status lk_redis_sub_open(const lk_context *context, lk_redis *redis,
                            lk_redis_on_message *on_message, void *arg, lk_redis_sub **ret,
                            lk_error *error);
/* Nobody may listen any more. */
void lk_redis_sub_close(lk_redis_sub *sub);

/*
 * Listens to channel: what is published after the return reaches on_message. Counted: to be
 * followed by as many lk_redis_sub_leave(). *ret_was_live (may be NULL): it already was so before
 * the call. Returns LK_OK, LK_UNAVAILABLE (at the latest after wait_us or the command timeout),
 * LK_NO_MEMORY.
 */
lk_status lk_redis_sub_join(lk_redis_sub *sub, const char *channel, int64_t wait_us,
                            bool *ret_was_live);
void lk_redis_sub_leave(lk_redis_sub *sub, const char *channel);
/* 0 while the channel is not subscribed; else a number that has changed if it ever was not since
 * the last look. */
uint64_t lk_redis_sub_live(lk_redis_sub *sub, const char *channel);

#endif
