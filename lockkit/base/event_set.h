/*
 * Up to 32 events that can be signalled together. Each event is one bit, and a thread waits for one
 * of them. One signal may name several events and wakes their waiters with one system call: woken
 * one by one, each waiter would take the processor from the thread that wakes the others.
 *
 * The waiter's condition must be set, atomically, before the signal. A waiter checks its condition
 * again after each wake-up, because the signal may have been for another event.
 *
 *     while (seen = lk_event_set_count(&set), !condition)      condition = true;
 *         lk_event_set_wait(&set, seen, event);                lk_event_set_signal(&set, event);
 *
 * Threading: any thread. A zeroed set is ready and needs no clean-up. Linux: FUTEX_WAIT_BITSET.
 */
#ifndef LOCKKIT_EVENT_SET_H
#define LOCKKIT_EVENT_SET_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct lk_event_set {
    _Atomic uint32_t signals; /* how many there were */
} lk_event_set;

static inline uint32_t lk_event_set_count(lk_event_set *set)
{
    return atomic_load(&set->signals);
}

/* Returns when the event (one bit) is signalled, at once if any signal came after `seen`, or for no
 * reason. */
void lk_event_set_wait(lk_event_set *set, uint32_t seen, uint32_t event);
/* events: one bit or several. */
void lk_event_set_signal(lk_event_set *set, uint32_t events);

#endif
