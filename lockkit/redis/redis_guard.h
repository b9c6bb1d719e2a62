/*
 * What the Redis guards have in common: the way to Redis, a fence counter per key, and the scripts
 * of a lock whose value is its holder's token.
 *
 * Keys of a lock K:  K           the lock
 *                    {K}:fence   its fence counter (redis_fence.h). All fenced guards share it, so
 *                                fences rise per resource, whichever guard grants.
 * The braces put both into one slot of a Redis Cluster.
 */
#ifndef LOCKKIT_REDIS_GUARD_H
#define LOCKKIT_REDIS_GUARD_H

#include "redis_fence.h"
#include "redis_command.h"

enum {
    LK_REDIS_KEY_MAX = LK_KEY_MAX + 64, /* of a key derived from the lock's */
    LK_REDIS_NUMBER_MAX = 24
};

typedef struct lk_redis_guard lk_redis_guard;
struct lk_redis_guard {
    const lk_context *context;
    lk_redis *redis;
    _Atomic uint64_t n_tokens;
    lk_redis_script acquire; /* the provider's open() sets it */
    lk_redis_script release, renew, raise_fence;
    lk_redis_script facts, confirm, force; /* see redis_inspect.h */
    const char *kind;                      /* LK_REDIS_KIND_*: which keys a list shows */
    /* Optional: reads what only this guard knows how to read in its value. */
    void (*refine)(const lk_redis_guard *guard, lk_lock_info *info);
};

/* The two scripts of a lock whose value is its holder's token. KEYS: lock. ARGV: token, lease (of
 * the second). They answer 1, or 0: not mine. Source: https://redis.io/docs/latest/commands/set/
 * (Patterns). */
extern const char lk_redis_delete_if_mine[], lk_redis_expire_if_mine[];

lk_status lk_redis_guard_init(lk_redis_guard *guard, const lk_context *context, lk_error *error);
void lk_redis_guard_end(lk_redis_guard *guard);

/* The beginning of a script that deletes KEYS[1] whoever holds it. It leaves types alone that no
 * guard stores. */
#define LK_REDIS_ONLY_LOCKS                                                                        \
    "local kind = redis.call('type', KEYS[1]).ok "                                                 \
    "if kind ~= 'string' and kind ~= 'hash' and kind ~= 'zset' then "                              \
    "  return 0 "                                                                                  \
    "end "

/* Members of lk_provider for guards whose self is an lk_redis_guard. */
lk_status lk_redis_guard_open(const lk_context *context, void **ret_self, lk_error *error);
void lk_redis_guard_close(void *self);
lk_status lk_redis_guard_ping(void *self);
void lk_redis_guard_last_error(void *self, char *ret, size_t size);
lk_status lk_redis_guard_raise_fence(void *self, const char *key, uint64_t seen);
/* Each compares the value with hold->token, then deletes or sets the lease, in one script. */
lk_status lk_redis_guard_release(void *self, lk_hold *hold);
void lk_redis_guard_release_each(void *self, lk_hold *const *holds, size_t n, lk_status *statuses);
lk_status lk_redis_guard_renew(void *self, lk_hold *hold, int64_t lease_ms);
/* The bare DEL of the flawed guards, for a lock that was granted. An attempt of unknown outcome is
 * undone by comparing the value: the lock may be another holder's. */
lk_status lk_redis_guard_bare_release(void *self, lk_hold *hold);

/* To be called before each try: makes the token unique, and notes that the hold is not granted. */
void lk_redis_begin_try(lk_redis_guard *guard, lk_hold *hold);
/* Notes in the hold that it was granted. */
void lk_redis_set_granted(lk_hold *hold);
bool lk_redis_is_granted(const lk_hold *hold);

/* Each fills buffer and returns it. */
const char *lk_redis_number(char buffer[LK_REDIS_NUMBER_MAX], int64_t number);
const char *lk_redis_key(char buffer[LK_REDIS_KEY_MAX], const char *key, const char *suffix);

/* Reads the answer of an acquire script: the fence (> 0), or -1 - PTTL of the lock (PTTL -1: no
 * lease). Fills hold->fence and returns LK_OK, or fills attempt->retry_us and returns LK_BUSY. */
lk_status lk_redis_granted(const lk_redis_guard *guard, lk_attempt *attempt, int64_t answer);
/* The instant at which a key with this PTTL is gone, on the environment's clock; 0: never. */
int64_t lk_redis_gone_at_us(const lk_redis_guard *guard, int64_t pttl_ms);

/* For an answer of 1 or 0: LK_OK or LK_LOST. A key of another type (LK_BUSY) was not ours: LK_LOST.
 */
lk_status lk_redis_done(lk_status status, const lk_redis_reply *reply);

#endif
