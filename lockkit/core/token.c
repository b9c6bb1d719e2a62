/* Tokens that no other acquire call of the client has. */
#include "digits.h"
#include "provider.h"

#include <assert.h>
#include <string.h>

enum { SLOT_STEP = 2 }; /* the lowest bit is the provider's */

void lk_make_token_unique(_Atomic uint64_t *n_tokens, lk_hold *hold)
{
    if (hold->private_.slot >= SLOT_STEP)
        return;
    uint64_t number = atomic_fetch_add_explicit(n_tokens, 1, memory_order_relaxed) + 1;
    hold->private_.slot |= number * SLOT_STEP;
    size_t length = strlen(hold->token);
    assert(length + 1 + LK_DIGITS_MAX < sizeof hold->token);
    hold->token[length] = '#';
    *lk_put_digits(hold->token + length + 1, number, 16) = '\0';
}
