/* A refund gives the money of a paid order back, and its pieces while the sale lasts: once. */
#include "service_rig.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

enum { N = 8, PRICE = 100 };

static int start(void **state)
{
    rig_reset(*state);
    return rig_start();
}

static int run(enum op_kind kind, const char *id, int number, enum problem expected)
{
    struct op op;
    int status = op_run(rig.service, op_make(&op, kind, id, "", 0, number));
    assert_int_equal(op.answer.problem, expected);
    return status;
}

static void put_item(int64_t pieces)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", pieces, "")), 200);
}

/* Four of ten pieces, sold to u1, who has 1000. */
static void sell(char ret_id[DB_ID_MAX + 1])
{
    struct op op;
    put_item(10);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 1000, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", 4, 0)), 201);
    assert_true(answer_text(&op, "order_id", ret_id, DB_ID_MAX + 1));
}

static void what_is_left(int64_t stock, int64_t balance)
{
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), stock);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), balance);
    assert_true(audit_is_clean(rig.service));
}

static void a_paid_order_is_refunded_once(void **state)
{
    (void)state;
    static struct op ops[N];
    char id[DB_ID_MAX + 1];
    sell(id);
    run(OP_REFUND_ORDER, id, 1, PROBLEM_ORDER_CLOSED); /* not paid yet */
    assert_int_equal(201, run(OP_PAY_ORDER, id, 2, PROBLEM_NONE));
    what_is_left(6, 1000 - 4 * PRICE);
    for (int i = 0; i < N; i++)
        op_make(&ops[i], OP_REFUND_ORDER, id, "", 0, 10 + i);
    ops_run(rig.service, ops, N);
    assert_int_equal(ops_count(ops, N, 201), 1);
    assert_int_equal(ops_count_problem(ops, N, PROBLEM_ORDER_CLOSED), N - 1);
    what_is_left(10, 1000);
    run(OP_PAY_ORDER, id, 30, PROBLEM_ORDER_CLOSED);
    run(OP_CANCEL_ORDER, id, 31, PROBLEM_ORDER_CLOSED);
    what_is_left(10, 1000);
}

static void after_a_reset_only_the_money_goes_back(void **state)
{
    (void)state;
    char id[DB_ID_MAX + 1];
    sell(id);
    assert_int_equal(201, run(OP_PAY_ORDER, id, 1, PROBLEM_NONE));
    put_item(5);
    assert_int_equal(201, run(OP_REFUND_ORDER, id, 2, PROBLEM_NONE));
    what_is_left(5, 1000);
    run(OP_REFUND_ORDER, id, 3, PROBLEM_ORDER_CLOSED);
    run(OP_REFUND_ORDER, "nonesuch", 4, PROBLEM_NOT_FOUND);
    what_is_left(5, 1000);
}

/* Changes the guard with a reset, or without. */
static void change_guard(bool reset, const char *guard)
{
    struct op op;
    if (reset) {
        assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 5, guard)), 200);
        return;
    }
    op_make(&op, OP_PATCH_ITEM, "1", "", 0, 0);
    op.key[0] = '\0';
    op.price = op.per_user_limit = op.reserve_s = OP_UNCHANGED;
    op.fence = -1;
    snprintf(op.guard, sizeof op.guard, "%s", guard);
    assert_int_equal(op_run(rig.service, &op), 200);
}

/* The lock of the order has been taken ten times under the former guard. The other guard counts
 * fences from one. */
static void refund_under_another_guard(bool reset, int64_t stock)
{
    struct op op;
    char id[DB_ID_MAX + 1];
    sell(id);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 0, "")), 200);
    for (int i = 0; i < 10; i++)
        run(OP_PAY_ORDER, id, 10 + i, PROBLEM_FUNDS);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 1000, "")), 200);
    assert_int_equal(201, run(OP_PAY_ORDER, id, 1, PROBLEM_NONE));
    change_guard(reset, "sql-unique");
    assert_int_equal(201, run(OP_REFUND_ORDER, id, 2, PROBLEM_NONE));
    what_is_left(stock, 1000);
}

static void a_refund_after_a_change_of_guard_is_not_stale(void **state)
{
    (void)state;
    refund_under_another_guard(false, 10);
}

static void a_refund_after_a_reset_with_another_guard_is_not_stale(void **state)
{
    (void)state;
    refund_under_another_guard(true, 5);
}

/* Under a lock and under each guard of the store. */
#define RULE(name)                                                                                 \
    {#name, name, start, rig_clear, "redis-token"},                                                \
        {#name "_sql_row", name, start, rig_clear, "sql-row"},                                     \
        {#name "_sql_atomic", name, start, rig_clear, "sql-atomic"},                               \
    {                                                                                              \
#name "_sql_version", name, start, rig_clear, "sql-version"                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_paid_order_is_refunded_once),
        RULE(after_a_reset_only_the_money_goes_back),
        RULE(a_refund_after_a_change_of_guard_is_not_stale),
        RULE(a_refund_after_a_reset_with_another_guard_is_not_stale),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
