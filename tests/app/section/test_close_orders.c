/* The scheduled task: unpaid orders are closed and their stock returned, once, on one instance. */
#include "business.h"
#include "redis.h"
#include "service_rig.h"
#include "service_private.h"
#include "tests.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <string.h>

enum { ORDERS = 20 };

static void put_item(int64_t reserve_s)
{
    struct op op;
    op_put_item(&op, "1", 100, "");
    op.reserve_s = reserve_s;
    assert_int_equal(op_run(rig.service, &op), 200);
}

static void order(int n, char (*ret_ids)[DB_ID_MAX + 1])
{
    struct op op;
    for (int i = 0; i < n; i++) {
        op_make(&op, OP_PLACE_ORDER, "1", "u1", 2, i);
        assert_int_equal(op_run(rig.service, &op), 201);
        assert_true(answer_text(&op, "order_id", ret_ids[i], DB_ID_MAX + 1));
    }
}

static bool has_state(const char *id, const char *expected)
{
    struct op op;
    char text[32] = "";
    op_run(rig.service, op_make(&op, OP_GET_ORDER, id, "", 0, 0));
    return answer_text(&op, "state", text, sizeof text) && strcmp(text, expected) == 0;
}

static void wait_until_closed(int n, char (*ids)[DB_ID_MAX + 1])
{
    for (int i = 0; i < n; i++) {
        while (!has_state(ids[i], "closed"))
            sched_yield();
    }
}

static void expired_order_is_closed_and_late_payment_refused(void **state)
{
    struct op op;
    char ids[ORDERS][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 20;
    assert_int_equal(rig_start(), 0);
    put_item(0);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 100000, "")), 200);
    order(ORDERS, ids);
    wait_until_closed(ORDERS, ids);
    assert_int_equal(rig_stock(), 100);
    op_run(rig.service, op_make(&op, OP_PAY_ORDER, ids[0], "", 0, 0));
    assert_int_equal(op.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_int_equal(atomic_load(&rig.service->counters.closed), ORDERS);
    assert_true(audit_is_clean(rig.service));
}

static void order_with_time_left_and_paid_order_stay(void **state)
{
    struct op op;
    char ids[2][DB_ID_MAX + 1], expired[1][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 20;
    assert_int_equal(rig_start(), 0);
    put_item(900);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 100000, "")), 200);
    order(2, ids);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PAY_ORDER, ids[1], "", 0, 0)), 201);
    op_put_item(&op, "2", 1, "");
    op.reserve_s = 0;
    assert_int_equal(op_run(rig.service, &op), 200);
    op_make(&op, OP_PLACE_ORDER, "2", "u1", 1, 0);
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_true(answer_text(&op, "order_id", expired[0], DB_ID_MAX + 1));
    wait_until_closed(1, expired); /* the task has run */
    assert_true(has_state(ids[0], "reserved"));
    assert_true(has_state(ids[1], "paid"));
    assert_int_equal(rig_stock(), 96);
}

