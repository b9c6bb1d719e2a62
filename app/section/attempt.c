#include "attempt_steps.h"
#include "answer.h"
#include "away_log.h"
#include "point.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LATE_US = 100000,
    SAME_TIME_US = 20000, /* deadlines so close together count as one */
    RELOCKS_MAX = 5       /* a guard that was changed between reading it and taking it */
};

/* -- leaving the batch ------------------------------------------------------------------------ */

void run_finish(struct run *run, struct op *op)
{
    if (op->answer.problem != PROBLEM_NONE)
        op_pass(op, OP_REJECTED);
    run->host->finish(run->host->ctx, op);
}

void run_leave_if(struct run *run, bool (*leave)(struct run *run, struct op *op))
{
    struct section *section = run->section;
    size_t kept = 0;
    for (size_t i = 0; i < section->n_ops; i++) {
        struct op *op = section->ops[i];
        if (leave(run, op))
            run_finish(run, op);
        else
            section->ops[kept++] = op;
    }
    section->n_ops = kept;
}

static bool leave_now(struct run *run, struct op *op)
{
    (void)run;
    (void)op;
    return true;
}

void run_fail(struct run *run, enum problem problem, const char *what, const char *why)
{
    struct section *section = run->section;
    for (size_t i = 0; i < section->n_ops; i++)
        op_problem(section->ops[i], problem, "%s: %s; retry with the same Idempotency-Key", what,
                   why);
}

void run_fail_store(struct run *run, db_status status, const char *told)
{
    const char *why = run->section->error.message;
    run_fail(run, problem_of_store(status), "store", told);
    away_log("store", why[0] ? why : told);
}

/* Somewhat beyond its deadline an operation may still begin: so wait_ms 0 means once. */
bool guarded_too_late(struct op *op)
{
    if (now_us() < op->deadline_us + LATE_US)
        return false;
    op_problem(op, PROBLEM_LOCK_TIMEOUT, "its turn did not come in time; nothing was written");
    return true;
}

static bool is_late(struct run *run, struct op *op)
{
    (void)run;
    return guarded_too_late(op);
}

static bool has_waited(struct run *run, struct op *op)
{
    if (now_us() + SAME_TIME_US < op->deadline_us)
        return false;
    op_problem(op, PROBLEM_LOCK_TIMEOUT, "%s; nothing was written", run->section->locks.message);
    return true;
}

/* -- stored answers --------------------------------------------------------------------------- */

static void replay(struct op *op, const db_answer *stored)
{
    if (strcmp(stored->request, op->request) != 0)
        op_problem(op, PROBLEM_KEY_REUSED, "the key was used for \"%.80s\"", stored->request);
    else
        op_replay(op, stored);
}

bool run_was_answered(struct run *run, struct op *op)
{
    db_answer stored;
    db_status status = db_read_answer(run->section->reader, op->key, &stored);
    if (status == DB_NOT_FOUND)
        return false;
    if (status == DB_OK)
        replay(op, &stored);
    else
        op_problem(op, problem_of_store(status), "reading the key's answer: %s",
                   db_status_text(status));
    return true;
}

/* Asks for up to DB_KEYS_MAX keys at once, of the operations from here on; returns where it has
 * stopped. Keys that could not be asked count as found: each then learns why for itself. */
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

static bool leave_answered(struct run *run, struct op *op)
{
    return op->key_found && run_was_answered(run, op);
}

/* -- the whole way ---------------------------------------------------------------------------- */

static bool lacks_rows(struct run *run, struct op *op)
{
    section_clear(run->section);
    return !run->section->operation->uses(run->section, op);
}

/* Nothing but its guard is to keep the operations on a resource apart. Those of a batch run one
 * after the other, which would be a guard: without one they go their own ways. */
static void spread_unguarded(struct run *run)
{
    struct section *section = run->section;
    if (section->rows[0].guard->kind != GUARD_NONE || !run->host->spread)
        return;
    size_t spread = run->host->spread(run->host->ctx, section->ops, section->n_ops);
    section->n_ops -= spread;
    memmove(&section->ops[1], &section->ops[1 + spread],
            (section->n_ops - 1) * sizeof section->ops[0]);
}

/* Before the locks: those who are answered or late leave, the others' rows are named. */
static void look_up(struct run *run)
{
    struct section *section = run->section;
    for (size_t i = 0; i < section->n_ops;)
        i = find_keys(section, i);
    run_leave_if(run, leave_answered);
    run_leave_if(run, is_late);
    if (section->n_ops > 0 && lacks_rows(run, section->ops[0]))
        run_leave_if(run, lacks_rows); /* each learns why; all use the same rows */
}

