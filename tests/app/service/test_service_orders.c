/* The business rules: what is accepted, what is refused, and the contents of answers. */
#include "answer.h"
#include "service_rig.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

static int start(void **state)
{
    const char *guard = *state ? *state : "redis-token";
    rig_reset(guard);
    return rig_start();
}

static void put_item(int64_t pieces, int64_t per_user_limit)
{
    struct op op;
    op_put_item(&op, "1", pieces, "");
    op.per_user_limit = per_user_limit;
    assert_int_equal(op_run(rig.service, &op), 200);
}

static void put_account(const char *id, int64_t balance)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_account(&op, id, balance, "")), 200);
}

/* Places an order for u1; ret_id gets its id. */
static void order(int64_t quantity, int number, char ret_id[DB_ID_MAX + 1])
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", quantity, number)),
                     201);
    assert_true(answer_text(&op, "order_id", ret_id, DB_ID_MAX + 1));
}

static int run(struct op *op, enum op_kind kind, const char *id, int number)
{
    return op_run(rig.service, op_make(op, kind, id, "", 0, number));
}

static void state_is(const char *order_id, const char *expected)
{
    struct op op;
    char text[32];
    assert_int_equal(run(&op, OP_GET_ORDER, order_id, 0), 200);
    assert_true(answer_text(&op, "state", text, sizeof text));
    assert_string_equal(text, expected);
}

/* -- orders ----------------------------------------------------------------------------------- */

static void order_says_what_it_did(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"item_id", "1"},
                                           {"user_id", "u1"},
                                           {"state", "reserved"},
                                           {"guard", "redis-token"},
                                           {"instance", "test"}};
    struct op op;
    char text[64];
    put_item(10, 0);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", 3, 0)), 201);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(answer_text(&op, texts[i][0], text, sizeof text));
        assert_string_equal(text, texts[i][1]);
    }
    assert_int_equal(answer_number(&op, "quantity"), 3);
    assert_int_equal(answer_number(&op, "stock_before"), 10);
    assert_int_equal(answer_number(&op, "stock_after"), 7);
    assert_true(answer_number(&op, "fence") > 0);
    assert_int_equal(answer_number(&op, "version"), rig_number(OP_GET_ITEM, "1", "version"));
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "sold"), 3);
    for (enum op_point point = OP_SUBMITTED; point <= OP_RELEASED; point++)
        assert_true(op.point_us[point] > 0);
    for (enum op_point point = OP_WAITING; point <= OP_RELEASED; point++)
        assert_true(op.point_us[point] >= op.point_us[point - 1]);
}

static void order_beyond_the_stock_is_refused(void **state)
{
    (void)state;
    struct op op;
    put_item(2, 0);
    op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", 3, 0));
    assert_int_equal(op.answer.problem, PROBLEM_SOLD_OUT);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 2);
}

static void order_of_an_unknown_item_is_not_found(void **state)
{
    (void)state;
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "9", "u1", 1, 0)), 404);
    assert_int_equal(run(&op, OP_PAY_ORDER, "nonesuch", 0), 404);
    assert_int_equal(run(&op, OP_CANCEL_ORDER, "nonesuch", 0), 404);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "9", "", 1, 0)), 404);
}

static void order_whose_price_overflows_is_refused(void **state)
{
    (void)state;
    struct op op;
    op_put_item(&op, "1", 1000, "");
    op.price = INT64_MAX / 2;
    assert_int_equal(op_run(rig.service, &op), 200);
    op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", 3, 0));
    assert_int_equal(op.answer.problem, PROBLEM_OUT_OF_RANGE);
}

static void balance_that_overflows_is_refused(void **state)
{
    (void)state;
    struct op op;
    put_account("rich", INT64_MAX - 5);
    put_account("other", 100);
    op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "rich", "", 6, 0));
    assert_int_equal(op.answer.problem, PROBLEM_OUT_OF_RANGE);
    op_run(rig.service, op_make(&op, OP_TRANSFER, "other", "rich", 6, 0));
    assert_int_equal(op.answer.problem, PROBLEM_OUT_OF_RANGE);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "other", "balance"), 100);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "rich", "", 5, 1)), 201);
}

static void *no_memory(void *at, size_t size)
{
    (void)at;
    (void)size;
    return NULL;
}

