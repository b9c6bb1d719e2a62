/*
 * Waiting rooms: the threads of one client that wait for a message, by the name of what they wait
 * for. A post wakes one thread of the room, the one that has waited longest; if none sleeps
 * at that moment it stays for the next who would. A thread that leaves without having used its
 * wake-up hands it on, so that none is lost.
 *
 * After the semaphore per channel of Redisson's LockPubSub.
 *
 * Threading: every function may be called from any thread; a waiter belongs to one.
 */
#ifndef LOCKKIT_REDIS_ROOMS_H
#define LOCKKIT_REDIS_ROOMS_H

#include "lockkit.h"

enum { LK_REDIS_ROOM_NAME_MAX = LK_KEY_MAX + 72 };

typedef struct lk_redis_rooms lk_redis_rooms;
typedef struct lk_redis_waiter lk_redis_waiter;

/* What a message may bring along for a room of one. */
typedef struct lk_redis_gift {
    uint64_t fence;
    int64_t asked_us; /* the stamp of the try that it answers */
} lk_redis_gift;

lk_redis_rooms *lk_redis_rooms_open(void); /* NULL: out of memory */
/* All rooms must be empty. */
void lk_redis_rooms_close(lk_redis_rooms *rooms);

/* NULL: out of memory. *ret_is_first (may be NULL): nobody else is in the room. */
lk_redis_waiter *lk_redis_rooms_enter(lk_redis_rooms *rooms, const char *name, bool *ret_is_first);
/* Sleeps until woken, at most wait_us. */
void lk_redis_rooms_sleep(lk_redis_rooms *rooms, lk_redis_waiter *waiter, int64_t wait_us);
/* The wake-up has led to a try that was answered: it is used up. */
void lk_redis_rooms_use(lk_redis_rooms *rooms, lk_redis_waiter *waiter);
/* Frees the waiter. */
void lk_redis_rooms_leave(lk_redis_rooms *rooms, lk_redis_waiter *waiter);

/* Wakes one of the room, who finds the gift. */
void lk_redis_rooms_give(lk_redis_rooms *rooms, const char *name, const lk_redis_gift *gift);
/* The last gift, once; false: none has come. */
bool lk_redis_rooms_take(lk_redis_rooms *rooms, lk_redis_waiter *waiter, lk_redis_gift *ret);

/* Wakes one of the room; all of the room; all of all rooms. */
void lk_redis_rooms_post(lk_redis_rooms *rooms, const char *name);
void lk_redis_rooms_post_room(lk_redis_rooms *rooms, const char *name);
void lk_redis_rooms_post_all(lk_redis_rooms *rooms);

#endif
