/* Every holder writes the same value, so the comparison at the release always succeeds. */
#include "lab_slips.h"
#include "provider.h"

#include <string.h>

enum { SLOT_UNIQUE = 2 }; /* lk_make_token_unique() leaves the token as it is */

static const lk_provider *right;

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    strcpy(attempt->hold->token, "locked");
    attempt->hold->private_.slot = SLOT_UNIQUE;
    return right->try_acquire(self, attempt);
}

void lab_slip_shared_token(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("redis-token");
    wrong = *right;
    wrong.try_acquire = try_acquire;
    lab_slip_provider(seams, &wrong);
}
