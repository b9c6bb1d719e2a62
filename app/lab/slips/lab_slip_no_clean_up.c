/* An attempt whose answer was lost may have been granted, but is not undone. The orphaned lock
 * refuses every client, its own included, until its lease ends. redis-setnx has no lease: it stays
 * for ever. */
#include "lab_slips.h"
#include "provider.h"

static const lk_provider *right_token, *right_setnx;

static lk_status release_token(void *self, lk_hold *hold)
{
    return hold->acquired_us > 0 ? right_token->release(self, hold) : LK_OK;
}

static lk_status release_setnx(void *self, lk_hold *hold)
{
    return hold->acquired_us > 0 ? right_setnx->release(self, hold) : LK_OK;
}

void lab_slip_no_clean_up(struct seams *seams)
{
    static lk_provider token, setnx;
    right_token = lk_provider_builtin("redis-token");
    token = *right_token;
    token.release = release_token;
    lab_slip_provider(seams, &token);
    right_setnx = lk_provider_builtin("redis-setnx");
    setnx = *right_setnx;
    setnx.release = release_setnx;
    lab_slip_provider(seams, &setnx);
}
