/* Orders of many items in one turn of the lanes: one whose item has changed meanwhile, or whose
 * fence is stale, begins again or is refused alone. */
#include "process.h"
#include "redis.h"
#include "together.h"
#include "service_private.h"
#include "tests.h"

#include <inttypes.h>
#include <signal.h>

enum {
    LEASE_MS = 5000,
    STILL_MS = 3000,
    WATCHED = 2 * ORDERS /* a number that no other order has */
};

static uint64_t reruns(void)
{
    return atomic_load(&rig.service->counters.reruns);
}

/* The first order stands at point, in one turn with the others, while change() runs. It starts
 * again and delays no other order. */
static void see_one_begin_again(enum op_point point, void (*change)(void))
{
    together_order(&ops[0], FIRST, WATCHED);
    gate_set(FIRST, point, ops[0].request_id);
    together_gather(N);
    gate_wait(FIRST);
    change();
    ops_wait(holders, FIRST);
    gate_set(0, OP_READ, ops[0].request_id);
    gate_open(FIRST);
    gate_wait(0);
    ops_wait(&ops[1], N - 1);
    gate_open(0);
    ops_wait(ops, 1);
    points_clear();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_true(audit_is_clean(rig.service));
}

static char cancelled[64];

static void cancel(void)
{
    struct op op;
    op_make(&op, OP_CANCEL_ORDER, cancelled, "", 0, WATCHED + 2);
    assert_int_equal(op_run(rig.service, &op), 201);
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(together_prepare, rig_clear);

TEST_THAT(an_order_whose_item_has_changed_begins_again)
{
    struct op op;
    together_start((const char *const[]){"", "", "sql-version"}, 3);
    assert_int_equal(op_run(rig.service, together_order(&op, FIRST, WATCHED + 1)), 201);
    assert_true(answer_text(&op, "order_id", cancelled, sizeof cancelled));
    see_one_begin_again(OP_DECIDED, cancel);
    assert_int_equal(reruns(), 1);
    assert_int_equal(together_sold(), ITEMS);
}

static db_status write_reset(db_tx *tx, void *arg)
{
    return db_tx_reset_item(tx, arg, "admin", "another");
}

/* A reset by another instance, which began before the row had a lock. */
static void reset(void)
{
    db_item item = {.id = "2", .guard = "redis-token", .stock = STOCK, .fence = true};
    item.initial_stock = item.stock;
    assert_int_equal(db_run(rig.service->db, write_reset, &item, NULL), DB_OK);
}

TEST_THAT(an_order_whose_item_was_reset_has_released_its_lock)
{
    together_start_locked();
    see_one_begin_again(OP_DECIDED, reset);
    assert_int_equal(reruns(), 1);
    assert_int_equal(redis_do(rig.redis, "EXISTS lock:item:2"), 0);
    assert_int_equal(together_sold(), ITEMS);
}

static void change_guard(void)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", STOCK, "redis-set")), 200);
}

TEST_THAT(an_order_whose_guard_has_changed_begins_again_under_the_new_one)
{
    char guard[32];
    together_start((const char *const[]){"", "", "sql-version"}, 3);
    see_one_begin_again(OP_ACQUIRED, change_guard);
    assert_int_equal(reruns(), 0);
    assert_true(answer_text(&ops[0], "guard", guard, sizeof guard));
    assert_string_equal(guard, "redis-set");
    assert_int_equal(together_sold(), ITEMS);
}

/* A lane keeps its lock for the next order if that arrives at once. */
static bool locks_are_free(void *arg)
{
    (void)arg;
    return redis_do(rig.redis, "EXISTS lock:item:2 lock:item:3") == 0;
}

TEST_THAT(a_stale_fence_refuses_its_own_order_only)
{
    enum { BEFORE = 20 }; /* orders of items 2 and 3, before Redis loses their fence counters */
    struct op op;
    together_start_locked();
    for (int i = 0; i < FIRST; i++) /* made when Redis' clock was ahead */
        redis_do(rig.redis, "SET {lock:item:%d}:fence %" PRIu64, FIRST + i, REDIS_FENCE_AHEAD);
    for (int i = 0; i < BEFORE; i++)
        assert_int_equal(op_run(rig.service, together_order(&op, FIRST + i % 2, N + i)), 201);
    assert_true(wait_until(locks_are_free, NULL, PATIENCE_MS));
    for (int i = 0; i < FIRST; i++)
        redis_do(rig.redis, "SET {lock:item:%d}:fence 1", FIRST + i);
    together_run();
    assert_int_equal(ops[0].answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(ops[1].answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(ops_count(ops, N, 201), N - 2);
    together_run(); /* Redis's counters were raised */
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(together_sold(), N + BEFORE + 2 * FIRST);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(a_lock_server_that_stands_still_costs_no_order)
{
    rig.config.lease_ms = LEASE_MS;
    together_start_locked();
    assert_int_equal(sandbox_signal(rig.redis, SIGSTOP), 0);
    for (int i = 0; i < N; i++) /* they wait for the hung server as long as they may */
        ops[i].deadline_us = now_us() + STILL_MS * INT64_C(1000);
    ops_run(rig.service, ops, N);
    assert_int_equal(sandbox_signal(rig.redis, SIGCONT), 0);
    assert_int_equal(ops_count(ops, N, 503), N);
    /* The server executes the sent commands later; the locks are then undone or expire. */
    for (int i = 0; i < N; i++)
        together_order(&ops[i], FIRST + i, i);
    together_run();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(together_sold(), ITEMS);
    assert_true(audit_is_clean(rig.service));
}
