/*
 * Where one thread waits until another rings for it.
 *
 * Ringing takes two steps. What a ring tells of stands under a lock, and so does the first step:
 * once that lock is free, the listener may have seen it all and gone, with his doorbell on his
 * stack. The second, the system call, comes after the lock: woken while it is held, the listener
 * would run into it and sleep again.
 *
 *     lock();                                       lock();
 *     while (!told && there_is_time) {              told = true;
 *         unlock();                                 bool sleeps = lk_doorbell_ring(&bell);
 *         lk_doorbell_wait(&bell, &spin, us);       unlock();
 *         lock();                                   if (sleeps)
 *     }                                                 lk_doorbell_wake(&bell);
 *     unlock();
 *
 * The wake is for an address alone: it touches nothing. Whoever sleeps there by then on something
 * else is woken for no reason, as anybody who sleeps on a futex may be, or the kernel refuses.
 *
 * Source: the mutexes of U. Drepper: "Futexes are tricky", 2011, whose third state tells whether
 *         anybody is to be woken.
 * Threading: one listener, any number who ring. Zeroed, it is ready; needs no clean-up.
 */
#ifndef LOCKKIT_DOORBELL_H
#define LOCKKIT_DOORBELL_H

#include "spin.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct lk_doorbell {
    _Atomic uint32_t state;
} lk_doorbell;

/* Until it is rung, or was since the last wait; at most us; or for no reason. Looks before it
 * sleeps as spin says; NULL: sleeps at once. */
void lk_doorbell_wait(lk_doorbell *bell, lk_spin *spin, int64_t us);

/* True: the listener sleeps and is to be woken. */
bool lk_doorbell_ring(lk_doorbell *bell);
void lk_doorbell_wake(const lk_doorbell *bell);

#endif
