/*
 * The threads of one client that wait for messages. Threads that wait for the same name stand in
 * one line. A message wakes the first sleeper of a line. If no waiter of the line sleeps at that
 * moment, the wake-up is kept for the next one that would. A thread that leaves without having used
 * its wake-up passes it on. So no wake-up is lost.
 *
 * After the semaphore per channel of Redisson's LockPubSub.
 *
 * Threading: every function may be called from any thread; a waiter belongs to one.
 */
#ifndef LOCKKIT_REDIS_WAITERS_H
#define LOCKKIT_REDIS_WAITERS_H

#include "lockkit.h"

enum { LK_REDIS_LINE_NAME_MAX = LK_KEY_MAX + 72 };

typedef struct lk_redis_waiters lk_redis_waiters;
typedef struct lk_redis_waiter lk_redis_waiter;

/* What a message may bring for a line with one waiter: the lock itself. */
typedef struct lk_redis_handover {
    uint64_t fence;
    int64_t asked_us; /* stamp of the try that it answers */
} lk_redis_handover;

lk_redis_waiters *lk_redis_waiters_open(void); /* NULL: out of memory */
/* There may be no waiters. */
void lk_redis_waiters_close(lk_redis_waiters *waiters);

/* NULL: out of memory. *ret_is_first (may be NULL): no other waiter is in the line. */
lk_redis_waiter *lk_redis_waiters_enter(lk_redis_waiters *waiters, const char *name,
                                        bool *ret_is_first);
/* Sleeps until it is woken, at most wait_us. */
void lk_redis_waiters_sleep(lk_redis_waiters *waiters, lk_redis_waiter *waiter, int64_t wait_us);
/* The wake-up has led to a try that was answered, so it is used. */
void lk_redis_waiters_use(lk_redis_waiters *waiters, lk_redis_waiter *waiter);
/* Frees the waiter. */
void lk_redis_waiters_leave(lk_redis_waiters *waiters, lk_redis_waiter *waiter);

/* Wakes one waiter of the line, which takes the hand-over. */
void lk_redis_waiters_hand_over(lk_redis_waiters *waiters, const char *name,
                                const lk_redis_handover *handover);
/* The last hand-over, once. False: none has come. */
bool lk_redis_waiters_take_handover(lk_redis_waiters *waiters, lk_redis_waiter *waiter,
                                    lk_redis_handover *ret);

/* Wakes one waiter of a line; all of a line; all of all lines. */
void lk_redis_waiters_wake_one(lk_redis_waiters *waiters, const char *name);
void lk_redis_waiters_wake_all_of(lk_redis_waiters *waiters, const char *name);
void lk_redis_waiters_wake_all(lk_redis_waiters *waiters);

#endif
