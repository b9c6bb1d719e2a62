/*
 * Each call of the store fails, the Nth one for every N, in each operation, under each kind of
 * guard, in lanes and alone. An operation that is not answered with success has had no effect. Sent
 * again with its key, it has its effect once.
 */
#include "engine.h"
#include "service_private.h"
#include "service_rig.h"
#include "tests.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PIECES = 10, FIRST = 1000, CALLS_MAX = 200, AGAIN_MAX = 100 };

/* -- the store whose Nth call fails
 * ---------------------------------------------------------------- */

static struct {
    const db_engine *real;
    db_engine engine;
    db_status status; /* DB_CONFLICT: only of calls that may return it */
    atomic_int left;  /* this many calls until one fails; 0: none does */
    atomic_int failed;
    bool twice; /* each work is undone once, and runs again; only calls of the first run fail */
} plan;

static _Thread_local bool in_first_run;

static bool fails(bool may_conflict)
{
    if ((plan.status == DB_CONFLICT && !may_conflict) || (plan.twice && !in_first_run))
        return false;
    int left = atomic_load(&plan.left);
    while (left > 0 && !atomic_compare_exchange_weak(&plan.left, &left, left - 1))
        continue;
    atomic_fetch_add(&plan.failed, left == 1);
    return left == 1;
}

#define OR_FAIL(may_conflict, call) (fails(may_conflict) ? plan.status : plan.real->call)

static db_status read_row(db_reader *reader, enum db_table table, const char *key, void *ret)
{
    return OR_FAIL(false, read_row(reader, table, key, ret));
}

static db_status reader_begin(db_reader *reader)
{
    return OR_FAIL(false, reader_begin(reader));
}

static db_status find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret)
{
    return OR_FAIL(false, find_answers(reader, keys, n, ret));
}

static db_status read_bought(db_reader *reader, const db_item *item, const char *const *users,
                             size_t n, int64_t *ret)
{
    return OR_FAIL(false, read_bought(reader, item, users, n, ret));
}

static db_status tx_read_row(db_tx *tx, enum db_table table, const char *id, bool for_update,
                             void *ret)
{
    return OR_FAIL(false, tx_read_row(tx, table, id, for_update, ret));
}

static db_status tx_read_bought(db_tx *tx, const db_item *item, const char *user, int64_t *ret)
{
    return OR_FAIL(false, tx_read_bought(tx, item, user, ret));
}

static db_status tx_hold_epoch(db_tx *tx, const char *order, int64_t epoch, const char *guard)
{
    return OR_FAIL(true, tx_hold_epoch(tx, order, epoch, guard));
}

static db_status tx_put(db_tx *tx, enum db_table table, const struct new_value *row,
                        const db_put *how)
{
    return OR_FAIL(true, tx_put(tx, table, row, how));
}

static db_status tx_add(db_tx *tx, enum db_table table, const struct addition *what,
                        struct added *ret)
{
    return OR_FAIL(true, tx_add(tx, table, what, ret));
}

static db_status tx_chain(db_tx *tx, enum db_table table, const char *id, const char *chain)
{
    return OR_FAIL(false, tx_chain(tx, table, id, chain));
}

static db_status tx_move_order(db_tx *tx, const db_order *row, db_order_state from,
                               db_order_state to, int64_t *ret_version)
{
    return OR_FAIL(true, tx_move_order(tx, row, from, to, ret_version));
}

static db_status tx_insert(db_tx *tx, enum db_table table, const void *row)
{
    return OR_FAIL(false, tx_insert(tx, table, row));
}

static db_status tx_reset(db_tx *tx, enum db_table table, const void *fresh, void *ret_old,
                          void *ret)
{
    return OR_FAIL(false, tx_reset(tx, table, fresh, ret_old, ret));
}

static db_status tx_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret)
{
    return OR_FAIL(false, tx_next_fence(tx, resource, seen, ret));
}

static db_status reader_open(db *store, db_reader **ret, db_error *error)
{
    db_status status = plan.real->reader_open(store, ret, error);
    if (status == DB_OK)
        (*ret)->engine = &plan.engine;
    return status;
}

/* A work sees the planned engine. */
static db_status work_planned(db_tx *tx, void *arg)
{
    const db_job *job = arg;
    tx->engine = &plan.engine;
    return job->work(tx, job->arg);
}

static db_status work_undone(db_tx *tx, void *arg)
{
    in_first_run = true;
    db_status status = work_planned(tx, arg);
    in_first_run = false;
    return status == DB_OK ? DB_REFUSED : status;
}

