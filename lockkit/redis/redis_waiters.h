/*
 * Waiting waiters: the threads of one client that wait for a message, by the name of what they wait
 * for. A post wakes one thread of the line, the one that has waited longest; if none sleeps
 * at that moment it stays for the next who would. A thread that leaves without having used its
 * wake-up hands it on, so that none is lost.
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

/* What a message may bring along for a line of one. */
typedef struct lk_redis_handover {
    uint64_t fence;
    int64_t asked_us; /* the stamp of the try that it answers */
} lk_redis_handover;

lk_redis_waiters *lk_redis_waiters_open(void); /* NULL: out of memory */
/* All waiters must be empty. */
void lk_redis_waiters_close(lk_redis_waiters *waiters);

/* NULL: out of memory. *ret_is_first (may be NULL): nobody else is in the line. */
lk_redis_waiter *lk_redis_waiters_enter(lk_redis_waiters *waiters, const char *name,
                                        bool *ret_is_first);
/* Sleeps until woken, at most wait_us. */
void lk_redis_waiters_sleep(lk_redis_waiters *waiters, lk_redis_waiter *waiter, int64_t wait_us);
/* The wake-up has led to a try that was answered: it is used up. */
void lk_redis_waiters_use(lk_redis_waiters *waiters, lk_redis_waiter *waiter);
/* Frees the waiter. */
void lk_redis_waiters_leave(lk_redis_waiters *waiters, lk_redis_waiter *waiter);

/* Wakes one of the line, who finds the handover. */
void lk_redis_waiters_hand_over(lk_redis_waiters *waiters, const char *name,
                                const lk_redis_handover *handover);
/* The last handover, once; false: none has come. */
bool lk_redis_waiters_take_handover(lk_redis_waiters *waiters, lk_redis_waiter *waiter,
                                    lk_redis_handover *ret);

/* Wakes one of the line; all of the line; all of all waiters. */
void lk_redis_waiters_wake_one(lk_redis_waiters *waiters, const char *name);
void lk_redis_waiters_wake_all_of(lk_redis_waiters *waiters, const char *name);
void lk_redis_waiters_wake_all(lk_redis_waiters *waiters);

#endif
