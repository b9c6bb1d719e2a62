/*
 * One operation, or a batch of them on one resource, from its key to its answer:
 *
 *     stored answer? replay it          acquire the locks, in the order of their keys
 *     read, decide, check the locks     commit all of it in one transaction
 *     release                           answer
 *
 * The lock lies around the transaction: it is released only when the transaction is known to be
 * committed, or known never to commit. Where the commit was not answered, a worker finds out, for a
 * moment; then the keeper takes the lock (keeper.h), and the clients are told 503.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "lanes.h"
#include "section.h"
#include "counters.h"

/* What the operations run in. */
struct guarded_host {
    struct counters *counters;
    void *ctx;
    /* Takes an answered operation; exactly once each. */
    void (*finish)(void *ctx, struct op *op);
    /* Nothing is to keep the operations on ops[0]'s resource apart: makes ops[1..n) and those that
     * wait behind them go their own ways. Returns how many of ops went. NULL: they come singly. */
    size_t (*spread)(void *ctx, struct op **ops, size_t n);
    /* More operations wait that use the same one row as op, and they should go on at once: fills
     * their lane's name. NULL: they come singly. */
    bool (*goes_on)(void *ctx, const struct op *op, char ret_lane[DB_RESOURCE_MAX + 1]);
    /* Takes them, at most the section's batch, into ops. */
    size_t (*more)(void *ctx, const char *lane, struct op **ops);
    int64_t turns; /* under one lock, at most */
};

/* n >= 1 operations, at most the section's batch, for which ops has room; n > 1 only when all use
 * the same one row. While more of them wait they go on under the same lock, a bounded number of
 * turns, so that other instances get theirs. Returns when each is finished or spread. */
void guarded_run(const struct guarded_host *host, struct section *section,
                 const struct operation *operation, struct op **ops, size_t n);

/* The same for some operations of each of n resources, 1 to LANES_TOGETHER, each with a section
 * whose operation is filled in; one snapshot, one go for the locks of one guard, one commit if the
 * store has such. None waits for another: what would have to wait for its lock or to be run again
 * is left, shares[i].n of them. Fences are the locks' own. */
void guarded_run_together(const struct guarded_host *host, struct section *sections,
                          struct lanes_share *shares, size_t n);

/* Its client has been told by now, or soon will be, that nothing came of it: op has its problem,
 * and is not to be begun. */
bool guarded_too_late(struct op *op);

#endif
