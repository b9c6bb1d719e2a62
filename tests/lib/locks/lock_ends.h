/* The claims about a lock that nobody releases: its holder dies, or lives and does nothing. As
 * struct claim of lock_claims.h wants them. */
#ifndef TEST_LOCK_ENDS_H
#define TEST_LOCK_ENDS_H

#include "holder.h"
#include "lockkit.h"

/* Of a holder in a process of its own, with CLAIM_KEY. endpoints is borrowed. */
struct holder_plan lock_plan(const lk_provider_info *guard, const char *endpoints);

bool lock_lease_ends(const lk_provider_info *guard);      /* LK_CAP_LEASE */
bool lock_session_ends(const lk_provider_info *guard);    /* LK_CAP_SESSION */
bool lock_lease_is_atomic(const lk_provider_info *guard); /* LK_CAP_ATOMIC_LEASE */

/* Acquires CLAIM_KEY for CLAIM_LEASE_MS. On a busy machine a try, with its connection, may take
 * longer than that: it is repeated, also where a guard takes that for silence of its servers
 * (redlock). */
void lock_acquire_briefly(lk_client *client, lk_hold *hold);

#endif