void run_look_up(struct run *runs, size_t n)
{
    db_reader *reader = runs[0].section->reader;
    bool snapshot = db_reader_begin(reader) == DB_OK;
    for (size_t i = 0; i < n; i++)
        look_up(&runs[i]);
    if (snapshot)
        db_reader_end(reader);
}

/* Not with a fair lock: the next in its line may be of another instance. */
static bool may_go_on(struct run *run)
{
    const struct section *section = run->section;
    const struct guarded_host *host = run->host;
    const struct guard *guard = section->rows[0].guard;
    return run->turn < host->turns && section->n_rows == 1 && section->n_ops > 0 &&
           guard->kind == GUARD_LOCK && !(guard->info->caps & LK_CAP_FAIR) &&
           host->goes_on(host->ctx, section->ops[0], run->lane);
}

/* Those who have waited long enough for the lock leave; all, if it cannot be had. In company nobody
 * does: whoever comes next waits for it. */
static void go_without_lock(struct run *run, enum problem problem)
{
    run->left = run->in_company;
    if (run->left)
        return;
    if (problem == PROBLEM_LOCK_TIMEOUT) {
        run_leave_if(run, has_waited);
        return;
    }
    run_fail(run, problem, run->section->locks.message, "nothing was written");
    run_leave_if(run, leave_now);
}

int64_t run_deadline_us(const struct section *section)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < section->n_ops; i++) {
        if (section->ops[i]->deadline_us < first)
            first = section->ops[i]->deadline_us;
    }
    return first;
}

void run_note_acquired(struct run *run)
{
    op_pass_all(run->section->ops, run->section->n_ops, OP_ACQUIRED);
    metric_observe(&run->host->counters->batch, (int64_t)run->section->n_ops);
}

void run_answer(struct run *run, bool done)
{
    struct section *section = run->section;
    if (!done && ++run->relocks < RELOCKS_MAX)
        return;
    if (!done)
        run_fail(run, PROBLEM_LOCK_TIMEOUT, section->rows[0].resource,
                 "its guard keeps changing; nothing was written");
    op_pass_all(section->ops, section->n_ops, OP_RELEASED);
    run_leave_if(run, leave_now);
}

/* One try for the locks and what follows, for those who are left. */
static void run_once(struct run *run)
{
    struct section *section = run->section;
    run_look_up(run, 1);
    if (section->n_ops == 0 || section->n_rows == 0)
        return;
    run->left = run->in_company && section->rows[0].guard->kind == GUARD_NONE;
    if (run->left)
        return;
    spread_unguarded(run);

    int64_t deadline_us = run->in_company ? 0 : run_deadline_us(section);
    enum problem problem = lock_set_acquire(&section->locks, deadline_us);
    if (problem != PROBLEM_NONE) {
        go_without_lock(run, problem);
        return;
    }
    run_note_acquired(run);
    bool done = run_locked(run);
    run->goes_on = done && !section->undecided && may_go_on(run);
    if (run->goes_on)
        lock_set_keep(&section->locks);
    else
        section_give_back(section);
    if (!run->left)
        run_answer(run, done);
}

bool run_begin(struct run *run, struct op **ops, size_t n)
{
    struct section *section = run->section;
    section->ops = ops;
    section->n_ops = n;
    run->relocks = 0;
    run->goes_on = false;
    run->turn++;
    for (size_t i = 0; i < n; i++)
        ops[i]->section = section;
    op_pass_all(ops, n, OP_WAITING);
    if (section_reader(section))
        return true;
    run_fail_store(run, section->error.status, section->error.message);
    run_leave_if(run, leave_now);
    return false;
}

size_t run_turns(struct run *run, struct op **ops, size_t n)
{
    struct section *section = run->section;
    do {
        if (run_begin(run, ops, n))
            while (section->n_ops > 0 && !run->left)
                run_once(run);
        n = run->goes_on ? run->host->more(run->host->ctx, run->lane, ops) : 0;
    } while (n > 0);
    lock_set_release(&section->locks);
    return section->n_ops;
}

void guarded_run(const struct guarded_host *host, struct section *section,
                 const struct operation *operation, struct op **ops, size_t n)
{
    struct run run = {.host = host, .section = section};
    assert(n >= 1 && n <= section->batch);
    section->operation = operation;
    run_turns(&run, ops, n);
    assert(section->n_ops == 0);
}
