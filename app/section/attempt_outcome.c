/* After the commit: done, refused, or run again under the same locks. */
#include "attempt_private.h"
#include "point.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    RERUNS_MAX = 200,     /* of a section whose rows had changed */
    BACK_OFF_US_MIN = 64, /* before the next of these: a random part of it; it doubles */
    BACK_OFF_US_MAX = 8000
};

static bool find_out(struct attempt *attempt);
static void answer_duplicate(struct attempt *attempt);
static void back_off(int reruns);

bool attempt_again(struct attempt *attempt)
{
    struct section *section = attempt->section;
    bool undone = section->status == DB_UNKNOWN && find_out(attempt);
    if (section->status == DB_OK || section->n_ops == 0) {
        op_pass_all(section->ops, section->n_ops, OP_COMMITTED);
        return false;
    }
    if (section->guard_changed)
        return false; /* attempt_answer() lets it begin again */
    if (section->status == DB_DUPLICATE) {
        answer_duplicate(attempt);
        return section->n_ops > 0;
    }
    bool again = (undone || section->status == DB_CONFLICT) && !section->lost &&
                 attempt->reruns < RERUNS_MAX && now_us() < attempt_deadline_us(section);
    if (!again) {
        attempt_refuse(attempt, undone ? DB_UNAVAILABLE : section->status);
        return false;
    }
    counter_add(&section->counters->reruns, 1);
    attempt->postponed = attempt->must_not_wait;
    if (attempt->postponed)
        return false;
    back_off(attempt->reruns++);
    return true;
}

/* True: op has its answer. The transaction that was not answered has stored it, or reading the
 * store failed. */
static bool was_committed(struct attempt *attempt, struct op *op)
{
    if (op->key[0] == '\0' || !attempt_replay(attempt, op))
        return false;
    if (op->answer.replayed) { /* the first answer of its key */
        op->answer.replayed = false;
        op_pass(op, OP_COMMITTED);
    }
    return true;
}

/* The outcome of the commit is unknown. True: it is decided now. Operations that it has written are
 * answered; it will never write the others. */
static bool find_out(struct attempt *attempt)
{
    struct section *section = attempt->section;
    if (!section_find_out(section))
        return false;
    snprintf(section->error.message, sizeof section->error.message,
             "the commit was not answered, and has not taken effect");
    attempt_finish_if(attempt, was_committed);
    return true;
}

/* Another instance has answered this key since the look-up. The operation gets that answer, and the
 * rest of the batch goes on without it. */
static void answer_duplicate(struct attempt *attempt)
{
    struct section *section = attempt->section;
    struct op *op = section->ops[section->duplicate];
    if (!attempt_replay(attempt, op))
        op_problem(op, PROBLEM_UNAVAILABLE,
                   "the key's first request failed at the same time; "
                   "retry with the same Idempotency-Key");
    attempt_finish(attempt, op);
    section->n_ops--;
    memmove(&section->ops[section->duplicate], &section->ops[section->duplicate + 1],
            (section->n_ops - section->duplicate) * sizeof section->ops[0]);
}

/* Random, so that two holders that collided do not collide again. */
static void back_off(int reruns)
{
    int64_t most_us = backoff_us(BACK_OFF_US_MIN, BACK_OFF_US_MAX, reruns);
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = (uint32_t)now_us();
    const struct timespec pause = {.tv_nsec = (int64_t)random % most_us * 1000};
    nanosleep(&pause, NULL);
}

/* The newest fence of a row that the store has seen. 0: not known. */
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

/* The store has seen a newer fence. Either this hold ended unnoticed, or the lock server has lost
 * its counter. In the second case every write would be refused, so the lock server is told the
 * newest fence. The store's own counter needs no telling. */
static void refuse_stale(struct attempt *attempt)
{
    const struct section_row *row = attempt->section->refused;
    const char *why = "a newer holder has written; nothing was written";
    counter_add(&attempt->section->counters->stale_fences, 1);
    if (!attempt->section->config->fence_database) {
        int64_t seen = last_fence(attempt->section->reader, row);
        lk_status told =
            seen > 0 ? lk_raise_fence(row->hold->client, row->hold->key, (uint64_t)seen) : LK_OK;
        if (told == LK_UNSUPPORTED)
            why = "a newer fence is in the store; nothing was written. If every request is told "
                  "so, the lock server has lost its count, and this guard cannot raise it: start "
                  "the service with --fence-source database, or reset the resource (PUT)";
    }
    attempt_fail(attempt, PROBLEM_LOCK_LOST, row->hold->key, why);
}

void attempt_refuse(struct attempt *attempt, db_status status)
{
    struct section *section = attempt->section;
    if (section->lost || status == DB_STALE_FENCE)
        op_pass_all(section->ops, section->n_ops, OP_LOST);
    if (section->lost)
        attempt_fail(attempt, PROBLEM_LOCK_LOST, section->lost->key,
                     "lost before the write; nothing was written");
    else if (status == DB_STALE_FENCE)
        refuse_stale(attempt);
    else if (status == DB_CONFLICT)
        attempt_fail(attempt, PROBLEM_LOCK_TIMEOUT, section->rows[0].resource,
                     "changed by others at each attempt; nothing was written");
    else if (status == DB_UNKNOWN)
        attempt_fail_store(attempt, status, "outcome of the commit unknown");
    else
        attempt_fail_store(attempt, status,
                           section->error.message[0] ? section->error.message
                                                     : db_status_text(status));
}
