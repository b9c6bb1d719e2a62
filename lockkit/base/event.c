#include "event.h"
#include "monotonic.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDLE, ASLEEP, SIGNALLED };

static bool is_signalled(lk_event *event)
{
    return atomic_load(&event->state) == SIGNALLED;
}

static bool look_without_sleeping(lk_event *event, lk_spin *spin)
{
    lk_spinning spinning = lk_spin_begin(spin);
    while (!is_signalled(event) && lk_spin_on(&spinning))
        continue;
    bool signalled = is_signalled(event);
    if (signalled)
        lk_spin_found(&spinning);
    return signalled;
}

static void sleep_until(lk_event *event, const struct timespec *until)
{
    uint32_t idle = IDLE;
    if (!atomic_compare_exchange_strong(&event->state, &idle, ASLEEP))
        return;
    long failed = syscall(SYS_futex, &event->state, FUTEX_WAIT_BITSET_PRIVATE, ASLEEP, until, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    (void)failed;
    assert(failed == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

void lk_event_wait(lk_event *event, lk_spin *spin, int64_t us)
{
    struct timespec until = lk_monotonic_after(us);
    if (us > 0 && !(spin && look_without_sleeping(event, spin)))
        sleep_until(event, &until);
    atomic_store(&event->state, IDLE);
}

bool lk_event_signal(lk_event *event)
{
    return atomic_exchange(&event->state, SIGNALLED) == ASLEEP;
}

void lk_event_wake(const lk_event *event)
{
    syscall(SYS_futex, &event->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
