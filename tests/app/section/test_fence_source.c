/* --fence-source database: a lock that grants twice or loses its fence counter cannot lose an
 * update, whether it has its own fences or not. */
#include "redis.h"
#include "service_rig.h"
#include "guard.h"
#include "tests.h"

#include <jansson.h>
#include <sqlite3.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void start(const char *guard, bool from_database)
{
    struct op op;
    redis_do(rig.redis, "FLUSHALL");
    rig_reset(guard);
    rig.config.fence_database = from_database;
    rig.config.watchdog = false; /* a holder does not learn its loss */
    rig.config.lanes = false;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
}

/* A stands at a point under the lock; the lock server restarts empty and grants it to B. */
static void granted_twice(enum op_point point, struct op *a, struct op *b)
{
    op_order(a, 1);
    gate_set(0, point, a->request_id);
    ops_submit(rig.service, a, 1);
    gate_wait(0);
    assert_true(WIFSIGNALED(sandbox_signal(rig.redis, SIGKILL)));
    assert_int_equal(sandbox_restart(rig.redis), 0);
    while (op_run(rig.service, op_order(b, 2)) != 201) /* its old connection is dead */
        assert_int_equal(b->answer.problem, PROBLEM_UNAVAILABLE);
    gate_open(0);
    ops_wait(a, 1);
}

static void late_write_after_a_second_grant_is_refused(void **state)
{
    struct op a, b;
    start(*state, true);
    granted_twice(OP_DECIDED, &a, &b);
    assert_int_equal(a.answer.problem, PROBLEM_LOCK_LOST);
    assert_true(answer_number(&b, "fence") > 0);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 99);
    assert_true(audit_is_clean(rig.service));
    assert_int_equal(op_run(rig.service, op_order(&a, 1)), 201); /* its key is free */
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 98);
    assert_true(audit_is_clean(rig.service));
}

static void late_write_after_a_second_grant_loses_an_update_without(void **state)
{
    struct op a, b;
    start(*state, false);
    granted_twice(OP_DECIDED, &a, &b);
    assert_int_equal(a.answer.status, 201);
    assert_int_equal(answer_number(&a, "fence"), 0);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 99);
    assert_int_equal(audit_number(rig.service, "item:1", "lost_updates"), 1);
}

/* A writes between B's read and B's write. B, the newer holder, must read again. */
static void write_between_anothers_read_and_write_is_not_overwritten(void **state)
{
    struct op a, b;
    start(*state, true);
    op_order(&a, 1);
    op_order(&b, 2);
    gate_set(0, OP_DECIDED, a.request_id);
    gate_set(1, OP_DECIDED, b.request_id);
    ops_submit(rig.service, &a, 1);
    gate_wait(0);
    redis_do(rig.redis, "FLUSHALL");
    ops_submit(rig.service, &b, 1);
    gate_wait(1);
    gate_open(0);
    ops_wait(&a, 1);
    gate_open(1);
    ops_wait(&b, 1);
    assert_int_equal(a.answer.status, 201);
    assert_int_equal(b.answer.status, 201);
    assert_int_equal(answer_number(&b, "stock_after"), 98);
    assert_true(audit_is_clean(rig.service));
}

static void lost_count_of_the_lock_server_costs_no_refusal(void **state)
{
    struct op op;
    start(*state, true);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(op_run(rig.service, op_order(&op, i)), 201);
        assert_int_equal(answer_number(&op, "fence"), i + 1);
        redis_do(rig.redis, "FLUSHALL");
    }
    assert_true(audit_is_clean(rig.service));
}

static void stop_and_start_again(bool from_database)
{
    rig_stop();
    rig.config.fence_database = from_database;
    assert_int_equal(rig_start(), 0);
}

/* The store's counter starts above the lock server's fences. After the change back one order is
 * refused, then all goes on. */
static void source_can_be_changed_and_changed_back(void **state)
{
    struct op op;
    start(*state, false);
    redis_do(rig.redis, "SET {lock:item:1}:fence 4000000000000700"); /* above the clock */
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    assert_int_equal(answer_number(&op, "fence"), 4000000000000701);
    stop_and_start_again(true);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(op_run(rig.service, op_order(&op, i)), 201);
        assert_int_equal(answer_number(&op, "fence"), 4000000000000700 + i);
    }
    redis_do(rig.redis, "SET {lock:item:1}:fence 5"); /* lower than the store's */
    stop_and_start_again(false);
    op_run(rig.service, op_order(&op, 5));
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(op_run(rig.service, op_order(&op, 5)), 201);
    assert_true(audit_is_clean(rig.service));
}

