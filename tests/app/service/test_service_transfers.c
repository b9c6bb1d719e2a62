/* Transfers between accounts keep the sum; opposite directions do not block each other. */
#include "service_private.h"
#include "process.h"
#include "service_rig.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

enum { ACCOUNTS = 4, START = 500, PATIENCE_MS = 60000 };

static const char *account(int i)
{
    static const char *const ids[ACCOUNTS] = {"a", "b", "c", "d"};
    return ids[i % ACCOUNTS];
}

/* guard: of all accounts; NULL: a different guard for each. */
static void start(const char *guard)
{
    static const char *const mixed[ACCOUNTS] = {"redis-token", "sql-atomic", "sql-row", "mutex"};
    struct op op;
    rig_reset("redis-token");
    assert_int_equal(rig_start(), 0);
    for (int i = 0; i < ACCOUNTS; i++)
        assert_int_equal(
            op_run(rig.service, op_put_account(&op, account(i), START, guard ? guard : mixed[i])),
            200);
}

static int64_t balance_of(const char *id)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ACCOUNT, id, "", 0, 0)), 200);
    return answer_number(&op, "balance");
}

static int64_t sum(void)
{
    int64_t total = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        total += balance_of(account(i));
    return total;
}

/* Transfers in both directions between all pairs; some exceed the balance. */
static void transfers_conserve_the_sum(void **state)
{
    size_t n = getenv("TEST_FULL") ? 3000 : 200;
    struct op *ops = calloc(n, sizeof *ops);
    int64_t expected[ACCOUNTS];
    assert_non_null(ops);
    start(*state);
    for (int i = 0; i < ACCOUNTS; i++)
        expected[i] = START;
    for (size_t i = 0; i < n; i++) {
        int from = (int)(i * 7 % ACCOUNTS), to = from + 1 + (int)(i % (ACCOUNTS - 1));
        op_make(&ops[i], OP_TRANSFER, account(from), account(to), 10 + (int64_t)(i % 200), (int)i);
    }
    ops_run(rig.service, ops, n);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].answer.status != 201)
            continue;
        expected[ops[i].id[0] - 'a'] -= ops[i].amount;
        expected[ops[i].other[0] - 'a'] += ops[i].amount;
    }
    /* On a busy machine Redis may exceed the command timeout: refused, nothing is written. */
    size_t done = ops_count(ops, n, 201), short_of = ops_count_problem(ops, n, PROBLEM_FUNDS);
    assert_int_equal(done + short_of + ops_count_problem(ops, n, PROBLEM_UNAVAILABLE), n);
    assert_true(done > n / 4);
    for (int i = 0; i < ACCOUNTS; i++)
        assert_int_equal(balance_of(account(i)), expected[i]);
    assert_int_equal(sum(), ACCOUNTS * START);
    assert_true(audit_is_clean(rig.service));
    free(ops);
}

static void refused_transfer_changes_neither_account(void **state)
{
    struct op op;
    start(*state);
    op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "b", START + 1, 0));
    assert_int_equal(op.answer.problem, PROBLEM_FUNDS);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "nobody", 1, 1)), 404);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "a", 1, 2)), 400);
    char detail[64];
    assert_true(answer_text(&op, "detail", detail, sizeof detail));
    assert_string_equal(detail, "from and to are the same account");
    assert_int_equal(balance_of("a"), START);
    assert_int_equal(balance_of("b"), START);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "b", START, 3)), 201);
    assert_int_equal(op.shown_value, 0);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "b", "a", 1, 4)), 201);
    assert_int_equal(op.shown_value, 2 * START - 1); /* the payer's, whatever the names' order */
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "b", 1, 5)), 201);
    assert_int_equal(answer_number(&op, "balance_after"), 0);
    assert_int_equal(answer_number(&op, "version"), 4);
    assert_int_equal(answer_number(&op, "to_version"), 4);
}

static db_status store_answer(db_tx *tx, void *answer)
{
    return db_tx_insert_answer(tx, answer);
}

static bool two_wait_for_the_writer(void *unused)
{
    db_stats stats;
    (void)unused;
    db_get_stats(rig.service->db, &stats);
    return stats.waiting >= 2;
}

