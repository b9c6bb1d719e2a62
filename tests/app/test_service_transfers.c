/* Money between accounts: nothing is made or lost, and opposite directions do not block each
 * other. */
#include "../lib/service_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ACCOUNTS = 4, START = 500 };

static const char *account(int i)
{
    static const char *const ids[ACCOUNTS] = {"a", "b", "c", "d"};
    return ids[i % ACCOUNTS];
}

/* guards: one for all accounts, or NULL: a different one for each. */
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

/* To and fro between all pairs, with more than some have. */
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
    /* On a starved machine Redis may take longer than a command may: refused, nothing written. */
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
    assert_int_equal(balance_of("a"), START);
    assert_int_equal(balance_of("b"), START);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "b", START, 3)), 201);
    assert_int_equal(op.shown_value, 0);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "b", "a", 1, 4)), 201);
    assert_int_equal(op.shown_value, 2 * START - 1); /* of who pays, whatever the order of names */
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "a", "b", 1, 5)), 201);
    assert_int_equal(answer_number(&op, "balance_after"), 0);
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
    memset(op.key, '"', DB_KEY_MAX);
    op.key[DB_KEY_MAX] = '\0';
    assert_int_equal(op_run(rig.service, &op), 201);
    char key[DB_KEY_MAX + 1];
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
        UNDER(answer_with_the_longest_key_fits, redis_token, "redis-token"),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
