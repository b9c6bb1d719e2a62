/*
 * What the Redis guards have in common whose release publishes on a channel of the lock. Their
 * waiters sleep until a message comes, instead of polling.
 *
 * A waiter subscribes, tries once more, then sleeps until a message, at most until the end of the
 * holder's lease: expiry publishes nothing. So whoever moves that end forward publishes too, as a
 * release does (LK_REDIS_EXPIRE): the waiters try again and learn the new end. In each client a
 * message wakes one waiter that wants the lock for itself, and all that would share it. While the
 * channel is not subscribed, wait() returns LK_UNAVAILABLE, and the core tries again after a random
 * pause. README.md, Waiting for a message.
 *
 * After LockPubSub.java of Redisson 3.
 */
#ifndef LOCKKIT_REDIS_WAKE_H
#define LOCKKIT_REDIS_WAKE_H

#include "redis_guard.h"
#include "redis_waiters.h"
#include "redis_sub.h"

/* Lua: expire(key of the lock, lease in ms, channel), 1 or 0 as PEXPIRE. Publishes if the lease now
 * ends earlier than the waiters were told. */
#define LK_REDIS_EXPIRE                                                                            \
    "local function expire(key, lease, channel) "                                                  \
    "  if redis.call('pttl', key) > tonumber(lease) then "                                         \
    "    redis.call('publish', channel, '0') "                                                     \
    "  end "                                                                                       \
    "  return redis.call('pexpire', key, lease) "                                                  \
    "end "

/* The self of such a guard. */
typedef struct lk_redis_wake {
    lk_redis_guard guard; /* first: the members of redis_guard.h take this struct too */
    const char *prefix;   /* channel of lock K: "prefix:{K}" */
    lk_redis_waiters *waiters;
    lk_redis_sub *sub;
    lk_redis_script force;
} lk_redis_wake;

/* The provider sets its scripts afterwards. prefix: static. LK_OK, LK_INVALID, LK_NO_MEMORY. */
lk_status lk_redis_wake_open(const lk_context *context, const char *prefix, lk_redis_wake **ret,
                             lk_error *error);

/* To be called after each try that was answered: the wake-up that led to it is used. */
void lk_redis_wake_tried(lk_redis_wake *wake, lk_attempt *attempt);

/* Fills buffer and returns it. */
const char *lk_redis_wake_channel(const lk_redis_wake *wake, char buffer[LK_REDIS_CHANNEL_MAX],
                                  const char *key);

/* Members of lk_provider. */
void lk_redis_wake_close(void *self);
lk_status lk_redis_wake_wait(void *self, lk_attempt *attempt, int64_t until_us);
void lk_redis_wake_wait_end(void *self, lk_attempt *attempt);
lk_status lk_redis_wake_force_release(void *self, const char *key); /* one message */

#endif
