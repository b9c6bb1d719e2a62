/* A waiter that gives up says so to the queue, and takes it for heard. */
#include "lab_slips.h"
#include "providers.h"
#include "redis_guard.h"

static lk_status release(void *self, lk_hold *hold)
{
    lk_status status = lk_redis_fair.release(self, hold);
    return lk_redis_is_granted(hold) ? status : LK_OK;
}

void lab_slip_leave_unchecked(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_fair;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
