/*
 * A lock is released only when its transaction is known to be committed, or known never to commit.
 * The test covers all outcomes of an unanswered commit, all ways of serving, one and several locks,
 * and every kind of guard. See undecided_plan.h.
 */
#include "undecided_plan.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FIRST = 1000, ACCOUNTS_MAX = 4, BUSY_WAIT_MS = 40, TOGETHER_TRIES = 200 };

enum serving { SINGLY, IN_LANES, TOGETHER, SERVINGS };
static const char *const serving_texts[] = {"lanes off", "lanes on", "lanes together"};

/* -- one case ---------------------------------------------------------------------------------- */

struct variant {
    const char *guard;
    bool fence;
    enum outcome outcome;
    enum serving serving;
    size_t locks; /* of each operation */
};

static const char *account_name(size_t i)
{
    static const char *const names[ACCOUNTS_MAX] = {"a0", "a1", "a2", "a3"};
    return names[i];
}

/* The ith operation takes 100 from the ith account. A transfer gives it to the first account. */
static struct op *make(struct op *op, const struct variant *variant, size_t i, int number)
{
    if (variant->locks == 1)
        return op_make(op, OP_CHANGE_BALANCE, account_name(i), "", -100, number);
    return op_make(op, OP_TRANSFER, account_name(i), account_name(0), 100, number);
}

static void start(const struct variant *variant)
{
    struct op op;
    watch_releases();
    rig_reset(variant->guard);
    rig.config.lanes = variant->serving != SINGLY;
    rig.config.fence = variant->fence;
    assert_int_equal(rig_start(), 0);
    for (size_t i = 0; i < ACCOUNTS_MAX; i++)
        assert_int_equal(op_run(rig.service, op_put_account(&op, account_name(i), FIRST, "")), 200);
    plan_from_now(variant->outcome);
}

/* Makes the changes of the unanswered write, later and without the service. */
static db_status work_late(db_tx *tx, void *arg)
{
    const struct op *op = arg;
    const bool transfer = op->kind == OP_TRANSFER;
    const char *ids[] = {op->id, op->other};
    db_answer answer = {.http_status = 201, .body = "{}"};
    snprintf(answer.key, sizeof answer.key, "%s", op->key);
    snprintf(answer.request, sizeof answer.request, "%s", op->request);
    db_status status = db_tx_insert_answer(tx, &answer);
    for (int i = 0; status == DB_OK && i < (transfer ? 2 : 1); i++) {
        db_account account;
        status = db_tx_read_account(tx, ids[i], true, &account);
        const int64_t delta = i == 0 ? -100 : 100;
        db_ledger_row row = {.delta = delta,
                             .before = account.balance,
                             .after = account.balance + delta,
                             .version_before = account.version,
                             .epoch = account.epoch};
        snprintf(row.resource, sizeof row.resource, "account:%s", ids[i]);
        snprintf(row.txn_id, sizeof row.txn_id, "%s", op->key);
        row.kind = transfer ? DB_KIND_TRANSFER : DB_KIND_CHANGE;
        if (transfer)
            snprintf(row.counterpart, sizeof row.counterpart, "account:%s", ids[1 - i]);
        else
            strcpy(row.counterpart, DB_SHOP_CASH);
        account.balance += delta;
        account.version++;
        db_ledger_seal(&row, account.chain);
        if (status == DB_OK)
            status = db_tx_put_account(tx, &account, &(db_put){.expected_version = -1});
        if (status == DB_OK)
            status = db_tx_append_ledger(tx, &row);
        if (status == DB_OK && !transfer) {
            db_ledger_row leg;
            db_ledger_shop_leg(&row, &leg);
            status = db_tx_append_ledger(tx, &leg);
        }
    }
    return status;
}

static void land_late(struct op *op)
{
    db_job job = {.work = work_late, .arg = op};
    plan.real->run(rig.service->db, &job, 1);
    assert_int_equal(DB_OK, job.status);
}

static bool has_lock(const struct variant *variant)
{
    const struct guard *guard = guard_find(rig.service->guards, variant->guard);
    return guard->kind == GUARD_LOCK;
}

/* Another request for the same lock must time out. */
static void expect_kept_out(const struct variant *variant, size_t i)
{
    struct op other;
    make(&other, variant, i, 77);
    other.deadline_us = now_us() + BUSY_WAIT_MS * 1000;
    assert_int_equal(op_run(rig.service, &other), 503);
    assert_int_equal(other.answer.problem, PROBLEM_LOCK_TIMEOUT);
}

static void decide_later(const struct variant *variant, struct op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ops[i].answer.problem, PROBLEM_UNAVAILABLE);
        if (has_lock(variant))
            expect_kept_out(variant, variant->locks == 1 ? i : i + 1);
    }
    for (size_t i = 0; i < n && variant->outcome == LATE; i++)
        land_late(&ops[i]);
    assert_int_equal(atomic_load(&plan.early), 0);
    if (has_lock(variant))
        assert_int_equal(atomic_load(&plan.releases), 0);
    atomic_store(&plan.undecided, false);
    wait_until_given_back();
}

