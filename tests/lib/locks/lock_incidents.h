/* Duties that other projects' locks have broken in the field, each tried with every guard that
 * could break it, on real servers. Each returns false if it does not apply to the guard (struct
 * duty).
 *
 * | duty                  | who broke it                            | then |
 * |-----------------------|-----------------------------------------|---------------------------------|
 * | late_renewal          | Redisson #7251, #7272                   | a lock without a holder,
 * renewed | | refused_try           | Redisson #7224; a failed INSERT         | keys stay; no
 * further statement | | late_release          | etcd #22082                             | the next
 * holder's lock is freed | | lost_release          | redis-py #4258                          | the
 * lock stands for its lease   | | expired_hold          | node-redlock #362                       |
 * an error, or a lock taken again | | many_holds            | advisory locks in pools of
 * connections  | another hold is freed           | | cut_off               | Curator #1121 | an old
 * node is taken for a new  |
 *
 * A bare majority that loses a node (redsync #186) concerns redlock alone: test_redlock.c. */
#ifndef TEST_LOCK_INCIDENTS_H
#define TEST_LOCK_INCIDENTS_H

#include "lockkit.h"

bool incident_late_renewal(const lk_provider_info *guard);
bool incident_refused_try(const lk_provider_info *guard);
bool incident_late_release(const lk_provider_info *guard);
bool incident_lost_release(const lk_provider_info *guard);
bool incident_expired_hold(const lk_provider_info *guard);
bool incident_many_holds(const lk_provider_info *guard);
bool incident_cut_off(const lk_provider_info *guard);

#endif
