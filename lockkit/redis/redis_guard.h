/*
 * What the Redis guards have in common: a connection, a fence counter per key, and the scripts for
 * a lock whose value is its holder's mark.
 *
 * Keys of a lock K:  K           the lock
 *                    {K}:fence   its fence counter, shared by all fenced guards, so that fences
 * rise per resource whoever grants; ends by itself (redis_fence.h) The braces put both into one
 * slot of a Redis Cluster.
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
    lk_redis_script acquire; /* the provider's own; its open() sets it */
    lk_redis_script release, renew, raise_fence;
    lk_redis_script facts, confirm, force; /* see redis_inspect.h */
    const char *kind;                      /* LK_REDIS_KIND_*: what of its locks a list shows */
    /* Optional: what the guard alone can read out of its value. */
    void (*refine)(const lk_redis_guard *guard, lk_lock_info *info);
};

/* The two scripts of a lock whose value is its holder's token. KEYS: lock. ARGV: token, lease (of
 * the second). They answer 1, or 0: not mine. Source: https://redis.io/docs/latest/commands/set/
 * (Patterns). */
extern const char lk_redis_delete_if_mine[], lk_redis_expire_if_mine[];

lk_status lk_redis_guard_init(lk_redis_guard *guard, const lk_context *context, lk_error *error);
void lk_redis_guard_end(lk_redis_guard *guard);

/* The beginning of a script that deletes KEYS[1] unasked: what no guard stores is nobody's lock. */
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
/* Compare the value with hold->token, then delete, or set the lease: one step in Lua. */
lk_status lk_redis_guard_release(void *self, lk_hold *hold);
void lk_redis_guard_release_each(void *self, lk_hold *const *holds, size_t n, lk_status *statuses);
lk_status lk_redis_guard_renew(void *self, lk_hold *hold, int64_t lease_ms);
/* The textbook's bare DEL for a lock that was granted; an attempt in doubt is undone by comparing
 * the value, as it may be somebody else's. */
lk_status lk_redis_guard_bare_release(void *self, lk_hold *hold);

/* Before each try: not granted, and lk_make_token_unique(). */
void lk_redis_mark(lk_redis_guard *guard, lk_hold *hold);
/* Notes in the hold that it was granted. */
void lk_redis_mark_granted(lk_hold *hold);
bool lk_redis_is_granted(const lk_hold *hold);

/* Each fills buffer and returns it. */
const char *lk_redis_number(char buffer[LK_REDIS_NUMBER_MAX], int64_t number);
const char *lk_redis_key(char buffer[LK_REDIS_KEY_MAX], const char *key, const char *suffix);

/* Reads the answer of an acquire script: the fence (> 0), or -1 - PTTL of the lock (PTTL -1: no
 * lease). Fills hold->fence, or attempt->retry_us. */
lk_status lk_redis_granted(const lk_redis_guard *guard, lk_attempt *attempt, int64_t answer);
/* When a key with this PTTL will be gone, on the environment's clock; 0 for none. */
int64_t lk_redis_gone_at_us(const lk_redis_guard *guard, int64_t pttl_ms);

/* 1 or 0 as an answer: LK_OK, LK_LOST; a key of another type was not ours either. */
lk_status lk_redis_done(lk_status status, const lk_redis_reply *reply);

#endif
