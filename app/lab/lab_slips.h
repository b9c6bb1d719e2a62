/*
 * Mistakes made on purpose, one per file, for the hazard lab: --lab --lab-slip NAME. Each fills
 * a seam of the service (seams.h); none can be chosen without --lab.
 */
#ifndef LAB_SLIPS_H
#define LAB_SLIPS_H

#include "seams.h"

/* Name, and what is done wrong. The function lab_slip_NAME() installs it; id is the name with
 * dashes, as --lab-slip takes it. */
#define LAB_SLIP_MAP(X)                                                                            \
    X(two_step_release, "two-step-release", "redis-token: GET, compare, then DEL")                 \
    X(shared_token, "shared-token", "redis-token: every holder writes the same value")             \
    X(no_clean_up, "no-clean-up", "redis-token: a try whose answer was lost is not undone")        \
    X(acknowledged_only, "acknowledged-only", "redlock: releases only on nodes that voted yes")    \
    X(votes_untimed, "votes-untimed", "redlock: ignores the time that the votes took")             \
    X(plain_delete, "plain-delete", "memcached: releases without comparing")                       \
    X(no_second_try, "no-second-try", "redis-reentrant: sleeps after SUBSCRIBE without a try")     \
    X(unproved_line, "unproved-line", "redis-reentrant: a silent subscription is trusted")         \
    X(leave_unchecked, "leave-unchecked", "redis-fair: ignores whether it left the queue")         \
    X(nameless_node, "nameless-node",                                                              \
      "zk-sequential: a create without an answer counts as not done")                              \
    X(rollback_only, "rollback-only", "pg-advisory: ends with ROLLBACK, keeps the connection")     \
    X(result_ignored, "result-ignored", "redis-token: goes on although the lock timed out")        \
    X(nested_acquire, "nested-acquire", "every lock is taken twice by the same owner")             \
    X(local_count, "local-count", "redis-reentrant: taken twice, counted in the client only")      \
    X(unsorted_locks, "unsorted-locks", "locks are taken in the order in which they are named")    \
    X(unlock_early, "unlock-early", "the lock is released before the commit")                      \
    X(read_early, "read-early", "the balance is read before the lock is acquired")                 \
    X(key_apart, "key-apart", "the idempotency row is written in a second transaction")            \
    X(number_only, "number-only", "the fence's number is compared without the version")            \
    X(given_back, "given-back", "a lock is released although its commit got no answer")            \
    X(off_by_one, "off-by-one", "an order is taken while stock >= 0")

#define LAB_SLIP_DECLARE(name, id, text) void lab_slip_##name(struct seams *seams);
LAB_SLIP_MAP(LAB_SLIP_DECLARE)
#undef LAB_SLIP_DECLARE

/* lab.c: called at every point of every operation, before it can be held there. */
void lab_at(void (*at)(struct op *op, enum op_point point));

/* False: there is no slip of this name; the known ones are printed to stderr. */
bool lab_slip_is_known(const char *id);
/* The slip of a known name goes into seams. */
void lab_slip_install(const char *id, struct seams *seams);
/* For slips: provider is used in the place of the guard of its name. */
void lab_slip_provider(struct seams *seams, const struct lk_provider *provider);

#endif
