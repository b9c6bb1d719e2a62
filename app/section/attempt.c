#include "attempt_private.h"
#include "answer.h"
#include "away_log.h"
#include "point.h"

#include <assert.h>
#include <string.h>

enum {
    LATE_US = 100000,
    SAME_TIME_US = 20000,  /* deadlines this close count as one */
    GUARD_CHANGES_MAX = 5, /* then the operations are refused */
};

void attempt_one(struct section *section, const struct operation *operation, struct op *op)
{
    struct attempt attempt = {.section = section};
    section->operation = operation;
    if (!attempt_begin(&attempt, &op, 1))
        return;

    while (attempt_look_up(&attempt)) { /* a stored answer, or the rows that it uses */
        if (!attempt_acquire(&attempt)) /* their locks, in the order of their keys */
            continue;                   /* answered, or there is time to try again */
        if (attempt_take_fences(&attempt)) {
            do {
                section_open_snapshot(section);
                section_read(section);   /* before the transaction, or inside: by its guard */
                section_decide(section); /* the business, such as order.c */
                section_close_snapshot(section);
                section_commit(section); /* locks still ours? one transaction; it tests the fence */
            } while (attempt_again(&attempt)); /* outcome known? else find out first */
        }
        attempt_release(&attempt); /* if the outcome is unknown: to the keeper */
        attempt_answer(&attempt);
    }
    assert(attempt.first_answered == op);
}

/* -- answers ---------------------------------------------------------------------------------- */

void attempt_finish(struct attempt *attempt, struct op *op)
{
    if (op->answer.problem != PROBLEM_NONE)
        op_pass(op, OP_REJECTED);
    op->next = NULL;
    if (attempt->last_answered)
        attempt->last_answered->next = op;
    else
        attempt->first_answered = op;
    attempt->last_answered = op;
}

struct op *attempt_answered(struct attempt *attempt)
{
    struct op *first = attempt->first_answered;
    attempt->first_answered = attempt->last_answered = NULL;
    return first;
}

void attempt_finish_if(struct attempt *attempt,
                       bool (*answered)(struct attempt *attempt, struct op *op))
{
    struct section *section = attempt->section;
    size_t kept = 0;
    for (size_t i = 0; i < section->n_ops; i++) {
        struct op *op = section->ops[i];
        if (answered(attempt, op))
            attempt_finish(attempt, op);
        else
            section->ops[kept++] = op;
    }
    section->n_ops = kept;
}

/* For attempt_finish_if(): all operations have their answer. */
static bool every_one(struct attempt *attempt, struct op *op)
{
    (void)attempt;
    (void)op;
    return true;
}

void attempt_fail(struct attempt *attempt, enum problem problem, const char *what, const char *why)
{
    struct section *section = attempt->section;
    for (size_t i = 0; i < section->n_ops; i++)
        op_problem(section->ops[i], problem, "%s: %s; retry with the same Idempotency-Key", what,
                   why);
}

void attempt_fail_store(struct attempt *attempt, db_status status, const char *told)
{
    const char *why = attempt->section->error.message;
    attempt_fail(attempt, problem_of_store(status), "store", told);
    away_log("store", why[0] ? why : told);
}

void attempt_answer(struct attempt *attempt)
{
    struct section *section = attempt->section;
    if (attempt->postponed)
        return;
    if (section->guard_changed) {
        if (++attempt->guard_changes < GUARD_CHANGES_MAX)
            return;
        attempt_fail(attempt, PROBLEM_LOCK_TIMEOUT, section->rows[0].resource,
                     "its guard keeps changing; nothing was written");
    }
    op_pass_all(section->ops, section->n_ops, OP_RELEASED);
    attempt_finish_if(attempt, every_one);
}

/* -- before the locks ------------------------------------------------------------------------- */

bool attempt_begin(struct attempt *attempt, struct op **ops, size_t n)
{
    struct section *section = attempt->section;
    assert(n >= 1 && n <= section->batch);
    section->ops = ops;
    section->n_ops = n;
    attempt->postponed = false;
    attempt->guard_changes = 0;
    for (size_t i = 0; i < n; i++)
        ops[i]->section = section;
    op_pass_all(ops, n, OP_WAITING);
    if (section_reader(section))
        return true;
    attempt_fail_store(attempt, section->error.status, section->error.message);
    attempt_finish_if(attempt, every_one);
    return false;
}

static void replay(struct op *op, const db_answer *stored)
{
    if (op_is_pruned(op, stored))
        return;
    if (strcmp(stored->request, op->request) != 0)
        op_problem(op, PROBLEM_KEY_REUSED, "the key was used for \"%.80s\"", stored->request);
    else
        op_replay(op, stored);
}

bool attempt_replay(struct attempt *attempt, struct op *op)
{
    db_answer stored;
    db_status status = db_read_answer(attempt->section->reader, op->key, &stored);
    if (status == DB_NOT_FOUND)
        return false;
    if (status == DB_OK)
        replay(op, &stored);
    else
        op_problem(op, problem_of_store(status), "reading the key's answer: %s",
                   db_status_text(status));
    return true;
}

/* Asks for up to DB_KEYS_MAX keys at once, from the ith operation on. Returns where it stopped. If
 * the store cannot be asked, the keys count as found: attempt_replay() then tells each why. */