/* One job of the group has a key that was used meanwhile, so the store runs the whole group again.
 * The payer is read before the transaction, the payee inside it. The second run must not start from
 * results of the first. */
static void transfer_that_the_store_runs_again_moves_its_amount_once(void **state)
{
    enum { AMOUNT = 70 };
    struct op transfer, late, blocker;
    db_answer taken = {.http_status = 201, .body = "{}"};
    db_stats before, after;
    start(*state); /* a: redis-token, b: sql-atomic, c: sql-row, d: mutex */
    op_make(&late, OP_CHANGE_BALANCE, "d", "", 1, 0);
    op_make(&transfer, OP_TRANSFER, "a", "c", AMOUNT, 1);
    op_make(&blocker, OP_CHANGE_BALANCE, "b", "", 1, 2);
    gate_set(0, OP_ACQUIRED, late.request_id); /* its key has been looked for, and not found */
    gate_set(1, OP_READ, blocker.request_id);  /* in the transaction */
    ops_submit(rig.service, &late, 1);
    gate_wait(0);
    strcpy(taken.key, late.key);
    strcpy(taken.request, late.request);
    assert_int_equal(db_run(rig.service->db, store_answer, &taken, NULL), DB_OK);
    db_get_stats(rig.service->db, &before);
    ops_submit(rig.service, &blocker, 1);
    gate_wait(1);
    ops_submit(rig.service, &transfer, 1);
    gate_open(0);
    bool together = wait_until(two_wait_for_the_writer, NULL, PATIENCE_MS);
    gate_open(1);
    ops_wait(&transfer, 1);
    ops_wait(&late, 1);
    ops_wait(&blocker, 1);
    db_get_stats(rig.service->db, &after);
    assert_true(together);
    assert_true(after.rollbacks > before.rollbacks);
    assert_int_equal(transfer.answer.status, 201);
    assert_true(late.answer.replayed);
    assert_int_equal(balance_of("a"), START - AMOUNT);
    assert_int_equal(balance_of("c"), START + AMOUNT);
    assert_true(audit_is_clean(rig.service));
}

static void answer_with_the_longest_key_fits(void **state)
{
    struct op op;
    char id[DB_ID_MAX + 1] = {0}, other[DB_ID_MAX + 1] = {0};
    start(*state);
    memset(id, 'x', DB_ID_MAX);
    memset(other, 'y', DB_ID_MAX);
    assert_int_equal(op_run(rig.service, op_put_account(&op, id, INT64_MAX, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, other, 0, "")), 200);
    op_make(&op, OP_TRANSFER, id, other, INT64_MAX, 0);
    memset(op.key, '"', OP_KEY_MAX);
    op.key[OP_KEY_MAX] = '\0';
    assert_int_equal(op_run(rig.service, &op), 201);
    char key[OP_KEY_MAX + 1];
    assert_true(answer_text(&op, "transaction_id", key, sizeof key));
    assert_string_equal(key, op.key);
}

#define UNDER(name, guard_name, guard)                                                             \
    {                                                                                              \
#name "_" #guard_name, name, NULL, rig_clear, guard                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNDER(transfers_conserve_the_sum, mutex, "mutex"),
        UNDER(transfers_conserve_the_sum, redis_token, "redis-token"),
        UNDER(transfers_conserve_the_sum, redis_fair, "redis-fair"),
        UNDER(transfers_conserve_the_sum, sql_row, "sql-row"),
        UNDER(transfers_conserve_the_sum, sql_atomic, "sql-atomic"),
        UNDER(transfers_conserve_the_sum, sql_version, "sql-version"),
        UNDER(transfers_conserve_the_sum, guards_mixed, NULL),
        UNDER(refused_transfer_changes_neither_account, redis_token, "redis-token"),
        UNDER(refused_transfer_changes_neither_account, sql_atomic, "sql-atomic"),
        UNDER(transfer_that_the_store_runs_again_moves_its_amount_once, guards_mixed, NULL),
        UNDER(answer_with_the_longest_key_fits, redis_token, "redis-token"),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
