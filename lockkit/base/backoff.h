/* Pauses between tries: each doubles the last, up to a limit. */
#ifndef LOCKKIT_BACKOFF_H
#define LOCKKIT_BACKOFF_H

#include <stdint.h>

/* The pause after n pauses: first, 2 * first, 4 * first ... most. In any unit; 2 * most fits. A
 * caller whose tries may collide with those of others takes a random part of it. */
static inline int64_t lk_backoff(int64_t first, int64_t most, unsigned n)
{
    for (; n > 0 && first < most; n--)
        first *= 2;
    return first < most ? first : most;
}

#endif
