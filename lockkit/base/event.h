/*
 * One thread waits until another thread signals it.
 *
 * A signal has two steps. The waiter's condition is protected by a lock. The first step is taken
 * under that lock, because once the lock is free the waiter may see its condition, return, and end
 * the life of the event on its stack. The second step is the system call. It comes after the lock
 * is free: a waiter that is woken earlier would run into the lock and sleep again.
 *
 *     lock();                                       lock();
 *     while (!condition && there_is_time) {         condition = true;
 *         unlock();                                 bool sleeps = lk_event_signal(&event);
 *         lk_event_wait(&event, &spin, us);         unlock();
 *         lock();                                   if (sleeps)
 *     }                                                 lk_event_wake(&event);
 *     unlock();
 *
 * lk_event_wake() uses the address only and reads nothing. If another futex lies there by then, its
 * waiter is woken for no reason, which any futex waiter must expect, or the kernel refuses.
 *
 * Source: the three-state mutex of U. Drepper: "Futexes are tricky", 2011.
 * Threading: one waiter, any number of signalling threads. A zeroed event is ready and needs no
 * clean-up.
 */
#ifndef LOCKKIT_EVENT_H
#define LOCKKIT_EVENT_H

#include "spin.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct lk_event {
    _Atomic uint32_t state;
} lk_event;

/* Returns when the event is signalled or was signalled since the last wait, after us microseconds,
 * or for no reason. Looks before it sleeps, as spin says. spin NULL: sleeps at once. */
void lk_event_wait(lk_event *event, lk_spin *spin, int64_t us);

/* True: the waiter sleeps. Call lk_event_wake(). */
bool lk_event_signal(lk_event *event);
void lk_event_wake(const lk_event *event);

#endif
