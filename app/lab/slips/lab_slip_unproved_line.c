/* Trusts its subscription for as long as the kernel does: it never asks for a sign of life. */
#include "lab_slips.h"
#include "providers.h"
#include "redis_sub_thread.h"
#include "redis_wake.h"

enum { A_DAY_S = 86400 };

static lk_status open_line(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_status status = lk_redis_reentrant.open(context, ret_self, error);
    if (status == LK_OK) /* before its thread is started */
        ((lk_redis_wake *)*ret_self)->sub->ping_us = A_DAY_S * INT64_C(1000000);
    return status;
}

void lab_slip_unproved_line(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_reentrant;
    wrong.open = open_line;
    lab_slip_provider(seams, &wrong);
}
