/* Tries, subscribes, sleeps: a release that was published between the try and the subscription is
 * never heard. */
#include "lab_slips.h"
#include "providers.h"

static lk_status wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    bool first = attempt->waiter == NULL;
    lk_status status = lk_redis_reentrant.wait(self, attempt, until_us);
    if (first && status == LK_OK) /* which was to make the core try again */
        status = lk_redis_reentrant.wait(self, attempt, until_us);
    return status;
}

void lab_slip_no_second_try(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_reentrant;
    wrong.wait = wait;
    lab_slip_provider(seams, &wrong);
}
