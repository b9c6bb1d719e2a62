/* memcached's delete does not check whose key it is. */
#include "lab_slips.h"
#include "provider.h"

static const lk_provider *right;

static lk_status release(void *self, lk_hold *hold)
{
    return right->force_release(self, hold->key);
}

void lab_slip_plain_delete(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("memcached");
    wrong = *right;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
