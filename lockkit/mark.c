/* Tokens that no other acquire call of the client has. */
#include "provider.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLOT_STEP = 2 }; /* the lowest bit is the provider's */

void lk_mark(_Atomic uint64_t *n_marks, lk_hold *hold)
{
    if (hold->private_.slot >= SLOT_STEP)
        return;
    uint64_t mark = atomic_fetch_add_explicit(n_marks, 1, memory_order_relaxed) + 1;
    hold->private_.slot |= mark * SLOT_STEP;
    size_t length = strlen(hold->token);
    snprintf(hold->token + length, sizeof hold->token - length, "#%" PRIx64, mark);
}
