/* memcached's delete asks nobody whose key it is. */
#include "lab_slips.h"
#include "providers.h"

static lk_status release(void *self, lk_hold *hold)
{
    return lk_memcached.force_release(self, hold->key);
}

void lab_slip_plain_delete(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_memcached;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