static void run(db *store, db_job *jobs, size_t n)
{
    db_job planned[DB_JOBS_MAX];
    for (size_t i = 0; i < n && plan.twice; i++)
        plan.real->run(store, &(db_job){.work = work_undone, .arg = &jobs[i]}, 1);
    for (size_t i = 0; i < n; i++)
        planned[i] = (db_job){.work = work_planned, .arg = &jobs[i], .error = jobs[i].error};
    plan.real->run(store, planned, n);
    for (size_t i = 0; i < n; i++) {
        jobs[i].status = planned[i].status;
        jobs[i].commit_id = planned[i].commit_id;
    }
}

/* The linker replaces db_open() by this function (tests.mk). */
db_status __real_db_open(const db_options *options, db **ret, db_error *error);
db_status __wrap_db_open(const db_options *options, db **ret, db_error *error);
db_status __wrap_db_open(const db_options *options, db **ret, db_error *error)
{
    db_status status = __real_db_open(options, ret, error);
    if (status != DB_OK)
        return status;
    plan.real = (*ret)->engine;
    plan.engine = *plan.real;
    plan.engine.reader_open = reader_open;
    plan.engine.reader_begin = reader_begin;
    plan.engine.read_row = read_row;
    plan.engine.find_answers = find_answers;
    plan.engine.read_bought = read_bought;
    plan.engine.run = run;
    plan.engine.tx_read_row = tx_read_row;
    plan.engine.tx_read_bought = tx_read_bought;
    plan.engine.tx_hold_epoch = tx_hold_epoch;
    plan.engine.tx_put = tx_put;
    plan.engine.tx_add = tx_add;
    plan.engine.tx_chain = tx_chain;
    plan.engine.tx_move_order = tx_move_order;
    plan.engine.tx_insert = tx_insert;
    plan.engine.tx_reset = tx_reset;
    plan.engine.tx_next_fence = tx_next_fence;
    (*ret)->engine = &plan.engine;
    return DB_OK;
}

/* -- one operation -------------------------------------------------------------------------------
 */

/* What an operation changes. */
struct books {
    int64_t stock, of_u, of_v;
    char order[16]; /* its state; "": there is none */
};

/* Rows that no other run uses. */
struct names {
    char item[16], u[16], v[16], order[DB_ID_MAX + 1];
};

static const struct story {
    enum op_kind kind;
    bool has_order;
    struct books after;
} stories[] = {
    {OP_PLACE_ORDER, false, {PIECES - 2, FIRST, FIRST, ""}},
    {OP_CHANGE_BALANCE, false, {PIECES, FIRST - 100, FIRST, ""}},
    {OP_TRANSFER, false, {PIECES, FIRST - 100, FIRST + 100, ""}},
    {OP_PAY_ORDER, true, {PIECES - 2, FIRST - 200, FIRST, "paid"}},
    {OP_CANCEL_ORDER, true, {PIECES, FIRST, FIRST, "cancelled"}},
    {OP_PUT_ITEM, false, {77, FIRST, FIRST, ""}},
    {OP_PUT_ACCOUNT, false, {PIECES, 77, FIRST, ""}},
};

static void make(struct op *op, const struct story *story, const struct names *names)
{
    switch (story->kind) {
    case OP_PLACE_ORDER:
        op_make(op, story->kind, names->item, names->u, 2, 2);
        break;
    case OP_CHANGE_BALANCE:
        op_make(op, story->kind, names->u, "", -100, 2);
        break;
    case OP_TRANSFER:
        op_make(op, story->kind, names->u, names->v, 100, 2);
        break;
    case OP_PUT_ITEM:
        op_put_item(op, names->item, 77, "");
        break;
    case OP_PUT_ACCOUNT:
        op_put_account(op, names->u, 77, "");
        break;
    default:
        op_make(op, story->kind, names->order, "", 0, 2);
    }
}

static void begin(const struct story *story, struct names *names)
{
    static int rows;
    struct op op;
    int number = ++rows;
    *names = (struct names){0};
    snprintf(names->item, sizeof names->item, "i%d", number);
    snprintf(names->u, sizeof names->u, "u%d", number);
    snprintf(names->v, sizeof names->v, "v%d", number);
    op_put_item(&op, names->item, PIECES, "");
    op.per_user_limit = 5;
    assert_int_equal(op_run(rig.service, &op), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, names->u, FIRST, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, names->v, FIRST, "")), 200);
    if (!story->has_order)
        return;
    op_make(&op, OP_PLACE_ORDER, names->item, names->u, 2, 1);
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_true(answer_text(&op, "order_id", names->order, sizeof names->order));
}

