#include "event_set.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void lk_event_set_wait(lk_event_set *set, uint32_t seen, uint32_t event)
{
    long failed =
        syscall(SYS_futex, &set->signals, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, event);
    (void)failed;
    assert(failed == 0 || errno == EAGAIN || errno == EINTR);
}

void lk_event_set_signal(lk_event_set *set, uint32_t events)
{
    atomic_fetch_add(&set->signals, 1);
    long woken =
        syscall(SYS_futex, &set->signals, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, events);
    (void)woken;
    assert(woken >= 0);
}
