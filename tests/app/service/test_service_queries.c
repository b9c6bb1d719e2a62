/* Read operations, the admin's operations, and the metrics. */
#include "service_rig.h"
#include "tests.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int start(void **state)
{
    (void)state;
    rig_reset("redis-token");
    return rig_start();
}

static int run(struct op *op, enum op_kind kind, const char *id)
{
    return op_run(rig.service, op_make(op, kind, id, "", 0, 0));
}

static void text_is(const struct op *op, const char *name, const char *expected)
{
    char text[128];
    assert_true(answer_text(op, name, text, sizeof text));
    assert_string_equal(text, expected);
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

TEST_THAT(item_is_shown_as_it_was_put)
{
    struct op op, shown;
    op_put_item(&op, "1", 100, "redis-fair");
    op.price = 1999;
    op.per_user_limit = 2;
    op.reserve_s = 60;
    assert_int_equal(op_run(rig.service, &op), 200);
    assert_int_equal(run(&shown, OP_GET_ITEM, "1"), 200);
    assert_string_equal(shown.answer.body, op.answer.body);
    text_is(&shown, "id", "1");
    text_is(&shown, "guard", "redis-fair");
    assert_int_equal(answer_number(&shown, "stock"), 100);
    assert_int_equal(answer_number(&shown, "initial_stock"), 100);
    assert_int_equal(answer_number(&shown, "sold"), 0);
    assert_int_equal(answer_number(&shown, "price"), 1999);
    assert_int_equal(answer_number(&shown, "per_user_limit"), 2);
    assert_int_equal(answer_number(&shown, "reserve_s"), 60);
    assert_true(answer_number(&shown, "version") > 0);
}

TEST_THAT(account_is_shown_as_it_was_put)
{
    struct op op, shown;
    assert_int_equal(op_run(rig.service, op_put_account(&op, "x", 12345, "")), 200);
    assert_int_equal(run(&shown, OP_GET_ACCOUNT, "x"), 200);
    assert_string_equal(shown.answer.body, op.answer.body);
    assert_int_equal(answer_number(&shown, "balance"), 12345);
    text_is(&shown, "guard", "redis-token"); /* the default, by its name */
}

TEST_THAT(what_does_not_exist_is_not_found)
{
    struct op op;
    assert_int_equal(run(&op, OP_GET_ITEM, "9"), 404);
    assert_int_equal(run(&op, OP_GET_ACCOUNT, "9"), 404);
    assert_int_equal(run(&op, OP_GET_ORDER, "9"), 404);
    assert_int_equal(run(&op, OP_AUDIT, "item:9"), 404);
}

TEST_THAT(unknown_guard_is_refused_and_nothing_put)
{
    struct op op;
    op_run(rig.service, op_put_item(&op, "1", 100, "nonesuch"));
    assert_int_equal(op.answer.problem, PROBLEM_UNKNOWN_GUARD);
    op_run(rig.service, op_put_account(&op, "x", 100, "nonesuch"));
    assert_int_equal(op.answer.problem, PROBLEM_UNKNOWN_GUARD);
    assert_int_equal(run(&op, OP_GET_ITEM, "1"), 404);
}

TEST_THAT(put_waits_for_those_who_hold_the_resource)
{
    struct op order, put, op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    op_order(&order, 1);
    gate_set(0, OP_DECIDED, order.request_id);
    ops_submit(rig.service, &order, 1);
    gate_wait(0);
    op_put_item(&put, "1", 50, "");
    put.deadline_us = now_us() + 50000;
    op_run(rig.service, &put);
    assert_int_equal(put.answer.problem, PROBLEM_LOCK_TIMEOUT);
    gate_open(0);
    ops_wait(&order, 1);
    assert_int_equal(op_run(rig.service, op_put_item(&put, "1", 50, "")), 200);
    assert_int_equal(run(&op, OP_GET_ITEM, "1"), 200);
    assert_int_equal(answer_number(&op, "stock"), 50);
    assert_int_equal(answer_number(&op, "sold"), 0); /* of the new sale */
    assert_true(audit_is_clean(rig.service));
}

/* The order, without a guard, has read the old sale. The store refuses its write by epoch. */
TEST_THAT(order_that_read_before_a_reset_is_decided_again)
{
    struct op order, put, op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "none")), 200);
    op_order(&order, 1);
    gate_set(0, OP_DECIDED, order.request_id);
    ops_submit(rig.service, &order, 1);
    gate_wait(0);
    assert_int_equal(op_run(rig.service, op_put_item(&put, "1", 50, "none")), 200);
    gate_open(0);
    ops_wait(&order, 1);
    assert_int_equal(order.answer.status, 201);
    assert_int_equal(answer_number(&order, "stock_after"), 49);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(audit_shows_each_resource_or_the_one_asked_for)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 5, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "x", 7, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "x", "", -2, 0)), 201);
    assert_int_equal(run(&op, OP_AUDIT, ""), 200);
    json_t *document = json_loads(op.answer.body, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(document, "resources")), 2);
    json_decref(document);
    free(op.answer.body);
    assert_int_equal(audit_number(rig.service, "account:x", "initial"), 7);
    assert_int_equal(audit_number(rig.service, "account:x", "current"), 5);
    assert_int_equal(audit_number(rig.service, "account:x", "ledger_sum"), -2);
}

