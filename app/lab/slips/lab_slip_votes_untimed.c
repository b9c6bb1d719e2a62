/* The time that it took to get the majority is not subtracted from the lease. */
#include "lab_slips.h"
#include "provider.h"

enum { FOR_EVER_MS = 3600000 };

/* As if the lease began at each check. */
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
