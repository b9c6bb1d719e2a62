/* The claims of lockkit's capability bits, each as an experiment on the servers of a
 * family (lock_world.h). */
#ifndef TEST_LOCK_CLAIMS_H
#define TEST_LOCK_CLAIMS_H

#include "lockkit.h"

#define CLAIM_KEY "lock:item:1"

enum {
    CLAIM_LEASE_MS = 300,
    CLAIM_GRACE_MS = 2000, /* over a bound, on a machine that does other things too */
    CLAIM_LONG_MS = 20000,
    CLAIM_HELD_MS = 10 * CLAIM_LONG_MS /* a lease that outlasts an experiment on a busy machine */
};

struct claim {
    uint32_t bit;
    uint32_t needs; /* bits without which the claim means nothing */
    /* True: kept. False: its anomaly was shown. The world of lock_world.h is open and empty; the
     * test binary's main() knows holder_main(). Called in the test's main thread. */
    bool (*keeps)(const lk_provider_info *guard);
};

extern const struct claim lock_claims[LK_CAP_COUNT]; /* in the order of lk_cap_list() */

#endif