static size_t find_keys(struct section *section, size_t i)
{
    struct op *asked[DB_KEYS_MAX];
    const char *keys[DB_KEYS_MAX];
    bool found[DB_KEYS_MAX];
    size_t n = 0;
    for (; i < section->n_ops && n < DB_KEYS_MAX; i++) {
        struct op *op = section->ops[i];
        op->key_found = false;
        if (op->key[0] == '\0')
            continue;
        asked[n] = op;
        keys[n++] = op->key;
    }
    bool known = n == 0 || db_find_answers(section->reader, keys, n, found) == DB_OK;
    for (size_t k = 0; k < n; k++)
        asked[k]->key_found = !known || found[k];
    return i;
}

static bool is_replayed(struct attempt *attempt, struct op *op)
{
    return op->key_found && attempt_replay(attempt, op);
}

/* An operation may still begin shortly after its deadline, so --wait-ms 0 means one attempt. */
bool attempt_too_late(struct op *op)
{
    if (now_us() < op->deadline_us + LATE_US)
        return false;
    op_problem(op, PROBLEM_LOCK_TIMEOUT, "its turn did not come in time; nothing was written");
    return true;
}

static bool is_late(struct attempt *attempt, struct op *op)
{
    (void)attempt;
    return attempt_too_late(op);
}

/* Names the rows that op uses. True: op has its problem instead. */
static bool lacks_rows(struct attempt *attempt, struct op *op)
{
    section_clear(attempt->section);
    return !attempt->section->operation->uses(attempt->section, op);
}

static void look_up(struct attempt *attempt)
{
    struct section *section = attempt->section;
    for (size_t i = 0; i < section->n_ops;)
        i = find_keys(section, i);
    attempt_finish_if(attempt, is_replayed);
    attempt_finish_if(attempt, is_late);
    /* All use the same rows. Each operation whose rows are missing gets that problem. The last call
     * names the rows of an operation that stays. */
    while (section->n_ops > 0 && lacks_rows(attempt, section->ops[0]))
        attempt_finish_if(attempt, lacks_rows);
}

/* One snapshot for all reads. Without it (the store is away) each read fails by itself. */
void attempt_look_up_many(struct attempt *attempts, size_t n)
{
    db_reader *reader = attempts[0].section->reader;
    bool snapshot = db_reader_begin(reader) == DB_OK;
    for (size_t i = 0; i < n; i++)
        look_up(&attempts[i]);
    if (snapshot)
        db_reader_end(reader);
}

bool attempt_look_up(struct attempt *attempt)
{
    if (attempt->section->n_ops > 0)
        attempt_look_up_many(attempt, 1);
    return attempt->section->n_ops > 0;
}

/* -- the locks -------------------------------------------------------------------------------- */

int64_t attempt_deadline_us(const struct section *section)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < section->n_ops; i++) {
        if (section->ops[i]->deadline_us < first)
            first = section->ops[i]->deadline_us;
    }
    return first;
}

/* True: op has waited long enough for the locks, and has its problem. */
static bool has_waited(struct attempt *attempt, struct op *op)
{
    if (now_us() + SAME_TIME_US < op->deadline_us)
        return false;
    op_problem(op, PROBLEM_LOCK_TIMEOUT, "%s; nothing was written",
               attempt->section->locks.message);
    return true;
}

void attempt_acquired(struct attempt *attempt)
{
    struct section *section = attempt->section;
    attempt->reruns = 0;
    op_pass_all(section->ops, section->n_ops, OP_ACQUIRED);
    metric_observe(&section->counters->batch, (int64_t)section->n_ops);
}

bool attempt_acquire(struct attempt *attempt)
{
    struct section *section = attempt->section;
    int64_t deadline_us = attempt->must_not_wait ? 0 : attempt_deadline_us(section);
    enum problem problem = lock_set_acquire(&section->locks, deadline_us);
    if (problem == PROBLEM_NONE) {
        attempt_acquired(attempt);
        return true;
    }
    if (attempt->must_not_wait) {
        attempt->postponed = true;
    } else if (problem == PROBLEM_LOCK_TIMEOUT) {
        attempt_finish_if(attempt, has_waited);
    } else {
        attempt_fail(attempt, problem, section->locks.message, "nothing was written");
        attempt_finish_if(attempt, every_one);
    }
    return false;
}

bool attempt_take_fences(struct attempt *attempt)
{
    db_status status = section_take_fences(attempt->section);
    if (status != DB_OK)
        attempt_refuse(attempt, status);
    return status == DB_OK;
}

void attempt_release(struct attempt *attempt)
{
    section_unlock(attempt->section);
}

void attempt_keep(struct attempt *attempt)
{
    assert(!attempt->section->outcome_unknown);
    lock_set_keep(&attempt->section->locks);
}

void attempt_release_many(struct attempt *const *attempts, size_t n)
{
    struct lock_set *sets[LOCK_SETS_MAX];
    size_t n_sets = 0;
    assert(n <= LOCK_SETS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (attempts[i]->section->outcome_unknown)
            attempt_release(attempts[i]);
        else
            sets[n_sets++] = &attempts[i]->section->locks;
    }
    lock_sets_release(sets, n_sets);
}

void attempt_end(struct attempt *attempt)
{
    lock_set_release(&attempt->section->locks);
}
