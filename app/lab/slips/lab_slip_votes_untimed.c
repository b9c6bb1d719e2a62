/* A majority is a majority: the time that it took is not subtracted from the lease. */
#include "lab_slips.h"
#include "provider.h"

enum { FOR_EVER_MS = 3600000 };

/* As if the lease began whenever somebody looks. */
static int64_t valid_ms(int64_t lease_ms)
{
    return lease_ms + FOR_EVER_MS;
}

void lab_slip_votes_untimed(struct seams *seams)
{
    static lk_provider wrong;
    wrong = *lk_provider_builtin("redlock");
    wrong.valid_ms = valid_ms;
    lab_slip_provider(seams, &wrong);
}
