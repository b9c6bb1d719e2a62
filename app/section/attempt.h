/*
 * One attempt at a change: operations on the same rows, from their keys to their answers. It takes
 * these steps, in this order:
 *
 *     attempt_look_up()       stored answer? Replay it. Else: which rows, under which guards?
 *     attempt_acquire()       the rows' locks, in the order of their keys
 *     attempt_take_fences()   a number for each lock
 *     section_read()          the rows, from one snapshot before the transaction; under sql-row and
 *                             sql-atomic section_commit() reads them and decides
 *     section_decide()        the business (app/business/)
 *     section_commit()        locks still ours? One transaction, which tests fence and version
 *     attempt_again()         outcome known? Else find it out. Run again if a row has changed
 *     attempt_release()       the locks; while the outcome is unknown, the keeper takes them
 *     attempt_answer()
 *
 * attempt_one() takes them for one operation. Lanes take the same steps for a batch of operations,
 * and for many lanes at once (service/serve_lanes.c).
 *
 * What the steps promise, and the tests that enumerate it:
 *
 * Fence. A fenced write lands only on the row state that its own holder read, and never after a
 *     write of a newer holder. The fence is taken under the lock and before the read. The
 *     statement that writes also tests fence and version.
 *     (tests/db/test_fence_order, tests/e2e/test_late_holder, tests/app/lanes/test_lane_turns)
 * Fences rise. Of two holds of one resource, the later one has the larger fence. A fence from the
 *     store is drawn under the lock, and is larger than any that the row has seen.
 *     (tests/app/section/test_fence_source)
 * Undecided commit. A lock is released only when its transaction is known to be committed, or known
 *     never to commit. While that is unknown (DB_UNKNOWN), attempt_release() hands the lock to the
 *     keeper instead. attempt_keep() has nothing to do with the keeper: if the outcome is known, it
 *     keeps a lock for the next batch. attempt_end() releases such a lock, or attempt_acquire() if
 *     the next batch needs another one.
 *     (tests/app/section/test_undecided)
 * Keeper. If the outcome is still unknown after a short time, the keeper takes the locks, and
 *     releases them when the outcome is known (keeper.h). The clients get 503 at once.
 *     (tests/app/section/test_keeper, tests/app/test_unknown_commit)
 * One effect per key. A stored answer and its effect are one transaction, and a key has one stored
 *     answer. Success is answered only after that transaction is durable.
 *     (tests/app/service/test_service_keys)
 *
 * Threading: an attempt and its section belong to one thread.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "section.h"

/* Textbook mode: one operation with its own locks. When it returns, op has its answer, and its
 * locks are released or with the keeper. */
void attempt_one(struct section *section, const struct operation *operation, struct op *op);

struct attempt {
    struct section *section;
    bool must_not_wait; /* set by the caller: other lanes would wait with this one */
    bool postponed;     /* it would have to wait: its operations are not answered */
    int reruns;         /* under the locks that it has: the rows had changed */
    int guard_changes;  /* between the look-up and the read */
    struct op *first_answered, *last_answered;
};

/* n >= 1 operations, at most the section's batch. If n > 1, all use the same one row. ops is the
 * section's until the attempt ends: it keeps the operations without an answer, section->n_ops of
 * them, in their order. False: the store gives no connection, and all are answered. */
bool attempt_begin(struct attempt *attempt, struct op **ops, size_t n);

/* Answers operations that have a stored answer, are too late, or use rows that do not exist. Names
 * the rows of the others. False: none is left. */
bool attempt_look_up(struct attempt *attempt);
/* The same for n attempts with one reader, from one snapshot. */
void attempt_look_up_many(struct attempt *attempts, size_t n);

/* True: all locks are held. False: operations that have waited long enough are answered; or all, if
 * the lock server is away; or the attempt is postponed. */
bool attempt_acquire(struct attempt *attempt);
/* After lock_sets_try() in the place of attempt_acquire(): the locks are held. */
void attempt_acquired(struct attempt *attempt);

/* False: the store gave no fence. Nothing is written, and each operation has its problem. */
bool attempt_take_fences(struct attempt *attempt);

/* After section_commit(). True: read, decide and commit once more under the same locks. False: each
 * operation has its outcome, or the guard has changed (section->guard_changed), or the attempt is
 * postponed. It asks about an unknown outcome, and pauses before it returns true. */
bool attempt_again(struct attempt *attempt);

/* Releases the locks. If the outcome is unknown, the keeper takes them. */
void attempt_release(struct attempt *attempt);
/* The same for n attempts, 1 to LOCK_SETS_MAX, with at most one lock each, all of one guard. */
void attempt_release_many(struct attempt *const *attempts, size_t n);
/* Instead of attempt_release(), only if the outcome is known: keeps the one lock for the next
 * batch. After the last batch attempt_end() releases it. */
void attempt_keep(struct attempt *attempt);
void attempt_end(struct attempt *attempt);

/* Answers the remaining operations. If the guard has changed or the attempt is postponed, it
 * answers nothing: attempt_look_up() begins again, a bounded number of times. */
void attempt_answer(struct attempt *attempt);

/* The operations answered since the last call, in that order, linked by op->next. NULL: none. */
struct op *attempt_answered(struct attempt *attempt);

/* True: op is too late to begin, because its client has been told, or soon will be, that nothing
 * came of it. op has its problem. */
bool attempt_too_late(struct op *op);

#endif
