/*
 * Pending releases of a client: the lock server has not confirmed them.
 *
 * The core passes a copy of the hold when a release got no answer, or when a failed acquire could
 * not be undone. A thread, started with the first one, repeats the release until the server says
 * that nothing of the hold is left, or until the longest lease that the server may have been told
 * must have ended: also that of an extension without an answer, or of the holder that handed the
 * hold over. So a call that failed leaves no grant behind for longer than the server is away.
 *
 * Only for guards whose late release frees their own hold and no other, and that keep no session:
 * LK_CAP_OWNER and LK_CAP_DISTRIBUTED, not LK_CAP_SESSION. ZooKeeper's guards have a janitor of
 * their own (zk_cleanup.c).
 *
 * Threading: any thread may call every function but open and close.
 */
#ifndef LOCKKIT_JANITOR_H
#define LOCKKIT_JANITOR_H

#include "lockkit.h"

#include <pthread.h>

enum {
    JANITOR_PENDING_MAX = 4096, /* beyond it, a release is left to its lease */
    JANITOR_PAUSE_MS_MIN = 10,  /* after a release that failed; doubles */
    JANITOR_PAUSE_MS_MAX = 250
};

struct janitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pending_release *first, **last; /* in the order of their tries */
    int n_pending;                         /* includes the one being tried */
    int64_t due_us;                        /* the next try, not earlier */
    unsigned pauses;                       /* since a try succeeded */
    pthread_t thread;
    bool started, stop;
    bool manual; /* tests on a virtual clock: no thread, they call janitor_step() */
};

void janitor_open(struct janitor *janitor);
/* Tries the pending releases once more, until one fails. The rest is left to the leases. The
 * provider is still open, and no call may be under way. */
void janitor_close(lk_client *client);
void janitor_free(struct janitor *janitor);

/* The server has not confirmed a release of hold, which is copied. It is repeated if the guard
 * allows that, and told to on_pending in any case. */
void janitor_add(lk_client *client, const lk_hold *hold);

/* Tries the first pending release if it is due. Returns when the next one is due, INT64_MAX for
 * none. The body of the thread's loop; only tests that set manual call it. */
int64_t janitor_step(lk_client *client);

#endif
