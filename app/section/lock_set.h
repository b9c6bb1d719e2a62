/*
 * The locks of one operation. They are taken together in the order of their keys, so that no two
 * operations wait for each other in a circle. They are released together.
 *
 * A lock is released only when its transaction is known to be committed, or known never to commit.
 * While the outcome is unknown, keeper_take() takes the place of the release (keeper.h).
 */
#ifndef LOCK_SET_H
#define LOCK_SET_H

#include "guard.h"
#include "op.h"

enum { LOCK_SET_MAX = 4, LOCK_SETS_MAX = LK_EACH_MAX, LOCK_SET_MESSAGE_MAX = LK_MESSAGE_MAX + 128 };

struct lock_set {
    size_t n;
    bool held;
    struct guard *kept;                 /* of holds[0], which lock_set_keep() kept; NULL: none */
    struct guard *guards[LOCK_SET_MAX]; /* each a GUARD_LOCK */
    char keys[LOCK_SET_MAX][LK_KEY_MAX + 1];
    lk_hold *holds;                     /* LOCK_SET_MAX; a hold must not move */
    char message[LOCK_SET_MESSAGE_MAX]; /* why acquiring failed */
};

int lock_set_init(struct lock_set *set); /* 0, or -1 without memory */
void lock_set_free(struct lock_set *set);
void lock_set_clear(struct lock_set *set); /* a kept lock stays kept */
/* The lock of resource "item:1" is lock:item:1. */
void lock_key(char ret[LK_KEY_MAX + 1], const char *resource);
/* Adds the resource's lock. The hold returned is valid while set is held. */
const lk_hold *lock_set_add(struct lock_set *set, struct guard *guard, const char *resource);

/* Waits at most until deadline_us (monotonic), but makes at least one attempt. PROBLEM_NONE: all
 * locks are held. PROBLEM_LOCK_TIMEOUT, PROBLEM_UNAVAILABLE, PROBLEM_INTERNAL: none is, and message
 * says why. A kept lock is used again if it is the one wanted and at least half of its lease is
 * left. Else it is released first. */
enum problem lock_set_acquire(struct lock_set *set, int64_t deadline_us);
/* One attempt for each of n sets, 1 to LOCK_SETS_MAX, with one lock each, all of one guard and none
 * kept. One round trip, if the guard can. Each set has its own outcome: ret_problems, as above. */
void lock_sets_try(struct lock_set *const *sets, size_t n, enum problem *ret_problems);
/* lock_set_release() for n sets of one guard, 0 to LOCK_SETS_MAX, with at most one lock each: in
 * one round trip, if the guard can. */
void lock_sets_release(struct lock_set *const *sets, size_t n);
/* A hold that is lost. NULL: all are held, as far as this process can know. Any thread. */
const lk_hold *lock_set_lost(const struct lock_set *set);
/* Instead of a release, with one lock only: keeps it for the next lock_set_acquire(). Its
 * transaction is known; the keeper has no part in this. */
void lock_set_keep(struct lock_set *set);
/* Moves what `from` holds to `to`, which is empty before. `from` is empty after. */
void lock_set_move(struct lock_set *from, struct lock_set *to);
/* Instead of a release, when the process ends: the locks stay held until their leases or the
 * process end. The clients of their guards are not closed. Only lock_set_free() may follow. */
void lock_set_abandon(struct lock_set *set);
/* Releases the locks held, or the one kept. */
void lock_set_release(struct lock_set *set);

#endif