static void order_of_a_sale_that_was_reset_is_closed_without_stock(void **state)
{
    char ids[1][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 200;
    assert_int_equal(rig_start(), 0);
    put_item(1);
    order(1, ids);
    put_item(900);
    wait_until_closed(1, ids);
    assert_int_equal(rig_stock(), 100);
    assert_true(audit_is_clean(rig.service));
}

/* -- locks that cannot be acquired ------------------------------------------------------------- */

static void order_one(const char *item, int64_t reserve_s, const char *guard, char *ret_id)
{
    struct op op;
    op_put_item(&op, item, 100, guard);
    op.reserve_s = reserve_s;
    assert_int_equal(op_run(rig.service, &op), 200);
    op_make(&op, OP_PLACE_ORDER, item, "u1", 1, 0);
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_true(answer_text(&op, "order_id", ret_id, DB_ID_MAX + 1));
}

static void dead_lock_server_holds_up_no_orders_of_other_guards(void **state)
{
    (void)state;
    char ids[2][DB_ID_MAX + 1];
    rig_reset("sql-row");
    rig.config.close_orders_ms = 200;
    assert_int_equal(rig_start(), 0);
    order_one("older", 1, "redis-token", ids[0]);
    assert_true(WIFSIGNALED(sandbox_signal(rig.redis, SIGKILL)));
    order_one("younger", 1, "sql-row", ids[1]);
    wait_until_closed(1, &ids[1]);
    assert_true(has_state(ids[0], "reserved"));
    assert_int_equal(sandbox_restart(rig.redis), 0);
    wait_until_closed(1, &ids[0]);
    assert_true(audit_is_clean(rig.service));
}

/* More orders than one read returns, of an item whose lock another client holds. */
static void orders_of_a_stuck_item_do_not_starve_younger_ones(void **state)
{
    enum { STUCK = DB_EXPIRED_MAX + 10 };
    static struct op ops[STUCK];
    char id[1][DB_ID_MAX + 1];
    rig_reset(*state); /* the task does not run yet */
    assert_int_equal(rig_start(), 0);
    struct op op;
    op_put_item(&op, "stuck", STUCK, "");
    op.reserve_s = 1;
    assert_int_equal(op_run(rig.service, &op), 200);
    for (int i = 0; i < STUCK; i++)
        op_make(&ops[i], OP_PLACE_ORDER, "stuck", "u1", 1, i);
    ops_run(rig.service, ops, STUCK);
    assert_int_equal(ops_count(ops, STUCK, 201), STUCK);
    rig_stop();
    assert_int_equal(redis_do(rig.redis, "SET lock:item:stuck another NX PX 600000"), 1);
    rig.config.close_orders_ms = 100;
    assert_int_equal(rig_start(), 0);
    order_one("younger", 1, "sql-row", id[0]);
    int64_t begin_us = now_us();
    wait_until_closed(1, id);
    assert_true(now_us() - begin_us < 60000000); /* much less than a second for each order */
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:stuck"), 1);
    while (atomic_load(&rig.service->counters.closed) < STUCK + 1)
        sched_yield();
    assert_true(audit_is_clean(rig.service));
}

static void stuck_order_holds_up_no_others_of_its_item(void **state)
{
    char ids[2][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 100;
    assert_int_equal(rig_start(), 0);
    put_item(1);
    order(2, ids);
    assert_int_equal(redis_do(rig.redis, "SET lock:order:%s another NX PX 600000", ids[0]), 1);
    wait_until_closed(1, &ids[1]);
    assert_true(has_state(ids[0], "reserved"));
    assert_int_equal(redis_do(rig.redis, "DEL lock:order:%s", ids[0]), 1);
    wait_until_closed(1, &ids[0]);
    assert_true(audit_is_clean(rig.service));
}

/* -- conflicts ----------------------------------------------------------------------------------
 */

/* With the same key the audit would count the closing twice. */
static void no_client_can_take_the_name_of_a_closing(void **state)
{
    struct op op;
    char ids[1][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 20;
    assert_int_equal(rig_start(), 0);
    put_item(1);
    order(1, ids);
    op_order(&op, 1);
    snprintf(op.key, sizeof op.key, "close:%s", ids[0]);
    assert_int_equal(op_run(rig.service, &op), 201);
    wait_until_closed(1, ids);
    assert_int_equal(audit_number(rig.service, "item:1", "duplicates"), 0);
    assert_true(audit_is_clean(rig.service));
}

/* The two run under different guards, so neither excludes the other. */
static void payment_during_a_change_of_guard_does_not_undo_the_closing(void **state)
{
    struct op op, payment;
    char ids[1][DB_ID_MAX + 1];
    rig_reset("redis-token");
    rig.config.close_orders_ms = 20;
    assert_int_equal(rig_start(), 0);
    put_item(2);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 100000, "")), 200);
    order(1, ids);
    op_make(&payment, OP_PAY_ORDER, ids[0], "", 0, 0);
    gate_set(0, OP_DECIDED, payment.request_id);
    ops_submit(rig.service, &payment, 1);
    gate_wait(0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, *state)), 200);
    wait_until_closed(1, ids);
    gate_open(0);
    ops_wait(&payment, 1);
    assert_int_equal(payment.answer.problem, PROBLEM_ORDER_CLOSED);
    assert_true(has_state(ids[0], "closed"));
    op_run(rig.service, op_make(&op, OP_GET_ACCOUNT, "u1", "", 0, 0));
    assert_int_equal(answer_number(&op, "balance"), 100000);
    assert_int_equal(rig_stock(), 100);
    assert_true(audit_is_clean(rig.service));
}

