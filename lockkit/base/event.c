#include "event.h"
#include "monotonic.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SILENT, ASLEEP, RUNG };

static bool is_rung(lk_doorbell *bell)
{
    return atomic_load(&bell->state) == RUNG;
}

static bool look_without_sleeping(lk_doorbell *bell, lk_spin *spin)
{
    lk_spinning spinning = lk_spin_begin(spin);
    while (!is_rung(bell) && lk_spin_on(&spinning))
        ;
    bool rung = is_rung(bell);
    if (rung)
        lk_spin_found(&spinning);
    return rung;
}

static void sleep_until(lk_doorbell *bell, const struct timespec *until)
{
    uint32_t silent = SILENT;
    if (!atomic_compare_exchange_strong(&bell->state, &silent, ASLEEP))
        return;
    long failed = syscall(SYS_futex, &bell->state, FUTEX_WAIT_BITSET_PRIVATE, ASLEEP, until, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    (void)failed;
    assert(failed == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

void lk_doorbell_wait(lk_doorbell *bell, lk_spin *spin, int64_t us)
{
    struct timespec until = lk_monotonic_after(us);
    if (us > 0 && !(spin && look_without_sleeping(bell, spin)))
        sleep_until(bell, &until);
    atomic_store(&bell->state, SILENT);
}

bool lk_doorbell_ring(lk_doorbell *bell)
{
    return atomic_exchange(&bell->state, RUNG) == ASLEEP;
}

void lk_doorbell_wake(const lk_doorbell *bell)
{
    syscall(SYS_futex, &bell->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
