#include "spin.h"
#include "monotonic.h"

#include <sched.h>

enum {
    OTHERS_RAN_US = 5, /* sched_yield() to nobody takes well under a microsecond */
    IN_VAIN_MAX = 8,
    TRY_EVERY = 64 /* of the waits after that */
};

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
        .until_us = spins ? lk_monotonic_us() + spin->most_us : 0,
    };
}

bool lk_spin_on(lk_spinning *spinning)
{
    if (!lk_spins(spinning))
        return false;
    int64_t before_us = lk_monotonic_us();
    sched_yield();
    int64_t after_us = lk_monotonic_us();
    bool others_ran = after_us - before_us > OTHERS_RAN_US;
    bool over = after_us >= spinning->until_us;
    if (over && !others_ran)
        count_in_vain(spinning->spin);
    if (over || others_ran)
        spinning->until_us = 0;
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