/* Two instances on one file. The second sees an order that the first is closing. */
static void two_instances_close_each_order_once(void **state)
{
    struct service *other;
    struct config config;
    char ids[ORDERS][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.db_shared = true;
    rig.config.close_orders_ms = 10;
    assert_int_equal(rig_start(), 0);
    config = rig.config;
    snprintf(config.instance, sizeof config.instance, "other");
    put_item(1);
    order(ORDERS, ids);
    assert_int_equal(service_open(&config, &business, &rig.seams, &other), 0);
    wait_until_closed(ORDERS, ids);
    service_close(other);
    assert_int_equal(rig_stock(), 100);
    assert_int_equal(audit_number(rig.service, "item:1", "duplicates"), 0);
    assert_true(audit_is_clean(rig.service));
}

static void task_of_another_instance_is_left_alone(void **state)
{
    char ids[1][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 10;
    assert_int_equal(redis_do(rig.redis, "SET lock:task:close-orders another NX PX 60000"), 1);
    struct redis_watch *watch = redis_watch_open(rig.redis);
    assert_non_null(watch);
    assert_int_equal(rig_start(), 0);
    put_item(0);
    order(1, ids);
    assert_true(redis_watch_sees(watch, "lock:task:close-orders", 10000));
    assert_true(redis_watch_sees(watch, "lock:task:close-orders", 10000)); /* tried twice */
    redis_watch_close(watch);
    assert_true(has_state(ids[0], "reserved"));
    redis_do(rig.redis, "DEL lock:task:close-orders");
    wait_until_closed(1, ids);
}

/* Two orders have expired; the task loses its lock to another instance during the first. */
static void task_that_loses_its_lock_leaves_the_rest_to_who_has_it(void **state)
{
    char ids[2][DB_ID_MAX + 1];
    rig_reset(*state);
    rig.config.close_orders_ms = 10;
    rig.config.lease_ms = 300; /* the watchdog checks after a third of it */
    assert_int_equal(redis_do(rig.redis, "SET lock:task:close-orders another"), 1);
    assert_int_equal(rig_start(), 0);
    put_item(0);
    order(2, ids);
    gate_set(0, OP_READ, ""); /* only the task's operations have no request id */
    redis_do(rig.redis, "DEL lock:task:close-orders");
    gate_wait(0);
    redis_do(rig.redis, "SET lock:task:close-orders another");
    while (!rig_metrics_contain("seckill_locks_total{guard=\"redis-token\",event=\"lost\"} 1"))
        sched_yield();
    gate_open(0);
    while (atomic_load(&rig.service->counters.closed) == 0)
        sched_yield();
    assert_int_equal(atomic_load(&rig.service->counters.closed), 1);
    assert_true(has_state(ids[1], "reserved"));
    redis_do(rig.redis, "DEL lock:task:close-orders");
    wait_until_closed(2, ids);
}

#define UNDER(name, guard_name, guard)                                                             \
    {                                                                                              \
#name "_" #guard_name, name, NULL, rig_clear, guard                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNDER(expired_order_is_closed_and_late_payment_refused, redis_token, "redis-token"),
        UNDER(expired_order_is_closed_and_late_payment_refused, sql_row, "sql-row"),
        UNDER(expired_order_is_closed_and_late_payment_refused, sql_atomic, "sql-atomic"),
        UNDER(expired_order_is_closed_and_late_payment_refused, sql_version, "sql-version"),
        UNDER(order_with_time_left_and_paid_order_stay, redis_token, "redis-token"),
        UNDER(order_of_a_sale_that_was_reset_is_closed_without_stock, redis_token, "redis-token"),
        UNDER(dead_lock_server_holds_up_no_orders_of_other_guards, redis_token, NULL),
        UNDER(orders_of_a_stuck_item_do_not_starve_younger_ones, redis_token, "redis-token"),
        UNDER(stuck_order_holds_up_no_others_of_its_item, redis_token, "redis-token"),
        UNDER(no_client_can_take_the_name_of_a_closing, redis_token, "redis-token"),
        UNDER(payment_during_a_change_of_guard_does_not_undo_the_closing, to_mutex, "mutex"),
        UNDER(payment_during_a_change_of_guard_does_not_undo_the_closing, to_sql_row, "sql-row"),
        UNDER(payment_during_a_change_of_guard_does_not_undo_the_closing, to_sql_atomic,
              "sql-atomic"),
        UNDER(payment_during_a_change_of_guard_does_not_undo_the_closing, to_sql_version,
              "sql-version"),
        UNDER(two_instances_close_each_order_once, redis_token, "redis-token"),
        UNDER(two_instances_close_each_order_once, sql_row, "sql-row"),
        UNDER(two_instances_close_each_order_once, sql_atomic, "sql-atomic"),
        UNDER(two_instances_close_each_order_once, sql_version, "sql-version"),
        UNDER(task_of_another_instance_is_left_alone, redis_token, "redis-token"),
        UNDER(task_that_loses_its_lock_leaves_the_rest_to_who_has_it, redis_token, "redis-token"),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