/* Changes the guard of all rows as seckilld.8 describes: while no instance runs. */
static void move_all_to(const char *guard)
{
    sqlite3 *handle;
    char *sql = sqlite3_mprintf("UPDATE items SET guard = %Q; UPDATE accounts SET guard = %Q;",
                                guard, guard);
    assert_int_equal(sqlite3_open(rig.config.db + strlen("sqlite:"), &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    sqlite3_close(handle);
}

/* ZooKeeper makes its own fences; no client can raise them to the store's. */
static void count_that_cannot_be_raised_is_told_with_the_way_out(void **state)
{
    struct sandbox_zookeeper zookeeper;
    struct op op;
    assert_int_equal(sandbox_zookeeper(rig.sandbox, 1, &zookeeper), 0);
    start("redis-token", false);
    redis_do(rig.redis, "SET {lock:item:1}:fence 1125899906842624");
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    rig_stop();
    move_all_to(*state);
    snprintf(rig.config.zookeeper, sizeof rig.config.zookeeper, "%s", zookeeper.url);
    assert_int_equal(rig_start(), 0);
    do /* until it has a session */
        op_run(rig.service, op_order(&op, 2));
    while (op.answer.problem == PROBLEM_UNAVAILABLE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(op.answer.problem, PROBLEM_LOCK_LOST);
        assert_non_null(strstr(op.answer.body, "--fence-source database"));
        op_run(rig.service, op_order(&op, 2));
    }
    stop_and_start_again(true);
    do
        op_run(rig.service, op_order(&op, 2));
    while (op.answer.problem == PROBLEM_UNAVAILABLE);
    assert_int_equal(op.answer.status, 201);
    assert_true(answer_number(&op, "fence") > 1125899906842624);
    assert_true(audit_is_clean(rig.service));
}

static void orders_and_accounts_are_fenced_too(void **state)
{
    struct op op;
    char paid[DB_ID_MAX + 1], cancelled[DB_ID_MAX + 1];
    start(*state, true);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 1000, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u2", 1000, "")), 200);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    assert_true(answer_text(&op, "order_id", paid, sizeof paid));
    assert_int_equal(op_run(rig.service, op_order(&op, 2)), 201);
    assert_true(answer_text(&op, "order_id", cancelled, sizeof cancelled));

    assert_int_equal(op_run(rig.service, op_make(&op, OP_PAY_ORDER, paid, "", 0, 3)), 201);
    assert_int_equal(answer_number(&op, "fence"), 1); /* the account's first */
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CANCEL_ORDER, cancelled, "", 0, 4)), 201);
    assert_true(answer_number(&op, "fence") > 2); /* the item's, after two orders */
    assert_int_equal(op_run(rig.service, op_make(&op, OP_TRANSFER, "u1", "u2", 10, 5)), 201);
    op_make(&op, OP_CHANGE_BALANCE, "u1", "", -10, 6);
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_int_equal(answer_number(&op, "fence"), 3);
    assert_true(audit_is_clean(rig.service));
}

/* A decides to pay and loses its lock; B cancels the order; then A writes. */
static void late_payment_does_not_undo_a_cancellation(void **state)
{
    struct op op, payment;
    char id[DB_ID_MAX + 1];
    start(*state, true);
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 1000, "")), 200);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    assert_true(answer_text(&op, "order_id", id, sizeof id));
    op_make(&payment, OP_PAY_ORDER, id, "", 0, 2);
    gate_set(0, OP_DECIDED, payment.request_id);
    ops_submit(rig.service, &payment, 1);
    gate_wait(0);
    redis_do(rig.redis, "FLUSHALL");
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CANCEL_ORDER, id, "", 0, 3)), 201);
    gate_open(0);
    ops_wait(&payment, 1);
    assert_int_equal(payment.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(rig_number(OP_GET_ACCOUNT, "u1", "balance"), 1000);
    assert_true(audit_is_clean(rig.service));
}

static void source_is_told(void **state)
{
    struct op op;
    size_t i;
    start(*state, true);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    assert_true(rig_metrics_contain("seckill_fence_source{source=\"database\"} 1\n"));
    assert_true(rig_metrics_contain("seckill_fences_from_database_total 1\n"));
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GUARDS, "", "", 0, 0)), 200);
    json_t *document = json_loads(op.answer.body, 0, NULL), *guard;
    assert_string_equal(json_string_value(json_object_get(document, "fence_source")), "database");
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *kind = json_string_value(json_object_get(guard, "kind"));
        assert_string_equal(json_string_value(json_object_get(guard, "fence_source")),
                            strcmp(kind, "lock") == 0 ? "database" : "none");
    }
    json_decref(document);
    free(op.answer.body);
}

#define UNDER(name, guard_name, guard)                                                             \
    {                                                                                              \
#name "_" #guard_name, name, NULL, rig_clear, guard                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNDER(late_write_after_a_second_grant_is_refused, redis_set, "redis-set"),
        UNDER(late_write_after_a_second_grant_is_refused, redis_setnx, "redis-setnx"),
        UNDER(late_write_after_a_second_grant_is_refused, redis_token, "redis-token"),
        UNDER(late_write_after_a_second_grant_is_refused, redis_reentrant, "redis-reentrant"),
        UNDER(late_write_after_a_second_grant_is_refused, redis_fair, "redis-fair"),
        UNDER(late_write_after_a_second_grant_loses_an_update_without, redis_set, "redis-set"),
        UNDER(write_between_anothers_read_and_write_is_not_overwritten, redis_set, "redis-set"),
        UNDER(lost_count_of_the_lock_server_costs_no_refusal, redis_token, "redis-token"),
        UNDER(source_can_be_changed_and_changed_back, redis_token, "redis-token"),
        UNDER(count_that_cannot_be_raised_is_told_with_the_way_out, zk_sequential, "zk-sequential"),
        UNDER(orders_and_accounts_are_fenced_too, redis_set, "redis-set"),
        UNDER(late_payment_does_not_undo_a_cancellation, redis_set, "redis-set"),
        UNDER(source_is_told, redis_token, "redis-token"),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