static struct books read_books(const struct names *names)
{
    struct books books = {.stock = rig_number(OP_GET_ITEM, names->item, "stock"),
                          .of_u = rig_number(OP_GET_ACCOUNT, names->u, "balance"),
                          .of_v = rig_number(OP_GET_ACCOUNT, names->v, "balance")};
    struct op op;
    if (names->order[0] == '\0')
        return books;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ORDER, names->order, "", 0, 0)), 200);
    assert_true(answer_text(&op, "state", books.order, sizeof books.order));
    return books;
}

static void expect_books(const struct books *is, const struct books *expected)
{
    assert_int_equal(is->stock, expected->stock);
    assert_int_equal(is->of_u, expected->of_u);
    assert_int_equal(is->of_v, expected->of_v);
    assert_string_equal(is->order, expected->order);
}

/* False: the operation makes fewer than n calls. */
static bool try_with_failing_call(const struct story *story, int n)
{
    struct names names;
    struct op op;
    begin(story, &names);
    struct books before = read_books(&names);
    atomic_store(&plan.failed, 0);
    atomic_store(&plan.left, n);
    make(&op, story, &names);
    int status = op_run(rig.service, &op);
    atomic_store(&plan.left, 0);
    bool failed = atomic_load(&plan.failed) > 0;
    struct books now = read_books(&names);
    if (status == 503 || status == 409 || status == 500)
        expect_books(&now, &before);
    else if (status == 200 || status == 201)
        expect_books(&now, &story->after);
    else
        fail_msg("status %d: %s", status, op.answer.body);
    for (int i = 0; i < AGAIN_MAX && status != 200 && status != 201; i++) {
        make(&op, story, &names);
        status = op_run(rig.service, &op);
    }
    assert_true(status == 200 || status == 201);
    now = read_books(&names);
    expect_books(&now, &story->after);
    return failed;
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(NULL, rig_clear);

TEST_THAT(failing_call_leaves_no_half_effect)
{
    static const char *const guards[] = {"redis-token", "mutex", "sql-row", "sql-atomic",
                                         "sql-version"};
    static const db_status statuses[] = {DB_UNAVAILABLE, DB_CONFLICT};
    int fired = 0;
    for (size_t guard = 0; guard < sizeof guards / sizeof *guards; guard++)
        for (int lanes = 0; lanes < 2; lanes++) {
            rig_reset(guards[guard]);
            rig.config.lanes = lanes != 0;
            assert_int_equal(rig_start(), 0);
            for (size_t i = 0; i < sizeof stories / sizeof *stories; i++)
                for (size_t s = 0; s < sizeof statuses / sizeof *statuses; s++) {
                    int n = 1;
                    plan.status = statuses[s];
                    while (try_with_failing_call(&stories[i], n))
                        assert_true(++n < CALLS_MAX);
                    fired += n - 1;
                    assert_true(n > 3 || plan.status == DB_CONFLICT);
                }
            assert_true(audit_is_clean(rig.service));
            rig_stop();
        }
    print_message("%d failing calls\n", fired);
}

/* Under every kind of guard, as the store may do after a serialization failure: the first run is
 * undone at its end, or earlier by a call that fails. */
static bool try_twice(const struct story *story, int failing_call)
{
    struct names names;
    struct op op;
    begin(story, &names);
    make(&op, story, &names);
    atomic_store(&plan.failed, 0);
    atomic_store(&plan.left, failing_call);
    plan.twice = true;
    int status = op_run(rig.service, &op);
    plan.twice = false;
    atomic_store(&plan.left, 0);
    if (status != 200 && status != 201)
        fail_msg("operation %d, call %d: %d %s", (int)story->kind, failing_call, status,
                 op.answer.body);
    struct books now = read_books(&names);
    expect_books(&now, &story->after);
    return atomic_load(&plan.failed) > 0;
}

TEST_THAT(what_runs_twice_is_written_as_if_once)
{
    static const char *const guards[] = {"redis-token", "sql-row", "sql-atomic", "sql-version"};
    static const db_status statuses[] = {DB_BUSY, DB_UNAVAILABLE, DB_CONFLICT};
    int fired = 0;
    for (size_t guard = 0; guard < sizeof guards / sizeof *guards; guard++) {
        rig_reset(guards[guard]);
        assert_int_equal(rig_start(), 0);
        for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
            try_twice(&stories[i], 0);
            for (size_t s = 0; s < sizeof statuses / sizeof *statuses; s++) {
                int n = 1;
                plan.status = statuses[s];
                while (try_twice(&stories[i], n))
                    assert_true(++n < CALLS_MAX);
                fired += n - 1;
            }
        }
        assert_true(audit_is_clean(rig.service)); /* also of the chain of hashes */
        rig_stop();
    }
    assert_true(fired > 0);
}
