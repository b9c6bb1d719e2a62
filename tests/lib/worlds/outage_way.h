/* Shared by outage.c and outage_way.c. */
#ifndef TEST_OUTAGE_WAY_H
#define TEST_OUTAGE_WAY_H

#include "lockkit.h"

/* How many times slower than without a sanitizer a command may be. clang names its features. */
#if defined(__SANITIZE_THREAD__)
enum { OUTAGE_SLOWNESS = 4 };
#elif defined(__SANITIZE_ADDRESS__)
enum { OUTAGE_SLOWNESS = 2 };
#elif defined(__has_feature)
enum {
    OUTAGE_SLOWNESS = __has_feature(thread_sanitizer)    ? 4
                      : __has_feature(address_sanitizer) ? 2
                                                         : 1
};
#else
enum { OUTAGE_SLOWNESS = 1 };
#endif

enum {
    OUTAGE_LEASE_MS = 700 * OUTAGE_SLOWNESS,
    OUTAGE_COMMAND_MS = 250 * OUTAGE_SLOWNESS,
    /* lk_acquire() or lk_release(): a command and its undoing, each with a possible reconnect */
    OUTAGE_CALL_MS = 4 * OUTAGE_COMMAND_MS,
    OUTAGE_BACK_MS = 5000 * OUTAGE_SLOWNESS /* bound on a client's reconnect */
};

extern const lk_options outage_impatient; /* with these times */

/* True if a lock that the guard leaves after an unknown outcome expires by itself. */
bool outage_ends_by_itself(const lk_provider_info *guard);
/* For wait_until(): the client acquires the lock in one attempt and releases it. */
bool outage_is_granted(void *client);
/* Acquires; repeats if a busy machine takes longer than the client's timeout. */
void outage_acquire(lk_client *client, const lk_request *request, lk_hold *hold);
/* True if another client gets a possibly remaining lock within a lease or session. */
bool outage_comes_free(const lk_provider_info *guard);

/* Experiments with faults between client and server; each fails the calling test. */
void outage_lost_requests_are_told_truly(const lk_provider_info *guard);
void outage_halved_answers_are_told_truly(const lk_provider_info *guard);
void outage_missing_answers_are_told_truly(const lk_provider_info *guard);
void outage_late_requests_leave_no_lasting_orphan(const lk_provider_info *guard);
void outage_late_undoing_frees_nothing_else(const lk_provider_info *guard);
void outage_cut_waiter_is_served_or_told(const lk_provider_info *guard);
void outage_storm_lets_no_two_in(const lk_provider_info *guard);

#endif