/* Reads a list from its start, a row a page; the service says when it ends. Returns the rows. */
static json_t *read_list(enum op_kind kind, const char *id, const char *user)
{
    struct op op;
    char after[sizeof op.after] = "";
    json_t *rows = json_array();
    for (bool more = true; more;) {
        op_make(&op, kind, id, user, 0, 0);
        strcpy(op.after, after);
        op.limit = 1;
        assert_int_equal(op_run(rig.service, &op), 200);
        json_t *page = json_loads(op.answer.body, 0, NULL), *shown = json_object_get(page, "rows");
        assert_int_equal(json_array_size(shown), 1);
        json_array_extend(rows, shown);
        more = json_is_true(json_object_get(page, "more"));
        const char *next = json_string_value(json_object_get(page, "next"));
        assert_string_not_equal(next, after);
        snprintf(after, sizeof after, "%s", next);
        json_decref(page);
        free(op.answer.body);
    }
    return rows;
}

static int64_t number_in(const json_t *rows, size_t i, const char *name)
{
    return json_integer_value(json_object_get(json_array_get(rows, i), name));
}

TEST_THAT(ledger_shows_its_rows_page_by_page)
{
    struct op op;
    int64_t seen = 0;
    assert_int_equal(op_run(rig.service, op_put_account(&op, "paged", 7, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "paged", "", -2, 0)), 201);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "other", 7, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "paged", "", -1, 1)), 201);
    json_t *rows = read_list(OP_GET_LEDGER, "", "");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "resource"));
        assert_true(i == 0 || number_in(rows, i, "id") > number_in(rows, i - 1, "id"));
        seen += strcmp(name, "account:paged") == 0;
    }
    assert_int_equal(seen, 3);
    json_decref(rows);
}

TEST_THAT(statements_have_the_rows_of_one_resource)
{
    struct op op;
    static const int64_t after[] = {7, 5, 4, 9};
    assert_int_equal(op_run(rig.service, op_put_account(&op, "a", 7, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "aa", 1, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "a", "", -2, 0)), 201);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "a", "", -1, 1)), 201);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "a", 9, "")), 200);
    json_t *rows = read_list(OP_GET_ACCOUNT_LEDGER, "a", "");
    assert_int_equal(json_array_size(rows), 4); /* also those before the reset */
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(number_in(rows, i, "after"), after[i]);
    json_decref(rows);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ACCOUNT_LEDGER, "none", "", 0, 0)),
                     404);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ITEM_LEDGER, "a", "", 0, 0)), 404);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_SHOP_LEDGER, "a", "", 0, 0)), 404);
}

