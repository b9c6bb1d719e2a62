/* Locks that are late, lost, stale or unavailable: a clear problem, in time, and no write. */
#include "redis.h"
#include "service_rig.h"
#include "guard.h"
#include "tests.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int prepare(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    rig_reset("redis-token");
    return 0;
}

static void start(void)
{
    struct op op;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
}

/* -- lost ------------------------------------------------------------------------------------- */

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(prepare, rig_clear);

TEST_THAT(lock_deleted_under_the_holder_writes_nothing)
{
    struct op op;
    rig.config.lease_ms = 300; /* the watchdog checks after a third of it */
    start();
    op_order(&op, 1);
    gate_set(0, OP_READ, op.request_id);
    ops_submit(rig.service, &op, 1);
    gate_wait(0);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:1"), 1);
    while (!rig_metrics_contain("seckill_locks_total{guard=\"redis-token\",event=\"lost\"} 1"))
        sched_yield();
    gate_open(0);
    ops_wait(&op, 1);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_LOST);
    assert_true(op.point_us[OP_LOST] > 0);
    assert_int_equal(op.point_us[OP_COMMITTED], 0);
    assert_int_equal(rig_stock(), 100);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201); /* the key is unused */
    assert_false(op.answer.replayed);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(reset_whose_lock_is_deleted_writes_nothing)
{
    struct op op;
    rig.config.lease_ms = 300;
    start();
    op_put_item(&op, "1", 7, "");
    gate_set(0, OP_ACQUIRED, op.request_id);
    ops_submit(rig.service, &op, 1);
    gate_wait(0);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:1"), 1);
    while (!rig_metrics_contain("seckill_locks_total{guard=\"redis-token\",event=\"lost\"} 1"))
        sched_yield();
    gate_open(0);
    ops_wait(&op, 1);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(rig_stock(), 100);
}

/* A has decided; its lock is deleted and B orders; then A writes. */
static void write_too_late(struct op *a, struct op *b)
{
    rig.config.watchdog = false; /* A does not learn the loss */
    rig.config.lanes = false;
    start();
    op_order(a, 1);
    gate_set(0, OP_DECIDED, a->request_id);
    ops_submit(rig.service, a, 1);
    gate_wait(0);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:1"), 1);
    assert_int_equal(op_run(rig.service, op_order(b, 2)), 201);
    gate_open(0);
    ops_wait(a, 1);
}

TEST_THAT(late_write_of_a_former_holder_is_refused_by_fence)
{
    struct op a, b;
    write_too_late(&a, &b);
    assert_int_equal(a.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(rig_stock(), 99);
    assert_true(rig_metrics_contain("seckill_stale_fences_total 1\n"));
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(late_write_loses_an_update_without_fence)
{
    struct op a, b;
    rig.config.fence = false;
    write_too_late(&a, &b);
    assert_int_equal(a.answer.status, 201);
    assert_int_equal(rig_stock(), 99);
    assert_int_equal(audit_number(rig.service, "item:1", "lost_updates"), 1);
}

/* A decides to pay and loses the order's lock; B cancels; then A writes. */
TEST_THAT(late_payment_does_not_undo_a_cancellation)
{
    struct op op, payment;
    char id[DB_ID_MAX + 1], key[LK_KEY_MAX + 1];
    rig.config.watchdog = false;
    start();
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 1000, "")), 200);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    assert_true(answer_text(&op, "order_id", id, sizeof id));
    op_make(&payment, OP_PAY_ORDER, id, "", 0, 2);
    gate_set(0, OP_DECIDED, payment.request_id);
    ops_submit(rig.service, &payment, 1);
    gate_wait(0);
    snprintf(key, sizeof key, "lock:order:%s", id);
    assert_int_equal(redis_do(rig.redis, "DEL %s", key), 1);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CANCEL_ORDER, id, "", 0, 3)), 201);
    gate_open(0);
    ops_wait(&payment, 1);
    assert_int_equal(payment.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(rig_stock(), 100);
    op_run(rig.service, op_make(&op, OP_GET_ACCOUNT, "u1", "", 0, 0));
    assert_int_equal(answer_number(&op, "balance"), 1000);
    assert_true(audit_is_clean(rig.service));
}

/* A counter that is lost or went back goes on above the store's fence. Only if Redis' clock is
 * behind that fence is one order refused. */
TEST_THAT(lock_server_whose_counter_and_clock_went_back_heals_after_one_refusal)
{
    struct op op;
    start();
    for (int i = 0; i < 5; i++)
        assert_int_equal(op_run(rig.service, op_order(&op, i)), 201);
    redis_do(rig.redis, "FLUSHALL");
    assert_int_equal(op_run(rig.service, op_order(&op, 5)), 201);
    redis_do(rig.redis, "SET {lock:item:1}:fence 5");
    assert_int_equal(op_run(rig.service, op_order(&op, 6)), 201);
    redis_do(rig.redis, "SET {lock:item:1}:fence %" PRIu64, REDIS_FENCE_AHEAD);
    assert_int_equal(op_run(rig.service, op_order(&op, 7)), 201);
    redis_do(rig.redis, "SET {lock:item:1}:fence 5");
    op_run(rig.service, op_order(&op, 8));
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(op_run(rig.service, op_order(&op, 8)), 201);
    assert_int_equal(rig_stock(), 91);
    assert_true(audit_is_clean(rig.service));
}

/* -- late ------------------------------------------------------------------------------------- */

