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

static unsigned count_in_vain(lk_spin *spin)
{
    return atomic_fetch_add_explicit(&spin->in_vain, 1, memory_order_relaxed);
}

bool lk_spin_pays(const lk_spin *spin)
{
    return spin->most_us > 0 &&
           atomic_load_explicit(&spin->in_vain, memory_order_relaxed) < IN_VAIN_MAX;
}

lk_spinning lk_spin_begin(lk_spin *spin)
{
    bool spins = lk_spin_pays(spin) || (spin->most_us > 0 && count_in_vain(spin) % TRY_EVERY == 0);
    return (lk_spinning){
        .spin = spin,
        .until_ns = spins ? now_ns() + spin->most_us * NS_PER_US : 0,
    };
}

bool lk_spin_on(lk_spinning *spinning)
{
    if (!lk_spins(spinning))
        return false;
    int64_t before_ns = now_ns();
    sched_yield();
    int64_t after_ns = now_ns();
    bool somebody_ran = after_ns - before_ns > SOMEBODY_RAN_NS;
    bool over = after_ns >= spinning->until_ns;
    if (over && !somebody_ran)
        count_in_vain(spinning->spin);
    if (over || somebody_ran)
        spinning->until_ns = 0;
    spinning->looked_again = true;
    return true;
}

void lk_spin_found(const lk_spinning *spinning)
{
    atomic_uint *in_vain = &spinning->spin->in_vain;
    if (lk_spins(spinning) && spinning->looked_again &&
        atomic_load_explicit(in_vain, memory_order_relaxed) != 0)
        atomic_store_explicit(in_vain, 0, memory_order_relaxed);
}
