/*
 * Waiting a short while without sleeping, as long as nobody else wants the processor.
 *
 * A server nearby answers sooner than a processor that has gone idle is woken, above all in a
 * virtual machine. So whoever waits looks again and again before it sleeps, and between two looks
 * gives way with sched_yield(2). Where that took long somebody else ran: this processor does not go
 * idle, and sleeping is cheap. Where a wait is longer than the whole spin again and again, the
 * server is far away: spinning is given up, and tried again now and then.
 *
 *     lk_spinning spinning = lk_spin_begin(&spin);
 *     while (!(found = look()) && lk_spin_on(&spinning))
 *         ;
 *     if (found) lk_spin_found(&spinning); else sleep();
 *
 * Source: A. Karlin, K. Li, M. Manasse, S. Owicki: "Empirical studies of competitive spinning for a
 *         shared-memory multiprocessor", SOSP 1991; that only idle processors spin, as in the
 *         haltpoll governor of Linux and the mutex of Go.
 * Threading: an lk_spin may serve any number of threads that wait for the same kind of thing.
 */
#ifndef LOCKKIT_SPIN_H
#define LOCKKIT_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct lk_spin {
    int64_t most_us;     /* of one wait; 0 or less: none. Not to be changed while it is used */
    atomic_uint in_vain; /* spins in a row that found nothing; after some, waits without one, too */
} lk_spin;

/* One wait. */
typedef struct lk_spinning {
    lk_spin *spin;
    int64_t until_us; /* 0: no more */
    bool looked_again;
} lk_spinning;

lk_spinning lk_spin_begin(lk_spin *spin);
/* Have spins found something lately? Who expects somebody to spin may rouse him for it. */
bool lk_spin_pays(const lk_spin *spin);
/* False: sleep. */
static inline bool lk_spins(const lk_spinning *spinning)
{
    return spinning->until_us != 0;
}
/* After a look that found nothing. True: others had their chance, look again; false: sleep. */
bool lk_spin_on(lk_spinning *spinning);
/* After a look that found it. */
void lk_spin_found(const lk_spinning *spinning);

#endif
