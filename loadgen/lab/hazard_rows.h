/* The catalogue's rows, by theme: the folder rows. */
#ifndef HAZARD_ROWS_H
#define HAZARD_ROWS_H

#include "hazard.h"

#define HAZARD_MAP(X)                                                                              \
    X(lost_update)                                                                                 \
    X(oversell)                                                                                    \
    X(two_processes)                                                                               \
    X(holder_crash_no_expiry)                                                                      \
    X(crash_before_expire)                                                                         \
    X(expired_lease)                                                                               \
    X(wrong_delete)                                                                                \
    X(two_step_release)                                                                            \
    X(shared_token)                                                                                \
    X(clock_skew_getset)                                                                           \
    X(stamp_overwritten)                                                                           \
    X(paused_holder)                                                                               \
    X(late_second_turn)                                                                            \
    X(commit_unknown)                                                                              \
    X(explicit_lease)                                                                              \
    X(hung_worker)                                                                                 \
    X(renewal_lost)                                                                                \
    X(lost_wake_up)                                                                                \
    X(silent_subscription)                                                                         \
    X(grant_to_the_dead)                                                                           \
    X(reply_of_acquire_lost)                                                                       \
    X(reply_of_release_lost)                                                                       \
    X(self_deadlock)                                                                               \
    X(local_reentry_count)                                                                         \
    X(restart_empty)                                                                               \
    X(eviction)                                                                                    \
    X(failover)                                                                                    \
    X(sentinel_split)                                                                              \
    X(row_crash)                                                                                   \
    X(unique_row_crash)                                                                            \
    X(advisory_pool)                                                                               \
    X(memcached_restart)                                                                           \
    X(zk_holder_crash)                                                                             \
    X(zk_session_lost)                                                                             \
    X(zk_lost_create)                                                                              \
    X(zk_herd)                                                                                     \
    X(zk_readers)                                                                                  \
    X(redlock_minority_down)                                                                       \
    X(redlock_restart)                                                                             \
    X(redlock_clock_jump)                                                                          \
    X(redlock_slow)                                                                                \
    X(redlock_orphan)                                                                              \
    X(opposite_order)                                                                              \
    X(unlock_before_commit)                                                                        \
    X(snapshot_before_lock)                                                                        \
    X(result_ignored)                                                                              \
    X(duplicate_request)                                                                           \
    X(key_outside_transaction)                                                                     \
    X(crash_before_reply)                                                                          \
    X(off_by_one)                                                                                  \
    X(unfair)                                                                                      \
    X(double_task)                                                                                 \
    X(late_payment)                                                                                \
    /* a new row stands above this line */

#define HAZARD_DECLARE(name) extern const struct hazard hazard_##name;
HAZARD_MAP(HAZARD_DECLARE)
#undef HAZARD_DECLARE

#endif
