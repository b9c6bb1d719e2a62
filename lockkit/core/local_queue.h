/*
 * The waiters of one client, in a line per key: lk_options.local_queue and local_handovers.
 *
 * Only the first of a line asks the lock server; the others sleep. The holder is no part of it: who
 * is granted leaves, so that the next is first, and is kept out by the server's lock alone. A line
 * therefore excludes nobody, and when a lock fails, two are in as without it. A release knocks at
 * the first, who then asks at once; without a wake (the lease ended, the key was deleted, the
 * holder hangs or is of another process) it asks by and by: each of n waiters looks up after n
 * times retry_max_ms, so that all together they wake as often as one poller.
 *
 * Who becomes first is roused before it is handed anything, if holds are short enough that it need
 * not sleep again: waking a thread takes longer than many a hold, and this way two wakings overlap.
 *
 * Queueing in arrival order and waking one as in the queue locks of Mellor-Crummey and Scott, ACM
 * TOCS 9/1, 1991; that only the first spins, as in the qspinlock of Linux; passing a lock on within
 * a node for a bounded number of times before others get it: cohort locks, Dice, Marathe, Shavit,
 * PPoPP 2012.
 *
 * Lines are threaded through the waiters' stacks: nothing is allocated. Every function: any thread,
 * blocks on nothing but a short mutex unless it says so.
 */
#ifndef LOCKKIT_LOCAL_QUEUE_H
#define LOCKKIT_LOCAL_QUEUE_H

#include "event.h"
#include "lockkit.h"

struct local_queue;

/* One acquire call that stands in line, on its caller's stack. All but hold and the waiting at the
 * bell under the lock of its bucket. */
struct local_waiter {
    lk_hold *hold;
    bool in_line;
    bool woken;       /* a hold was released: asking is worth while at once */
    bool handed;      /* *hold was granted by its predecessor */
    bool asleep;      /* may be handed a hold: it is not asking at the server just now */
    int64_t pause_us; /* before asking, so that another process gets its turn */
    lk_event event;
    struct local_waiter *before, *behind; /* in the line */
    /* Of the first alone: */
    struct local_waiter *last, *next_line;
    int64_t n; /* waiters of the line */
};

/* spin_us: how long the first looks before it sleeps. NULL: out of memory. */
struct local_queue *local_queue_open(int64_t spin_us);
/* Nobody may stand in line: asserted. NULL is allowed. */
void local_queue_close(struct local_queue *queue);

/* Does this guard profit from lines, and do they change none of its claims? */
bool local_queue_suits(const lk_provider_info *info);

/* Joins the line of hold->key and sleeps until it is time to ask the server: first and woken at,
 * or looking up; the line has broken up; until_us has come. True: granted instead, by its
 * predecessor. */
bool local_queue_join(lk_client *client, struct local_waiter *waiter, lk_hold *hold,
                      int64_t until_us);

/* Sleeps at most us, until woken at. True: granted by its predecessor. */
bool local_queue_sleep(lk_client *client, struct local_waiter *waiter, int64_t us);

/* The server does not answer as it should: each is to hear that for itself, and at once. */
void local_queue_break_up(lk_client *client, struct local_waiter *waiter);

/* The end of every joined call. wake: the next is to ask now, since we give up; not if we were
 * granted: whom we would wake would only be refused. */
void local_queue_leave(lk_client *client, struct local_waiter *waiter, bool wake);

/* Gives a hold that is ours to the first in line as it is, same token and fence, if that one sleeps
 * and the rules of lk_options.local_handovers let it. True: hold is not ours any more. */
bool local_queue_hand_over(lk_client *client, const lk_hold *hold);

/* The hold was released: the first may ask. */
void local_queue_wake(lk_client *client, const lk_hold *hold);

/* How many sleep in line for key, the first among them unless it is asking the server. */
int64_t local_queue_sleepers(lk_client *client, const char *key);

#endif
