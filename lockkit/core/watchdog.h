/*
 * The watchdog of a client renews the leases of its holds, and reports lost holds.
 *
 * One thread per client, started with the first hold that needs it. Holds are in a list ordered by
 * the time at which each is due next. The thread talks to a server, and calls on_lost, with the
 * list unlocked and for one hold at a time (`busy`).
 *
 *   event                       what the watchdog does
 *   lease/3 is over             renews; after a failure again every lease/10
 *   server says: not ours       LK_LOSS_DELETED at once
 *   lease over by our clock     LK_LOSS_EXPIRED; sends no renewal. After a pause of the process the
 *                               watchdog finds this first: it was paused, too
 *   max_hold_ms is over         LK_LOSS_MAX_HOLD; no more renewals, so the lease ends on the
 *                               server. The lock is not freed at once: a hung worker may still
 *                               write, and the next holder would be let in beside it
 *   session has ended           LK_LOSS_SESSION at once (lk_session_ended()); also if the last sign
 *                               of life is older than the session's timeout
 *
 * max_hold_ms counts from the grant or the last lk_extend(). A hold that is not renewed (explicit
 * lease, watchdog_off, or a provider without renew) is watched only if it has on_lost, which is
 * called when the lease ends.
 *
 * Source: the watchdog of Redisson (RedissonBaseLock.renewExpiration), which has no maximum.
 */
#ifndef LOCKKIT_WATCHDOG_H
#define LOCKKIT_WATCHDOG_H

#include "lockkit.h"

#include <pthread.h>
#include <stdatomic.h>

struct watchdog {
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* the thread waits for the next due hold */
    pthread_cond_t idle;   /* busy has changed */
    lk_hold *first, *last; /* by private_.renew_at_us, the time when it is due */
    const lk_hold *busy;   /* not in the list: renewal or on_lost is running */
    int64_t wake_at_us;    /* when the thread wakes by itself; 0: it is awake */
    pthread_t thread;
    atomic_bool started;
    bool manual; /* tests on a virtual clock: no thread, they call watchdog_step() */
    bool stop;
};

/* *watchdog is zeroed. */
void watchdog_open(struct watchdog *watchdog);
/* No hold is watched any more. */
void watchdog_close(struct watchdog *watchdog);

/* True if a hold of this request is renewed; if it is watched at all. */
bool watchdog_renews(const lk_client *client, const lk_request *request);
bool watchdog_wants(const lk_client *client, const lk_request *request);
/* When the maximum hold time of a hold ends, counted from since_us. */
int64_t watchdog_give_up_us(const lk_client *client, const lk_hold *hold, int64_t since_us);
/* Starts the thread unless it runs. Called before the server is asked, so that no grant fails
 * because a thread is missing. Returns LK_OK or LK_NO_MEMORY. */
lk_status watchdog_start(lk_client *client);

/* Watches hold from now on. private_.give_up_us 0: not renewed, only its end is reported. */
void watchdog_add(lk_client *client, lk_hold *hold);
/* Stops watching hold. Waits for a renewal or on_lost that is running. */
void watchdog_remove(lk_client *client, lk_hold *hold);

/* Handles all due holds. Returns when the next one is due, INT64_MAX for none. The body of the
 * thread's loop; only tests that set manual call it. */
int64_t watchdog_step(lk_client *client);

#endif
