#include "spin.h"

#include <sched.h>
#include <time.h>

enum {
    SOMEBODY_RAN_NS = 5000, /* giving way to nobody takes well under a microsecond */
    IN_VAIN_MAX = 8,
    TRY_EVERY = 64, /* of the waits after that */
    NS_PER_US = 1000
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool is_worth_it(lk_spin *spin)
{
    unsigned in_vain = atomic_load_explicit(&spin->in_vain, memory_order_relaxed);
    if (in_vain < IN_VAIN_MAX)
        return true;
    atomic_fetch_add_explicit(&spin->in_vain, 1, memory_order_relaxed);
    return in_vain % TRY_EVERY == 0;
}

struct lk_spinning lk_spin_begin(lk_spin *spin)
{
    bool spins = spin->most_us > 0 && is_worth_it(spin);
    return (struct lk_spinning){
        .spin = spin,
        .until_ns = spins ? now_ns() + spin->most_us * NS_PER_US : 0,
    };
}

bool lk_spin_on(struct lk_spinning *spinning)
{
    if (spinning->until_ns == 0)
        return false;
    int64_t before_ns = now_ns();
    sched_yield();
    int64_t after_ns = now_ns();
    bool in_vain = after_ns >= spinning->until_ns;
    if (in_vain)
        atomic_fetch_add_explicit(&spinning->spin->in_vain, 1, memory_order_relaxed);
    if (in_vain || after_ns - before_ns > SOMEBODY_RAN_NS)
        spinning->until_ns = 0;
    return true;
}

void lk_spin_found(const struct lk_spinning *spinning)
{
    atomic_uint *in_vain = &spinning->spin->in_vain;
    if (spinning->until_ns != 0 && atomic_load_explicit(in_vain, memory_order_relaxed) != 0)
        atomic_store_explicit(in_vain, 0, memory_order_relaxed);
}
