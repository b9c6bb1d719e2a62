/*
 * Looking at Redis locks from outside: the operators' members of lk_provider, for every guard whose
 * self begins with an lk_redis_guard.
 *
 * Any key with a lock's name keeps others out, whichever guard has written it. So one script tells
 * what is known of a key by its type, and inspecting by one guard shows the lock of another guard
 * too. A list shows one guard's kind only: strings, hashes of one owner, hashes with a mode, sorted
 * sets. A string does not say who wrote it, so every string with the prefix counts as a lock: use a
 * prefix that only locks have.
 */
#ifndef LOCKKIT_REDIS_INSPECT_H
#define LOCKKIT_REDIS_INSPECT_H

#include "redis_guard.h"

#define LK_REDIS_KIND_STRING    "string"
#define LK_REDIS_KIND_REENTRANT "reentrant"
#define LK_REDIS_KIND_READWRITE "readwrite"
#define LK_REDIS_KIND_SEMAPHORE "semaphore"

/* Waiters are counted for redis-fair only. Waiters of other guards leave nothing in Redis. */
lk_status lk_redis_guard_inspect(void *self, const char *key, lk_lock_info *ret);

/* SCAN on a connection of its own, so that a long list delays no renewal, and one more command per
 * lock. A lock that is held all the time is listed at least once, and perhaps twice if Redis
 * resizes its table meanwhile. Needs Redis 6. */
lk_status lk_redis_guard_list(void *self, const char *prefix,
                              int (*each)(void *arg, const lk_lock_info *info), void *arg);

/* LK_OK: the value is the hold's token. */
lk_status lk_redis_guard_confirm(void *self, const lk_hold *hold);
/* DEL. Polling waiters need no message. */
lk_status lk_redis_guard_force_release(void *self, const char *key);

/* For lk_redis_guard_init(): a guard of strings. */
void lk_redis_inspect_init(lk_redis_guard *guard);

#endif
