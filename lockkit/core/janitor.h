/*
 * What a client still has to clean up: releases that the lock server has not confirmed.
 *
 * The core hands over a copy of the hold when a release, or the undoing of a failed acquire, got no
 * answer. A thread, started with the first, repeats the release until the server says that nothing
 * of the hold is left, or until the lease of the last command must have ended. So a call that did
 * not end with LK_OK leaves no grant behind for longer than the server is away.
 *
 * Only for guards whose release frees its own hold and nothing else, whenever it comes, and which
 * keep no session (LK_CAP_OWNER, LK_CAP_DISTRIBUTED, not LK_CAP_SESSION). ZooKeeper's guards have
 * a janitor of their own (zk_debt.c).
 *
 * Threading: every function but open and close may be called from any thread.
 */
#ifndef LOCKKIT_JANITOR_H
#define LOCKKIT_JANITOR_H

#include "lockkit.h"

#include <pthread.h>

enum {
    JANITOR_PENDING_MAX = 4096, /* owed at once; what is more is left to its lease */
    JANITOR_PAUSE_MS_MIN = 10,  /* after a release that failed; doubles */
    JANITOR_PAUSE_MS_MAX = 250
};

struct janitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pending_release *first, **last; /* in the order in which they are tried */
    int n_pending;                         /* the one being tried included */
    int64_t due_us;                        /* nothing is tried before */
    int64_t pause_ms;                      /* the last one; 0: the last try succeeded */
    pthread_t thread;
    bool started, stop;
    bool manual; /* tests on a virtual clock: no thread, they call janitor_step() */
};

void janitor_open(struct janitor *janitor);
/* Tries once more what is owed, until a try fails; leaves the rest to the leases. The provider is
 * still open, and no call may be under way. */
void janitor_close(lk_client *client);
void janitor_free(struct janitor *janitor);

/* The server has not confirmed a release of hold, which is copied. It is repeated if the guard
 * allows that, and told to on_debt in any case. */
void janitor_add(lk_client *client, const lk_hold *hold);

/* Tries the first pending if it is due. Returns when the next one is, INT64_MAX for none. The
 * thread's loop body; called directly only by tests that set manual. */
int64_t janitor_step(lk_client *client);

#endif