/* Submits n operations whose commit is not answered. False: they did not share one commit, or had
 * none, as a lock server was late. In a lane another operation waits behind them, which could go on
 * under the same lock. */
static bool meet_unknown(const struct variant *variant, struct op *ops, size_t n, struct op *behind)
{
    const bool gated = variant->serving == IN_LANES && variant->locks == 1 && has_lock(variant);
    for (size_t i = 0; i < n; i++)
        make(&ops[i], variant, variant->locks == 1 ? i : i + 1, (int)i);
    atomic_store(&plan.armed, true);
    if (gated)
        gate_set(0, OP_DECIDED, ops[0].request_id);
    ops_submit(rig.service, ops, n);
    if (gated) {
        gate_wait(0);
        make(behind, variant, 0, 55);
        behind->deadline_us = now_us() + BUSY_WAIT_MS * 1000;
        ops_submit(rig.service, behind, 1);
        gate_open(0);
        ops_wait(behind, 1);
    }
    ops_wait(ops, n);
    points_clear();
    if (gated && variant->outcome >= LATE)
        assert_int_equal(behind->answer.problem, PROBLEM_LOCK_TIMEOUT);
    return atomic_load(&plan.jobs) == n;
}

/* False: operations under this guard are never served together. */
static bool try_variant(const struct variant *variant)
{
    struct op ops[ACCOUNTS_MAX], op, behind = {.kind = OP_READY};
    size_t n = variant->serving == TOGETHER ? 2 : 1;
    bool met = false;
    for (int tries = 0; !met && tries < TOGETHER_TRIES; tries++) {
        if (tries > 0) { /* starts again */
            atomic_store(&plan.armed, false);
            atomic_store(&plan.undecided, false);
            wait_until_given_back();
            rig_stop();
        }
        start(variant);
        if (variant->serving == TOGETHER &&
            !guard_is_quick_with_many(guard_default(rig.service->guards))) {
            rig_stop();
            return false;
        }
        met = meet_unknown(variant, ops, n, &behind);
    }
    assert_true(met);
    if (variant->outcome >= LATE)
        decide_later(variant, ops, n);
    for (size_t i = 0; i < n; i++) {
        const bool answered = ops[i].answer.status == 201;
        assert_true(answered == (variant->outcome < LATE));
        assert_false(ops[i].answer.replayed);
        /* The same key again: there is one effect, whatever the first answer was. */
        make(&op, variant, variant->locks == 1 ? i : i + 1, (int)i);
        assert_int_equal(op_run(rig.service, &op), 201);
        make(&op, variant, variant->locks == 1 ? i : i + 1, 99);
        assert_int_equal(op_run(rig.service, &op), 201);
        assert_int_equal(
            rig_number(OP_GET_ACCOUNT, account_name(variant->locks == 1 ? i : i + 1), "balance"),
            FIRST - 200 - (behind.answer.status == 201 ? 100 : 0));
    }
    assert_true(audit_is_clean(rig.service));
    assert_int_equal(atomic_load(&plan.early), 0);
    rig_stop();
    return true;
}

GROUP_FIXTURE(rig_open, rig_close);

TEST_THAT_WITH(no_lock_is_given_back_before_the_decision, NULL, rig_clear)
{
    static const struct {
        const char *guard;
        bool fence;
    } guards[] = {{"mutex", false},          {"redis-set", false},   {"redis-getset", false},
                  {"redis-setnx", false},    {"redis-token", false}, {"redis-token", true},
                  {"redis-reentrant", true}, {"redis-fair", true},   {"sql-unique", true},
                  {"sql-row", false},        {"sql-atomic", false},  {"sql-version", false}};
    int variants = 0;
    for (size_t guard = 0; guard < sizeof guards / sizeof *guards; guard++)
        for (int outcome = 0; outcome < OUTCOMES; outcome++)
            for (int serving = 0; serving < SERVINGS; serving++)
                for (size_t locks = 1; locks <= 2; locks++) {
                    const struct variant variant = {guards[guard].guard, guards[guard].fence,
                                                    (enum outcome)outcome, (enum serving)serving,
                                                    locks};
                    if (serving == TOGETHER && locks == 2) /* needs operations with one row */
                        continue;
                    fprintf(stderr, "%s%s, %s, %s, %zu lock%s\n", variant.guard,
                            variant.fence ? " fenced" : "", outcome_texts[outcome],
                            serving_texts[serving], locks, locks == 1 ? "" : "s");
                    variants += try_variant(&variant);
                }
    print_message("%d variants\n", variants);
}
