/* Every holder writes the same value, so that the comparison at release compares nothing. */
#include "lab_slips.h"
#include "providers.h"

#include <string.h>

enum { SLOT_MARKED = 2 /* redis_guard.c: keeps the token from being made unique */ };

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    strcpy(attempt->hold->token, "locked");
    attempt->hold->private_.slot = SLOT_MARKED;
    return lk_redis_token.try_acquire(self, attempt);
}

void lab_slip_shared_token(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_token;
    wrong.try_acquire = try_acquire;
    lab_slip_provider(seams, &wrong);
}
