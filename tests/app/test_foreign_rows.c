/* Another program may have written any values into the store. An operation on such rows is answered
 * and writes nothing inconsistent, and the service goes on. */
#include "service_rig.h"
#include "tests.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const guards[] = {"mutex", "sql-version", "sql-row", "sql-atomic"};
enum { GUARDS = sizeof guards / sizeof guards[0] };

static int number;

static int start(void **state)
{
    (void)state;
    rig_reset("mutex");
    return rig_start();
}

/* %s: id */
static void by_hand(const char *sql, const char *id)
{
    sqlite3 *handle;
    char statement[300], *message = NULL;
    snprintf(statement, sizeof statement, sql, id);
    assert_int_equal(sqlite3_open(rig.config.db + strlen("sqlite:"), &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 10000);
    sqlite3_exec(handle, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    if (sqlite3_exec(handle, statement, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", statement, message);
    sqlite3_close(handle);
}

static void make(const char *id, const char *guard)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, id, 10, guard)), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, id, 1000, guard)), 200);
}

static int ask(enum op_kind kind, const char *id, const char *other, int64_t amount)
{
    struct op op;
    int status = op_run(rig.service, op_make(&op, kind, id, other, amount, ++number));
    return status;
}

/* An order of one piece of the item, by the user of the same name. */
static void order_one(const char *id, char ret[DB_ID_MAX + 1])
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, id, id, 1, ++number)), 201);
    assert_true(answer_text(&op, "order_id", ret, DB_ID_MAX + 1));
}

/* The operation is answered 409 or 503, under each guard, and the service goes on. */
static void refused(enum op_kind kind, const char *sql, int64_t amount)
{
    for (int i = 0; i < GUARDS; i++) {
        char order[DB_ID_MAX + 1];
        make("x", guards[i]);
        make("y", guards[i]);
        order_one("x", order);
        bool of_order = kind == OP_PAY_ORDER || kind == OP_CANCEL_ORDER;
        by_hand(sql, strstr(sql, "orders") != NULL ? order : "x");
        int status = of_order ? ask(kind, order, "", 0)
                              : ask(kind, kind == OP_TRANSFER ? "y" : "x", "x", amount);
        if (status != 409 && status != 503)
            fail_msg("%s under %s: %d", sql, guards[i], status);
        assert_int_equal(ask(OP_CHANGE_BALANCE, "y", "", 1), 201);
    }
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

TEST_THAT(stock_below_zero_takes_nothing_back)
{
    refused(OP_CANCEL_ORDER, "UPDATE items SET stock = -5 WHERE id = '%s'", 0);
    refused(OP_CANCEL_ORDER, "UPDATE items SET stock = 9223372036854775807 WHERE id = '%s'", 0);
}

TEST_THAT(balance_below_zero_gets_no_transfer_that_leaves_it_there)
{
    refused(OP_TRANSFER, "UPDATE accounts SET balance = -100 WHERE id = '%s'", 50);
    refused(OP_TRANSFER, "UPDATE accounts SET balance = 9223372036854775807 WHERE id = '%s'", 50);
}

TEST_THAT(order_that_costs_less_than_nothing_is_not_paid)
{
    refused(OP_PAY_ORDER, "UPDATE orders SET amount = -9223372036854775807 WHERE id = '%s'", 0);
    refused(OP_PAY_ORDER, "UPDATE orders SET amount = -9223372036854775808 WHERE id = '%s'", 0);
}

TEST_THAT(order_of_less_than_nothing_is_not_given_back_below_zero)
{
    refused(OP_CANCEL_ORDER, "UPDATE orders SET quantity = -100 WHERE id = '%s'", 0);
    refused(OP_CANCEL_ORDER, "UPDATE orders SET quantity = -9223372036854775808 WHERE id = '%s'",
            0);
}

TEST_THAT(reservation_beyond_all_time_is_not_made)
{
    refused(OP_PLACE_ORDER, "UPDATE items SET reserve_s = 9223372036854775807 WHERE id = '%s'", 1);
}

/* A stored order with a negative quantity leaves room for more. */
TEST_THAT(limit_of_a_user_is_counted_without_wrapping)
{
    struct op op;
    char order[DB_ID_MAX + 1];
    op_put_item(&op, "l", 10, "mutex");
    op.per_user_limit = 3;
    assert_int_equal(op_run(rig.service, &op), 200);
    order_one("l", order);
    by_hand("UPDATE orders SET quantity = -9223372036854775808 WHERE id = '%s'", order);
    assert_int_equal(ask(OP_PLACE_ORDER, "l", "l", 1), 201);
    by_hand("UPDATE orders SET quantity = 9223372036854775807 WHERE id = '%s'", order);
    int status = ask(OP_PLACE_ORDER, "l", "l", 1); /* SQLite's sum() has a limit of its own */
    assert_true(status == 409 || status == 503);
}

TEST_THAT(version_at_the_limit_is_not_raised)
{
    static const char *const tables[] = {"items", "accounts"};
    for (int i = 0; i < 2; i++) {
        char sql[120];
        const char *id = i == 0 ? "v" : "w";
        make(id, "mutex");
        snprintf(sql, sizeof sql, "UPDATE %s SET version = 9223372036854775807 WHERE id = '%%s'",
                 tables[i]);
        by_hand(sql, id);
        assert_int_equal(ask(i == 0 ? OP_PLACE_ORDER : OP_CHANGE_BALANCE, id, "u", 1), 503);
    }
}

TEST_THAT(stored_answer_without_a_status_is_told)
{
    static const char *const statuses[] = {"7", "0", "-201", "1000", "4294967497"};
    make("x", "mutex");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct op op;
        char sql[120];
        op_make(&op, OP_CHANGE_BALANCE, "x", "", -1, ++number);
        assert_int_equal(op_run(rig.service, &op), 201);
        snprintf(sql, sizeof sql, "UPDATE idempotency SET http_status = %s WHERE key = '%%s'",
                 statuses[i]);
        by_hand(sql, op.key);
        op_make(&op, OP_CHANGE_BALANCE, "x", "", -1, number);
        assert_int_equal(op_run(rig.service, &op), 500);
    }
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "x", "balance"),
                     1000 - (int)(sizeof statuses / sizeof *statuses));
}

/* The order moves after the service has looked up its item and before it reads the rows. */
TEST_THAT(order_moved_to_another_item_meanwhile_is_looked_up_again)
{
    struct op op;
    char order[DB_ID_MAX + 1];
    make("x", "mutex");
    make("z", "mutex");
    order_one("x", order);
    op_make(&op, OP_CANCEL_ORDER, order, "", 0, ++number);
    gate_set(0, OP_ACQUIRED, op.request_id);
    ops_submit(rig.service, &op, 1);
    gate_wait(0);
    by_hand("UPDATE orders SET item_id = 'z' WHERE id = '%s'", order);
    gate_open(0);
    ops_wait(&op, 1);
    assert_true(op.answer.status == 201 || op.answer.status == 409);
    assert_int_equal(rig_number(OP_GET_ITEM, "x", "stock"), 9);
}
