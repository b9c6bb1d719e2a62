/*
 * Looking at Redis locks from outside: the operators' members of lk_provider, for every guard whose
 * self begins with an lk_redis_guard.
 *
 * Any key that stands at a lock's name keeps the others out, whichever guard put it there; so one
 * script tells what is known of a key by the type it finds, and inspecting by one guard shows the
 * lock of another too. A list shows one guard's kind only: strings, hashes of one owner, hashes
 * with a mode, sorted sets. A string says nothing about who wrote it, so every string with the
 * prefix is taken for a lock: give one that only locks have.
 */
#ifndef LOCKKIT_REDIS_INSPECT_H
#define LOCKKIT_REDIS_INSPECT_H

#include "redis_guard.h"

#define LK_REDIS_KIND_STRING    "string"
#define LK_REDIS_KIND_REENTRANT "reentrant"
#define LK_REDIS_KIND_READWRITE "readwrite"
#define LK_REDIS_KIND_SEMAPHORE "semaphore"

/* waiters are those of redis-fair's queue: others poll, or listen without telling what for. */
lk_status lk_redis_guard_inspect(void *self, const char *key, lk_lock_info *ret);

/* SCAN on a connection of its own: a long list has no business where renewals travel. One further
 * command per lock. What is held all the time is told at least once, or twice if Redis resizes its
 * table meanwhile (as SCAN does). Wants Redis 6. */
lk_status lk_redis_guard_list(void *self, const char *prefix,
                              int (*each)(void *arg, const lk_lock_info *info), void *arg);

/* Is the value the hold's token? */
lk_status lk_redis_guard_confirm(void *self, const lk_hold *hold);
/* DEL: polling waiters find out by themselves. */
lk_status lk_redis_guard_force_release(void *self, const char *key);

/* For lk_redis_guard_init(): a guard of strings. */
void lk_redis_inspect_init(lk_redis_guard *guard);

#endif
