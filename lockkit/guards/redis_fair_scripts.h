/*
 * What redis-fair does in the server. See redis_fair.c for the whole.
 */
#ifndef LOCKKIT_REDIS_FAIR_SCRIPTS_H
#define LOCKKIT_REDIS_FAIR_SCRIPTS_H

#include "redis_fence.h"

/* The scripts contain these numbers. A waiter counts as dead after several missed refreshes. */
#define LK_FAIR_REFRESH_MS 500
#define LK_FAIR_DEAD_MS    2000
#define LK_FAIR_CLAIM_MS   2000
#define LK_FAIR_KEEP_MS    60000 /* queue keys vanish after so long without use */

/* KEYS of both: lock, queue, seen, fence.
 * Acquire: ARGV token, lease; the lease at a hand-over ("": do not queue), the stamp.
 * Answers as lk_redis_granted() reads it. */
extern const char lk_redis_fair_acquire[];
/* ARGV: token ("": whoever holds it), '1' if it may stand in the queue. Answers 1 or 0: not held.
 */
extern const char lk_redis_fair_release[];

#endif
