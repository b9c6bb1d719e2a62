/* tryLock() returns false, and the caller ignores it. */
#include "lab_slips.h"
#include "provider.h"

static const lk_provider *right;

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_status status = right->try_acquire(self, attempt);
    return status == LK_BUSY && attempt->last ? LK_OK : status;
}

void lab_slip_result_ignored(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("redis-token");
    wrong = *right;
    wrong.try_acquire = try_acquire;
    lab_slip_provider(seams, &wrong);
}
