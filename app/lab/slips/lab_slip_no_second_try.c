/* Tries, subscribes, sleeps. A release that was published between the try and the subscription is
 * never heard. */
#include "lab_slips.h"
#include "provider.h"

static const lk_provider *right;

static lk_status wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    bool first = attempt->waiter == NULL;
    lk_status status = right->wait(self, attempt, until_us);
    if (first && status == LK_OK) /* which would make the core try again */
        status = right->wait(self, attempt, until_us);
    return status;
}

void lab_slip_no_second_try(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("redis-reentrant");
    wrong = *right;
    wrong.wait = wait;
    lab_slip_provider(seams, &wrong);
}
