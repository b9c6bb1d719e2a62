#include "event_set.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void lk_bells_wait(lk_bells *bells, uint32_t rung, uint32_t bell)
{
    long failed =
        syscall(SYS_futex, &bells->rung, FUTEX_WAIT_BITSET_PRIVATE, rung, NULL, NULL, bell);
    (void)failed;
    assert(failed == 0 || errno == EAGAIN || errno == EINTR);
}

void lk_bells_ring(lk_bells *bells, uint32_t set)
{
    atomic_fetch_add(&bells->rung, 1);
    long woken =
        syscall(SYS_futex, &bells->rung, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, set);
    (void)woken;
    assert(woken >= 0);
}