TEST_THAT(lock_held_by_another_client_is_waited_for_no_longer_than_allowed)
{
    struct op op;
    start();
    assert_int_equal(redis_do(rig.redis, "SET lock:item:1 another NX PX 60000"), 1);
    op_order(&op, 1);
    int64_t begin_us = now_us();
    op.deadline_us = begin_us + 200000;
    op_run(rig.service, &op);
    int64_t took_us = now_us() - begin_us;
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
    assert_in_range(took_us, 150000, 20000000);
    assert_int_equal(rig_stock(), 100);
    assert_int_equal(redis_do(rig.redis, "GET lock:item:1"), 1); /* not ours to delete */
}

TEST_THAT(operation_without_time_to_wait_gets_one_attempt)
{
    struct op op;
    start();
    op_order(&op, 1);
    op.deadline_us = now_us();
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_int_equal(redis_do(rig.redis, "SET lock:item:1 another NX PX 60000"), 1);
    op_order(&op, 2);
    op.deadline_us = now_us();
    op_run(rig.service, &op);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
}

TEST_THAT(operation_whose_turn_comes_far_too_late_is_not_begun)
{
    struct op op;
    start();
    op_order(&op, 1);
    op.deadline_us = now_us() - 10000000;
    op_run(rig.service, &op);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
    assert_int_equal(rig_stock(), 100); /* though the lock is free */

    op_put_item(&op, "1", 7, ""); /* a reset so late would delete newer changes */
    op.deadline_us = now_us() - 10000000;
    op_run(rig.service, &op);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
    assert_int_equal(rig_stock(), 100);
}

TEST_THAT(impatient_operation_leaves_its_batch_and_the_others_go_on)
{
    enum { N = 6 };
    static struct op first, ops[N];
    rig.config.lane_turns = 1; /* the batch acquires the lock again */
    start();
    gate_set(0, OP_ACQUIRED, "request-0");
    ops_submit(rig.service, op_order(&first, 0), 1);
    gate_wait(0);
    for (int i = 0; i < N; i++) /* one batch behind the first */
        op_order(&ops[i], 1 + i);
    ops[1].deadline_us = now_us() - 10000000; /* already too late */
    ops[3].deadline_us = now_us() + 300000;   /* too late soon */
    ops_submit(rig.service, ops, N);
    assert_int_equal(redis_do(rig.redis, "SET lock:item:1 another XX PX 60000"), 1);
    gate_open(0);
    ops_wait(&ops[1], 1);
    ops_wait(&ops[3], 1);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:1"), 1);
    ops_wait(&first, 1);
    ops_wait(ops, N);
    assert_int_equal(ops[1].answer.problem, PROBLEM_LOCK_TIMEOUT);
    assert_int_equal(ops[3].answer.problem, PROBLEM_LOCK_TIMEOUT);
    assert_int_equal(ops_count(ops, N, 201), N - 2);
    assert_true(audit_is_clean(rig.service));
}

/* -- unavailable ------------------------------------------------------------------------------ */

TEST_THAT(absent_lock_server_is_answered_at_once)
{
    struct op op;
    start();
    sandbox_signal(rig.redis, SIGKILL);
    int64_t begin_us = now_us();
    op_run(rig.service, op_order(&op, 1));
    assert_int_equal(op.answer.problem, PROBLEM_UNAVAILABLE);
    op_run(rig.service, op_make(&op, OP_READY, "", "", 0, 0));
    assert_int_equal(op.answer.problem, PROBLEM_UNAVAILABLE);
    assert_true(now_us() - begin_us < 2000000);
    assert_int_equal(rig_stock(), 100); /* reading needs no lock */
    assert_int_equal(sandbox_restart(rig.redis), 0);
    while (op_run(rig.service, op_order(&op, 1)) != 201) {
        /* PUT had fence 1; the new server's counter starts again */
        assert_int_equal(op.answer.status, 503);
        sched_yield();
    }
    assert_int_equal(rig_stock(), 99);
}

/* -- a guard that changes ---------------------------------------------------------------------- */

static atomic_bool first_try_held, first_try_free;

static void hold_first_try(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_TRY) != 0 || strcmp(key, "lock:item:1") != 0 ||
        atomic_exchange(&first_try_held, true))
        return;
    while (!atomic_load(&first_try_free))
        sched_yield();
}

static void change_guard_of_one_who_waits(bool lanes)
{
    struct op op, put;
    lk_env env = *lk_env_system();
    char guard[32];
    env.point = hold_first_try;
    rig.seams.env = &env;
    atomic_store(&first_try_held, false);
    atomic_store(&first_try_free, false);
    rig.config.lock_queue = false; /* else the PUT would queue behind the order */
    rig.config.lanes = lanes;
    start();
    ops_submit(rig.service, op_order(&op, 1), 1);
    while (!atomic_load(&first_try_held))
        sched_yield();
    int put_status = op_run(rig.service, op_put_item(&put, "1", 50, "sql-atomic"));
    atomic_store(&first_try_free, true);
    ops_wait(&op, 1);
    rig_stop();
    rig.seams.env = NULL;
    assert_int_equal(put_status, 200);
    assert_int_equal(op.answer.status, 201);
    assert_true(answer_text(&op, "guard", guard, sizeof guard));
    assert_string_equal(guard, "sql-atomic");
    assert_int_equal(answer_number(&op, "stock_after"), 49);
    assert_int_equal(answer_number(&op, "fence"), 0);
}

TEST_THAT(guard_changed_while_waiting_is_taken_as_it_is_then)
{
    change_guard_of_one_who_waits(true);
}

TEST_THAT(without_lanes_too)
{
    change_guard_of_one_who_waits(false);
}