static void nothing_is_sold_without_memory_for_the_answer(void **state)
{
    (void)state;
    struct op op, refused;
    put_item(10, 0);
    op_order(&refused, 0);
    refused.answer.body = NULL;
    refused.answer.body_room = 0;
    answer_realloc = no_memory;
    op_run(rig.service, &refused);
    answer_realloc = realloc;
    assert_int_equal(refused.answer.problem, PROBLEM_UNAVAILABLE);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 10);
    assert_int_equal(op_run(rig.service, op_order(&op, 0)), 201);
    assert_false(op.answer.replayed);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 9);
    assert_true(audit_is_clean(rig.service));
}

/* -- per user --------------------------------------------------------------------------------- */

/* All others queue in the lane behind the first, so they form one batch. */
static void run_as_a_batch(struct op *ops, size_t n)
{
    gate_set(0, OP_ACQUIRED, ops[0].request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, &ops[1], n - 1);
    gate_open(0);
    ops_wait(ops, n);
    for (size_t i = 2; i < n; i++) /* one commit */
        assert_int_equal(ops[i].point_us[OP_COMMITTED], ops[1].point_us[OP_COMMITTED]);
}

static void user_limit_counts_orders_of_the_same_batch(void **state)
{
    (void)state;
    enum { N = 12 };
    static struct op ops[N];
    put_item(100, 3);
    op_make(&ops[0], OP_PLACE_ORDER, "1", "other", 1, 0);
    for (int i = 1; i < N; i++)
        op_order(&ops[i], i);
    run_as_a_batch(ops, N);
    assert_int_equal(ops_count(&ops[1], N - 1, 201), 3);
    assert_int_equal(ops_count_problem(&ops[1], N - 1, PROBLEM_USER_LIMIT), N - 1 - 3);
}

/* The buyers, in turn, already have none, one, two or all three of their pieces. */
static void user_limit_counts_what_each_buyer_of_a_batch_had(void **state)
{
    (void)state;
    enum { N = 12 };
    static struct op ops[N];
    char buyer[8];
    put_item(100, 3);
    for (int i = 0; i < N; i++) {
        snprintf(buyer, sizeof buyer, "b%d", i);
        if (i % 4 > 0)
            assert_int_equal(
                op_run(rig.service, op_make(&ops[0], OP_PLACE_ORDER, "1", buyer, i % 4, i)), 201);
    }
    for (int i = 0; i < N; i++) {
        snprintf(buyer, sizeof buyer, "b%d", i);
        op_make(&ops[i], OP_PLACE_ORDER, "1", buyer, 1, N + i);
    }
    run_as_a_batch(ops, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(i % 4 < 3 ? PROBLEM_NONE : PROBLEM_USER_LIMIT, ops[i].answer.problem);
}

static void user_limit_counts_earlier_orders_until_they_are_given_back(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(100, 2);
    order(2, 0, id);
    op_run(rig.service, op_order(&op, 1));
    assert_int_equal(op.answer.problem, PROBLEM_USER_LIMIT);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u2", 2, 2)), 201);
    assert_int_equal(run(&op, OP_CANCEL_ORDER, id, 3), 201);
    order(2, 4, id);
}

/* -- payment and cancellation ------------------------------------------------------------------ */

static void payment_debits_the_buyer_once(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(10, 0);
    put_account("u1", 1000);
    order(2, 0, id);
    assert_int_equal(run(&op, OP_PAY_ORDER, id, 1), 201);
    assert_int_equal(answer_number(&op, "balance_after"), 800);
    state_is(id, "paid");
    run(&op, OP_PAY_ORDER, id, 2); /* under another key */
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    run(&op, OP_CANCEL_ORDER, id, 3);
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), 800);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 8);
    assert_true(audit_is_clean(rig.service));
}

static void payment_beyond_the_balance_is_refused(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(10, 0);
    put_account("u1", 199);
    order(2, 0, id);
    run(&op, OP_PAY_ORDER, id, 1);
    assert_int_equal(op.answer.problem, PROBLEM_FUNDS);
    state_is(id, "reserved");
    put_account("u1", 200);
    assert_int_equal(run(&op, OP_PAY_ORDER, id, 2), 201);
    assert_true(audit_is_clean(rig.service));
}