TEST_THAT(a_buyer_sees_own_keys_in_a_statement_and_no_other)
{
    static const char *const shown[] = {"", "mine", ""};
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_account(&op, "ann", 7, "")), 200);
    op_make(&op, OP_CHANGE_BALANCE, "ann", "", 1, 0);
    strcpy(op.caller, "ann");
    op_set_key(&op, "mine");
    assert_int_equal(op_run(rig.service, &op), 201);
    op_make(&op, OP_CHANGE_BALANCE, "ann", "", 1, 1);
    strcpy(op.caller, "anna");
    op_set_key(&op, "hers");
    assert_int_equal(op_run(rig.service, &op), 201);
    op_make(&op, OP_GET_ACCOUNT_LEDGER, "ann", "", 0, 0);
    strcpy(op.caller, "ann");
    op.own_only = true;
    op.limit = 10;
    assert_int_equal(op_run(rig.service, &op), 200);
    json_t *page = json_loads(op.answer.body, 0, NULL);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_object_get(
                                json_array_get(json_object_get(page, "rows"), i), "txn_id")),
                            shown[i]);
    json_decref(page);
    strcpy(op.caller, "bob");
    assert_int_equal(op_run(rig.service, &op), 404);
    free(op.answer.body);
}

TEST_THAT(orders_of_a_user_come_from_new_to_old)
{
    enum { ORDERS = 5 };
    struct op op;
    char ids[ORDERS][DB_ID_MAX + 1];
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 50, "")), 200);
    for (int i = 0; i < 2 * ORDERS; i++) {
        op_make(&op, OP_PLACE_ORDER, "1", i % 2 ? "other" : "mine", 1, i);
        assert_int_equal(op_run(rig.service, &op), 201);
        if (i % 2 == 0)
            assert_true(answer_text(&op, "order_id", ids[i / 2], sizeof ids[0]));
    }
    json_t *rows = read_list(OP_LIST_ORDERS, "", "mine");
    assert_int_equal(json_array_size(rows), ORDERS);
    for (size_t i = 0; i < ORDERS; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(rows, i), "order_id")),
                            ids[ORDERS - 1 - i]);
    json_decref(rows);
}

TEST_THAT(a_cursor_of_another_list_is_refused)
{
    static const struct {
        enum op_kind kind;
        const char *after;
    } bad[] = {{OP_GET_LEDGER, "1.2.3"},        {OP_GET_LEDGER, "x"},
               {OP_GET_LEDGER, "1."},           {OP_GET_LEDGER, "9223372036854775808"},
               {OP_GET_ACCOUNT_LEDGER, "1"},    {OP_GET_ACCOUNT_LEDGER, "1.2"},
               {OP_GET_ACCOUNT_LEDGER, "1..2"}, {OP_GET_ACCOUNT_LEDGER, "end"}};
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_account(&op, "a", 7, "")), 200);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        op_make(&op, bad[i].kind, "a", "", 0, 0);
        strcpy(op.after, bad[i].after);
        op.limit = 10;
        assert_int_equal(op_run(rig.service, &op), 400);
    }
}

TEST_THAT(metrics_tell_what_was_done)
{
    static const char *const lines[] = {
        "seckill_operations_total{kind=\"place-order\",outcome=\"ok\"} 1\n",
        "seckill_operations_total{kind=\"place-order\",outcome=\"sold-out\"} 1\n",
        "seckill_operations_total{kind=\"place-order\",outcome=\"replayed\"} 1\n",
        "seckill_operations_total{kind=\"put-item\",outcome=\"ok\"} 1\n",
        "seckill_lock_wait_seconds_count{guard=\"redis-token\"} 2\n",
        "seckill_lock_hold_seconds_count{guard=\"redis-token\"} 2\n",
        "seckill_locks_total{guard=\"redis-token\",event=\"grant\"} 2\n",
        "seckill_batch_operations_count 2\n",
        "seckill_step_seconds_count{step=\"queue\"} 1\n",
        "seckill_step_seconds_count{step=\"unlock\"} 1\n",
        "seckill_queue_operations{queue=\"writes\"} 0\n",
        "# TYPE seckill_lock_wait_seconds histogram\n",
    };
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 1, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u", 1, 0)), 201);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u", 1, 1)), 409);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u", 1, 0)), 201);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_true(rig_metrics_contain(lines[i]));
}
