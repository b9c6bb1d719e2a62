/*
 * Where threads sleep until the bell that they listen for is rung. One ring may be for many bells,
 * and wakes all who listen for one of them in a single step into the kernel: woken one by one, each
 * would take the processor from whoever wakes them.
 *
 * futex(2) with FUTEX_WAIT_BITSET: a bell is a bit. What a ring tells of is to be told before it,
 * atomically; who is woken looks for himself, as a ring for others may have been the reason:
 *
 *     while (rung = lk_bells_now(&bells), !told())          tell();
 *         lk_bells_wait(&bells, rung, bell);                lk_bells_ring(&bells, bell);
 *
 * Threading: any thread. Zeroed, it is ready; needs no clean-up.
 */
#ifndef LOCKKIT_BELLS_H
#define LOCKKIT_BELLS_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct lk_bells {
    _Atomic uint32_t rung; /* so often */
} lk_bells;

static inline uint32_t lk_bells_now(lk_bells *bells)
{
    return atomic_load(&bells->rung);
}

/* Until the bell (one bit) is rung, unless anything was since rung; or for no reason. */
void lk_bells_wait(lk_bells *bells, uint32_t rung, uint32_t bell);
/* One bit or several. */
void lk_bells_ring(lk_bells *bells, uint32_t set);

#endif