static void payment_without_an_account_is_not_found(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(10, 0);
    order(1, 0, id);
    assert_int_equal(run(&op, OP_PAY_ORDER, id, 1), 404);
}

static void an_expired_order_is_neither_paid_nor_cancelled(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    op_put_item(&op, "1", 10, "");
    op.reserve_s = 0; /* expires at once; the task runs later */
    assert_int_equal(op_run(rig.service, &op), 200);
    put_account("u1", 1000);
    order(1, 0, id);
    run(&op, OP_PAY_ORDER, id, 1);
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    run(&op, OP_CANCEL_ORDER, id, 2);
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), 1000);
    assert_true(audit_is_clean(rig.service));
}

static void cancellation_returns_the_stock_once(void **state)
{
    (void)state;
    enum { N = 8 };
    static struct op ops[N];
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(10, 0);
    put_account("u1", 1000);
    order(4, 0, id);
    for (int i = 0; i < N; i++)
        op_make(&ops[i], OP_CANCEL_ORDER, id, "", 0, i);
    ops_run(rig.service, ops, N);
    assert_int_equal(ops_count(ops, N, 201), 1);
    assert_int_equal(ops_count_problem(ops, N, PROBLEM_ORDER_CLOSED), N - 1);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 10);
    state_is(id, "cancelled");
    run(&op, OP_PAY_ORDER, id, 99); /* late */
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), 1000);
    assert_true(audit_is_clean(rig.service));
}

static void of_payment_and_cancellation_at_once_one_wins(void **state)
{
    (void)state;
    enum { N = 20 };
    static struct op ops[2 * N];
    char ids[N][DB_ID_MAX + 1];
    put_item(N, 0);
    put_account("u1", 100 * N);
    for (int i = 0; i < N; i++) {
        order(1, i, ids[i]);
        op_make(&ops[2 * i], OP_PAY_ORDER, ids[i], "", 0, i);
        op_make(&ops[2 * i + 1], OP_CANCEL_ORDER, ids[i], "", 0, i);
    }
    ops_run(rig.service, ops, 2 * N);
    int paid = 0;
    for (int i = 0; i < N; i++) {
        assert_int_equal(ops_count(&ops[2 * i], 2, 201), 1);
        paid += ops[2 * i].answer.status == 201;
    }
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), N - paid);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), 100 * (N - paid));
    assert_true(audit_is_clean(rig.service));
}

static void order_of_a_sale_that_was_reset_is_closed(void **state)
{
    (void)state;
    struct op op;
    char id[DB_ID_MAX + 1];
    put_item(10, 0);
    put_account("u1", 1000);
    order(4, 0, id);
    put_item(5, 0);
    run(&op, OP_CANCEL_ORDER, id, 1);
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    run(&op, OP_PAY_ORDER, id, 2);
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 5);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "sold"), 0);
    assert_true(audit_is_clean(rig.service));
}

/* Every rule, under a lock and under each guard of the store. These take other paths in the code:
 * in the transaction, in one statement, or again after a conflict. */
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
        cmocka_unit_test_setup_teardown(order_says_what_it_did, start, rig_clear),
        cmocka_unit_test_setup_teardown(user_limit_counts_what_each_buyer_of_a_batch_had, start,
                                        rig_clear),
        cmocka_unit_test_setup_teardown(user_limit_counts_orders_of_the_same_batch, start,
                                        rig_clear),
        RULE(order_beyond_the_stock_is_refused),
        RULE(order_of_an_unknown_item_is_not_found),
        RULE(order_whose_price_overflows_is_refused),
        RULE(balance_that_overflows_is_refused),
        RULE(nothing_is_sold_without_memory_for_the_answer),
        RULE(user_limit_counts_earlier_orders_until_they_are_given_back),
        RULE(payment_debits_the_buyer_once),
        RULE(payment_beyond_the_balance_is_refused),
        RULE(payment_without_an_account_is_not_found),
        RULE(an_expired_order_is_neither_paid_nor_cancelled),
        RULE(cancellation_returns_the_stock_once),
        RULE(of_payment_and_cancellation_at_once_one_wins),
        RULE(order_of_a_sale_that_was_reset_is_closed),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
