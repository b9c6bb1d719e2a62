/*
 * The waiters of one client, one queue per key: lk_options.local_queue and local_handovers.
 *
 * Only the first waiter of a queue asks the lock server. The others sleep. The holder is not in the
 * queue: a waiter that is granted the lock leaves, and the next becomes first. Exclusion comes from
 * the server's lock alone. If that lock fails, two callers hold it, as they would without a queue.
 *
 * A release wakes the first waiter, which asks at once. Some locks come free without a release by
 * this client: the lease ended, the key was deleted, the holder is in another process. So each of n
 * waiters also looks up after n times retry_max_ms. Together they wake as often as one poller.
 *
 * If holds are short, a waiter that becomes first is woken early, before anything is handed to it:
 * waking a thread takes longer than such a hold, and two wake-ups then overlap.
 *
 * Sources: order of arrival and one wake-up, the queue locks of Mellor-Crummey and Scott, ACM TOCS
 * 9/1, 1991. Only the first spins: the qspinlock of Linux. A bounded number of hand-overs within a
 * node: cohort locks, Dice, Marathe, Shavit, PPoPP 2012.
 *
 * Queues are threaded through the waiters' stacks, so nothing is allocated. Threading: any thread.
 * Functions block on a short mutex only, unless they say so.
 */
#ifndef LOCKKIT_LOCAL_QUEUE_H
#define LOCKKIT_LOCAL_QUEUE_H

#include "event.h"
#include "lockkit.h"

struct local_queue;

/* One acquire call in a queue, on its caller's stack. The lock of its bucket protects all members
 * but hold and the waiting for the event. */
struct local_waiter {
    lk_hold *hold;
    bool in_queue;
    bool woken;       /* a hold was released: ask at once */
    bool handed;      /* *hold was granted by its predecessor */
    bool asleep;      /* may be handed a hold: it is not asking the server now */
    int64_t pause_us; /* before it asks, so that another process gets its turn */
    lk_event event;
    struct local_waiter *before, *behind; /* in the queue */
    /* Of the first alone: */
    struct local_waiter *last, *next_first;
    int64_t n; /* waiters of the queue */
};

/* spin_us: how long the first looks before it sleeps. NULL: out of memory. */
struct local_queue *local_queue_open(int64_t spin_us);
/* No waiter may be in a queue: asserted. NULL is allowed. */
void local_queue_close(struct local_queue *queue);

/* True if queues help this guard and change none of its claims. */
bool local_queue_suits(const lk_provider_info *info);

/* Joins the queue of hold->key. Sleeps until the waiter should ask the server: it is first and was
 * woken, it looks up, the queue has broken up, or until_us has come. True: its predecessor handed
 * it the hold instead. */
bool local_queue_join(lk_client *client, struct local_waiter *waiter, lk_hold *hold,
                      int64_t until_us);

/* Sleeps until woken, at most us. True: its predecessor handed it the hold. */
bool local_queue_sleep(lk_client *client, struct local_waiter *waiter, int64_t us);

/* The server fails: wakes all waiters of the queue, so that each sees it for itself. */
void local_queue_break_up(lk_client *client, struct local_waiter *waiter);

/* The end of every call that joined. wake: the next waiter should ask now, because this one gave
 * up. Not after a grant: the next would only be refused. */
void local_queue_leave(lk_client *client, struct local_waiter *waiter, bool wake);

/* Hands a hold to the first waiter as it is, with the same token and fence, if that waiter sleeps
 * and the rules of lk_options.local_handovers allow it. True: the hold has a new holder. */
bool local_queue_hand_over(lk_client *client, const lk_hold *hold);

/* The hold was released: wakes the first waiter. */
void local_queue_wake(lk_client *client, const lk_hold *hold);

/* How many waiters sleep in the queue of key. The first counts unless it is asking the server. */
int64_t local_queue_sleepers(lk_client *client, const char *key);

#endif
