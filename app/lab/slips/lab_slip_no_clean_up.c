/* A try whose answer was lost may have been granted. This one leaves it at that: the orphan refuses
 * everybody, its own maker too, until its lease ends. redis-setnx has no lease: for ever. */
#include "lab_slips.h"
#include "providers.h"
#include "redis_guard.h"

static lk_status try_token(void *self, lk_attempt *attempt)
{
    lk_status status = lk_redis_token.try_acquire(self, attempt);
    if (status == LK_OK)
        lk_redis_mark_granted(attempt->hold);
    return status;
}

static lk_status release_token(void *self, lk_hold *hold)
{
    return lk_redis_is_granted(hold) ? lk_redis_token.release(self, hold) : LK_OK;
}

static lk_status release_setnx(void *self, lk_hold *hold)
{
    return lk_redis_is_granted(hold) ? lk_redis_setnx.release(self, hold) : LK_OK;
}

void lab_slip_no_clean_up(struct seams *seams)
{
    static lk_provider token, setnx;
    token = lk_redis_token;
    token.try_acquire = try_token;
    token.release = release_token;
    lab_slip_provider(seams, &token);
    setnx = lk_redis_setnx;
    setnx.release = release_setnx;
    lab_slip_provider(seams, &setnx);
}
