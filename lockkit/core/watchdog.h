/*
 * The watchdog of a client: keeps the leases of its holds, and tells who lost one.
 *
 * One thread per client, started with the first hold that needs it. Holds stand in a list ordered
 * by the moment at which each is due next; whatever talks to a server or calls on_lost happens with
 * the list unlocked, for one hold at a time (`busy`).
 *
 *   renewed       at lease/3 after each grant or renewal; a failed renewal is tried again every
 *                 lease/10 until the lease ends by our own clock (LK_LOSS_EXPIRED)
 *   answered LOST at once LK_LOSS_DELETED
 *   over-held     max_hold_ms after the grant or the last lk_extend(): no more renewals,
 *                 LK_LOSS_MAX_HOLD; the lease then runs out on the server. Freeing it there and
 *                 then would let the next one in while a hung worker still writes
 *   session ended at once LK_LOSS_SESSION, told by lk_session_ended(); likewise when the session's
 *                 last sign of life is older than its timeout
 *   not renewed   (explicit lease, not renewable) but with on_lost: only its end is reported
 *
 * After the watchdog of Redisson (RedissonBaseLock.renewExpiration), which has no maximum.
 */
#ifndef LOCKKIT_WATCHDOG_H
#define LOCKKIT_WATCHDOG_H

#include "lockkit.h"

#include <pthread.h>
#include <stdatomic.h>

struct watchdog {
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* the thread waits here for the next due hold */
    pthread_cond_t idle;   /* busy has changed */
    lk_hold *first, *last; /* by private_.renew_at_us: when the hold is due next */
    const lk_hold *busy;   /* out of the list: being renewed, or its on_lost is running */
    int64_t wake_at_us;    /* the thread looks again by itself then; 0: it is awake */
    pthread_t thread;
    atomic_bool started;
    bool manual; /* tests on a virtual clock: no thread, they call watchdog_step() */
    bool stop;
};

/* *watchdog is zeroed. */
void watchdog_open(struct watchdog *watchdog);
/* No hold may be watched any more. */
void watchdog_close(struct watchdog *watchdog);

/* True if a hold of this request is to be renewed; is to be watched at all. */
bool watchdog_renews(const lk_client *client, const lk_request *request);
bool watchdog_wants(const lk_client *client, const lk_request *request);
/* When a hold that is renewed since then will have been held too long. */
int64_t watchdog_give_up_us(const lk_client *client, const lk_hold *hold, int64_t since_us);
/* Starts the thread unless it runs: before the lock is asked for, so that no grant can fail for
 * want of a thread. Returns LK_OK or LK_NO_MEMORY. */
lk_status watchdog_start(lk_client *client);

/* From now on. private_.give_up_us 0: not renewed, only its end is watched. */
void watchdog_add(lk_client *client, lk_hold *hold);
/* Returns when the watchdog has let go of the hold for good; waits for a running renewal or
 * on_lost. */
void watchdog_remove(lk_client *client, lk_hold *hold);

/* Handles whatever is due; returns when the next hold is due, INT64_MAX for none. The thread's
 * loop body; called directly only by tests that set manual. */
int64_t watchdog_step(lk_client *client);

#endif
