/* Under the locks: what becomes of a run. It is done, refused, or run again. */
#include "attempt_steps.h"
#include "point.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    RERUNS_MAX = 200,      /* of a section whose rows changed meanwhile */
    BACK_OFF_US_MAX = 8000 /* between two of these */
};

/* Another instance has answered this key since we looked: its answer counts, and the others of the
 * batch go on without it. */
static void leave_duplicate(struct run *run)
{
    struct section *section = run->section;
    struct op *op = section->ops[section->duplicate];
    if (!run_was_answered(run, op))
        op_problem(op, PROBLEM_UNAVAILABLE,
                   "the key's first request failed at the same time; "
                   "retry with the same Idempotency-Key");
    run_finish(run, op);
    section->n_ops--;
    memmove(&section->ops[section->duplicate], &section->ops[section->duplicate + 1],
            (section->n_ops - section->duplicate) * sizeof section->ops[0]);
}

/* A random pause that doubles, so that those who collided do not collide again. */
static void back_off(int rerun)
{
    int64_t most_us = rerun < 7 ? INT64_C(64) << rerun : BACK_OFF_US_MAX;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = (uint32_t)now_us();
    const struct timespec pause = {.tv_nsec = (int64_t)random % most_us * 1000};
    nanosleep(&pause, NULL);
}

/* The newest fence that the store has seen of a row; 0: not known. */
static int64_t last_fence(db_reader *reader, const struct section_row *row)
{
    union row_value now;
    switch (row->kind) {
    case ROW_ITEM:
        return db_read_item(reader, row->id, &now.item) == DB_OK ? now.item.last_fence : 0;
    case ROW_ACCOUNT:
        return db_read_account(reader, row->id, &now.account) == DB_OK ? now.account.last_fence : 0;
    case ROW_ORDER:
        break;
    }
    return db_read_order(reader, row->id, &now.order) == DB_OK ? now.order.last_fence : 0;
}

/* The store has seen a newer fence: ours is a hold that ended unnoticed, or the lock server has
 * lost its counter. In the second case nobody could write any more until it is told; the store's
 * own counter knows. */
static void refuse_stale(struct run *run)
{
    const struct section_row *row = run->section->refused;
    const char *why = "a newer holder has written; nothing was written";
    counter_add(&run->host->counters->stale_fences, 1);
    if (!run->section->config->fence_database) {
        int64_t seen = last_fence(run->section->reader, row);
        lk_status told =
            seen > 0 ? lk_raise_fence(row->hold->client, row->hold->key, (uint64_t)seen) : LK_OK;
        if (told == LK_UNSUPPORTED)
            why = "a newer fence is in the store; nothing was written. If every request is told "
                  "so, the lock server has lost its count, and this guard cannot raise it: start "
                  "the service with --fence-source database, or reset the resource (PUT)";
    }
    run_fail(run, PROBLEM_LOCK_LOST, row->hold->key, why);
}

static void refuse(struct run *run, db_status status)
{
    struct section *section = run->section;
    if (section->lost || status == DB_STALE_FENCE)
        op_pass_all(section->ops, section->n_ops, OP_LOST);
    if (section->lost)
        run_fail(run, PROBLEM_LOCK_LOST, section->lost->key,
                 "lost before the write; nothing was written");
    else if (status == DB_STALE_FENCE)
        refuse_stale(run);
    else if (status == DB_CONFLICT)
        run_fail(run, PROBLEM_LOCK_TIMEOUT, section->rows[0].resource,
                 "changed by others at each attempt; nothing was written");
    else if (status == DB_UNKNOWN)
        run_fail_store(run, status, "outcome of the commit unknown");
    else
        run_fail_store(run, status,
                       section->error.message[0] ? section->error.message : db_status_text(status));
}

/* By the transaction whose commit was not answered; it stands in the store like any other. */
static bool was_committed(struct run *run, struct op *op)
{
    if (op->key[0] == '\0' || !run_was_answered(run, op))
        return false;
    if (op->answer.replayed) { /* the first answer of its key */
        op->answer.replayed = false;
        op_pass(op, OP_COMMITTED);
    }
    return true;
}

/* The outcome of the commit is unknown. True: decided; those it has written are answered, and the
 * others it never will write. */
static bool find_out(struct run *run)
{
    if (!section_finds_out(run->section))
        return false;
    snprintf(run->section->error.message, sizeof run->section->error.message,
             "the commit was not answered, and has not taken effect");
    run_leave_if(run, was_committed);
    return true;
}

bool run_settle(struct run *run, db_status status)
{
    struct section *section = run->section;
    int reruns = 0;
    for (;; status = section_run(section)) {
        bool undone = status == DB_UNKNOWN && find_out(run);
        if (status == DB_OK || section->n_ops == 0) {
            op_pass_all(section->ops, section->n_ops, OP_COMMITTED);
            return true;
        }
        if (section->guard_changed)
            return false;
        if (status == DB_DUPLICATE) {
            leave_duplicate(run);
            if (section->n_ops == 0)
                return true;
            continue;
        }
        bool again = (undone || status == DB_CONFLICT) && !section->lost && reruns < RERUNS_MAX &&
                     now_us() < run_deadline_us(section);
        if (!again) {
            refuse(run, undone ? DB_UNAVAILABLE : status);
            return true;
        }
        counter_add(&run->host->counters->reruns, 1);
        run->left = run->in_company;
        if (run->left)
            return false;
        back_off(reruns++);
    }
}

bool run_locked(struct run *run)
{
    int from_store;
    db_status fenced = section_take_fences(run->section, &from_store);
    counter_add(&run->host->counters->fences, (uint64_t)from_store);
    if (fenced != DB_OK) {
        refuse(run, fenced);
        return true;
    }
    return run_settle(run, section_run(run->section));
}
