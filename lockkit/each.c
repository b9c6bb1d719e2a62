/* Several locks of one client at once, each on its own. */
#include "client.h"

#include <assert.h>

void lk_try_each(lk_client *client, const lk_request *requests, size_t n, lk_hold *const *holds,
                 lk_status *statuses)
{
    for (size_t i = 0; i < n; i++) {
        hold_set_state(holds[i], HOLD_NONE); /* releasing it after a failure is harmless */
        statuses[i] = n > LK_EACH_MAX || requests[i].wait_ms != 0
                          ? LK_INVALID
                          : lk_acquire(client, &requests[i], holds[i]);
    }
}

void lk_release_each(lk_hold *const *holds, size_t n, lk_status *statuses)
{
    assert(n <= LK_EACH_MAX);
    for (size_t i = 0; i < n; i++) {
        lk_status status = lk_release(holds[i]);
        if (statuses)
            statuses[i] = status;
    }
}
