/* tryLock() came back with false, and nobody looked. */
#include "lab_slips.h"
#include "providers.h"

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_status status = lk_redis_token.try_acquire(self, attempt);
    return status == LK_BUSY && attempt->last ? LK_OK : status;
}

void lab_slip_result_ignored(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_token;
    wrong.try_acquire = try_acquire;
    lab_slip_provider(seams, &wrong);
}
