/*
 * Waiting a short while without sleeping, as long as no other thread wants the processor.
 *
 * A nearby server answers sooner than an idle processor wakes up, above all in a virtual machine.
 * So a waiter looks several times before it sleeps, and calls sched_yield(2) between two looks. If
 * that took long, another thread ran: the processor does not go idle, and sleeping is cheap. If
 * many spins in a row find nothing, the server is far away: spinning stops, and is tried again now
 * and then.
 *
 *     lk_spinning spinning = lk_spin_begin(&spin);
 *     while (!(found = look()) && lk_spin_on(&spinning))
 *         continue;
 *     if (found) lk_spin_found(&spinning); else sleep();
 *
 * Source: A. Karlin, K. Li, M. Manasse, S. Owicki: "Empirical studies of competitive spinning for a
 *         shared-memory multiprocessor", SOSP 1991. That only idle processors spin: the haltpoll
 *         governor of Linux, the mutex of Go.
 * Threading: one lk_spin serves any number of threads that wait for the same kind of thing.
 */
#ifndef LOCKKIT_SPIN_H
#define LOCKKIT_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct lk_spin {
    int64_t most_us;     /* of one wait; 0 or less: none. Constant while in use */
    atomic_uint in_vain; /* spins in a row that found nothing; from some number on, skipped spins
                            count as well */
} lk_spin;

/* One wait. */
typedef struct lk_spinning {
    lk_spin *spin;
    int64_t until_us; /* 0: no more */
    bool looked_again;
} lk_spinning;

lk_spinning lk_spin_begin(lk_spin *spin);
/* True: spins have found something lately, so a waiter may be woken early to spin. */
bool lk_spin_pays(const lk_spin *spin);
/* False: sleep. */
static inline bool lk_spins(const lk_spinning *spinning)
{
    return spinning->until_us != 0;
}
/* After a look that found nothing. True: other threads could run, look again. False: sleep. */
bool lk_spin_on(lk_spinning *spinning);
/* After a look that found something. */
void lk_spin_found(const lk_spinning *spinning);

#endif
