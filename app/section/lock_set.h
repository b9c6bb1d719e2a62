/*
 * The locks of one operation: taken together in the order of their keys, so that no two operations
 * wait for each other in a circle; released together.
 *
 * No lock is given back before its transaction is known to be committed or known never to commit:
 * where the outcome is unknown, keeper_take() stands in the place of the release (keeper.h).
 */
#ifndef LOCK_SET_H
#define LOCK_SET_H

#include "guard.h"
#include "op.h"

enum { LOCK_SET_MAX = 4, LOCK_SETS_MAX = LK_EACH_MAX, LOCK_SET_MESSAGE_MAX = LK_MESSAGE_MAX + 128 };

struct lock_set {
    size_t n;
    bool held;
    struct guard *kept; /* of holds[0], which is still ours from the turn before; NULL: none is */
    struct guard *guards[LOCK_SET_MAX]; /* each a GUARD_LOCK */
    char keys[LOCK_SET_MAX][LK_KEY_MAX + 1];
    lk_hold *holds;                     /* LOCK_SET_MAX, which stay where they are while held */
    char message[LOCK_SET_MESSAGE_MAX]; /* what happened, when acquiring failed */
};

int lock_set_init(struct lock_set *set); /* 0, or -1 without memory */
void lock_set_free(struct lock_set *set);
void lock_set_clear(struct lock_set *set); /* what is kept stays so */
/* The lock of resource "item:1" is lock:item:1. */
void lock_key(char ret[LK_KEY_MAX + 1], const char *resource);
/* Adds the resource's lock. The hold returned is valid while set is held. */
const lk_hold *lock_set_add(struct lock_set *set, struct guard *guard, const char *resource);

/* Waits at most until deadline_us (monotonic); one attempt is always made. PROBLEM_NONE: all held.
 * PROBLEM_LOCK_TIMEOUT, PROBLEM_UNAVAILABLE, PROBLEM_INTERNAL: none, and message says why.
 * A lock that was kept is taken over if it is the one wanted and at least half of its lease is
 * left; else it is released first. */
enum problem lock_set_acquire(struct lock_set *set, int64_t deadline_us);
/* One attempt for each of n sets, 1 to LOCK_SETS_MAX, of one lock each, all of one guard and none
 * kept: in one go, if the guard can. ret_problems as above; each stands for itself. */
void lock_sets_try(struct lock_set *const *sets, size_t n, enum problem *ret_problems);
/* lock_set_release() of each of n sets of one guard that have one lock or none, likewise. */
void lock_sets_release(struct lock_set *const *sets, size_t n);
/* A hold that is no longer ours; NULL: all are, as far as this process can know. Any thread. */
const lk_hold *lock_set_lost(const struct lock_set *set);
/* In place of a release: of one lock only, for the next turn under it. */
void lock_set_keep(struct lock_set *set);
/* What `from` holds is `to`'s then, which is empty before, as `from` is after. */
void lock_set_move(struct lock_set *from, struct lock_set *to);
/* In place of a release, when the process ends: what is held stays so until its lease or the
 * process ends. The clients of its guards are not closed. Of the set only lock_set_free() is left.
 */
void lock_set_abandon(struct lock_set *set);
/* Those held, or the one kept. */
void lock_set_release(struct lock_set *set);

#endif
