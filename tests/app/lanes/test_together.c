/* Orders for many items at once, with lanes on: one round trip for the locks and one commit. Each
 * order has its own outcome. */
#include "process.h"
#include "redis.h"
#include "service_rig.h"
#include "service_private.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum {
    ITEMS = 12,
    STOCK = 100000,
    ORDERS = 3000,
    FIRST = 2, /* items whose orders occupy the threads that serve many lanes */
    N = ITEMS - FIRST,
    LEASE_MS = 5000,
    PATIENCE_MS = 60000,
    STILL_MS = 3000,
    WATCHED = 2 * ORDERS /* a number that no other order has */
};

static struct op ops[ORDERS], holders[FIRST];

static int prepare(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    rig_reset("redis-token");
    return 0;
}

static struct op *order(struct op *op, int item, int number)
{
    char id[16];
    snprintf(id, sizeof id, "%d", item);
    return op_make(op, OP_PLACE_ORDER, id, "u1", 1, number);
}

/* Creates items "0" to "ITEMS - 1", with the guards in turn; "": the default guard. */
static void start(const char *const *guards, size_t n_guards)
{
    struct op op;
    char id[16];
    assert_int_equal(rig_start(), 0);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof id, "%d", i);
        op_put_item(&op, id, STOCK, guards[(size_t)i % n_guards]);
        assert_int_equal(op_run(rig.service, &op), 200);
    }
    for (int i = 0; i < N; i++)
        order(&ops[i], FIRST + i, i);
}

static void start_locked(void)
{
    start((const char *const[]){""}, 1);
}

/* Orders of the first items occupy the threads that serve many lanes. The orders in ops, of other
 * items, queue behind them and are then served in one turn. */
static void gather(void)
{
    static int number = ORDERS;
    for (int i = 0; i < FIRST; i++) {
        order(&holders[i], i, number++);
        gate_set(i, OP_DECIDED, holders[i].request_id);
        ops_submit(rig.service, &holders[i], 1);
        gate_wait(i);
    }
    ops_submit(rig.service, ops, N);
    for (int i = 0; i < FIRST; i++)
        gate_open(i);
}

static void run_together(void)
{
    gather();
    ops_wait(holders, FIRST);
    ops_wait(ops, N);
    points_clear();
}

static uint64_t commits(void)
{
    db_stats stats;
    db_get_stats(rig.service->db, &stats);
    return stats.commits;
}

static uint64_t attempts(void)
{
    lk_stats stats;
    lk_client_stats(atomic_load(&guard_default(rig.service->guards)->client), &stats);
    return stats.attempts;
}

static int64_t sold(void)
{
    char id[16];
    int64_t sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof id, "%d", i);
        sum += STOCK - rig_number(OP_GET_ITEM, id, "stock");
    }
    return sum;
}

/* -- one commit ------------------------------------------------------------------------------- */

/* If Redis does not answer in time, the orders are served one by one. So a busy machine may need a
 * few rounds. */
static void orders_of_many_items_share_one_commit(void **state)
{
    (void)state;
    enum { ROUNDS = 10 };
    bool shared = false;
    int rounds = 0;
    start_locked();
    for (; rounds < ROUNDS && !shared; rounds++) {
        for (int i = 0; i < N; i++)
            order(&ops[i], FIRST + i, N * rounds + i);
        uint64_t before = commits();
        run_together();
        shared = commits() - before <= FIRST + 1;
        assert_int_equal(ops_count(ops, N, 201), N);
        for (int i = 0; i < N; i++)
            assert_true(answer_number(&ops[i], "fence") > rounds);
    }
    assert_true(shared);
    assert_int_equal(redis_do(rig.redis, "EXISTS lock:item:0 lock:item:1 lock:item:2 lock:item:9"),
                     0);
    assert_int_equal(sold(), ITEMS * rounds);
    assert_true(audit_is_clean(rig.service));
}

static void repeated_orders_are_replayed(void **state)
{
    (void)state;
    start_locked();
    run_together();
    order(&ops[0], FIRST, ORDERS - 1); /* a new one among them */
    run_together();
    assert_int_equal(ops_count(ops, N, 201), N);
    for (int i = 0; i < N; i++)
        assert_int_equal(ops[i].answer.replayed, i > 0);
    assert_int_equal(sold(), ITEMS + FIRST + 1);
    assert_true(audit_is_clean(rig.service));
}

static void guards_of_all_kinds_may_come_together(void **state)
{
    (void)state;
    start((const char *const[]){"", "sql-atomic", "none", "sql-version", "sql-row", "redis-set"},
          6);
    run_together();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(sold(), ITEMS);
    assert_true(audit_is_clean(rig.service));
}

/* -- each by itself --------------------------------------------------------------------------- */

static void an_order_that_waits_for_a_lock_keeps_no_other_waiting(void **state)
{
    (void)state;
    start_locked();
    assert_int_equal(redis_do(rig.redis, "SET lock:item:%d other PX %d", ITEMS - 1, PATIENCE_MS),
                     1);
    gather();
    ops_wait(ops, N - 1);
    assert_int_equal(ops_count(ops, N - 1, 201), N - 1);
    assert_int_equal(rig_number(OP_GET_ITEM, "11", "stock"), STOCK);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:%d", ITEMS - 1), 1);
    ops_wait(&ops[N - 1], 1);
    ops_wait(holders, FIRST);
    points_clear();
    assert_int_equal(ops[N - 1].answer.status, 201);
    assert_true(audit_is_clean(rig.service));
}

static void orders_that_wait_for_locks_take_no_thread_from_others(void **state)
{
    (void)state;
    enum { HELD = 4 };
    start_locked();
    for (int i = 0; i < HELD; i++)
        redis_do(rig.redis, "SET lock:item:%d other PX %d", FIRST + i, PATIENCE_MS);
    for (int i = 0; i < HELD; i++) { /* one after the other: none is served with others */
        uint64_t before = attempts();
        ops_submit(rig.service, &ops[i], 1);
        while (attempts() == before)
            sched_yield();
    }
    ops_run(rig.service, ops + HELD, N - HELD);
    assert_int_equal(ops_count(ops + HELD, N - HELD, 201), N - HELD);
    for (int i = 0; i < HELD; i++)
        assert_int_equal(redis_do(rig.redis, "DEL lock:item:%d", FIRST + i), 1);
    ops_wait(ops, HELD);
    assert_int_equal(ops_count(ops, HELD, 201), HELD);
    assert_true(audit_is_clean(rig.service));
}

/* The second order completes between the first one's read and its write. */
static void orders_without_a_guard_race_beside_others_too(void **state)
{
    (void)state;
    enum { LATE = N - 2, QUICK = N - 1 };
    start((const char *const[]){"", "none"}, 2);
    order(&ops[LATE], ITEMS - 1, LATE);
    order(&ops[QUICK], ITEMS - 1, QUICK);
    gate_set(FIRST, OP_READ, ops[LATE].request_id);
    gather();
    gate_wait(FIRST);
    ops_wait(&ops[QUICK], 1);
    gate_open(FIRST);
    ops_wait(ops, LATE + 1);
    ops_wait(holders, FIRST);
    points_clear();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(audit_number(rig.service, "item:11", "lost_updates"), 1);
    assert_int_equal(rig_number(OP_GET_ITEM, "11", "stock"), STOCK - 1);
}

static uint64_t reruns(void)
{
    return atomic_load(&rig.service->counters.reruns);
}

/* The first order stands at point, in one turn with the others, while change() runs. It starts
 * again and delays no other order. */
static void see_one_begin_again(enum op_point point, void (*change)(void))
{
    order(&ops[0], FIRST, WATCHED);
    gate_set(FIRST, point, ops[0].request_id);
    gather();
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

static void an_order_whose_item_has_changed_begins_again(void **state)
{
    (void)state;
    struct op op;
    start((const char *const[]){"", "", "sql-version"}, 3);
    assert_int_equal(op_run(rig.service, order(&op, FIRST, WATCHED + 1)), 201);
    assert_true(answer_text(&op, "order_id", cancelled, sizeof cancelled));
    see_one_begin_again(OP_DECIDED, cancel);
    assert_int_equal(reruns(), 1);
    assert_int_equal(sold(), ITEMS);
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

static void an_order_whose_item_was_reset_has_released_its_lock(void **state)
{
    (void)state;
    start_locked();
    see_one_begin_again(OP_DECIDED, reset);
    assert_int_equal(reruns(), 1);
    assert_int_equal(redis_do(rig.redis, "EXISTS lock:item:2"), 0);
    assert_int_equal(sold(), ITEMS);
}

static void change_guard(void)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", STOCK, "redis-set")), 200);
}

static void an_order_whose_guard_has_changed_begins_again_under_the_new_one(void **state)
{
    (void)state;
    char guard[32];
    start((const char *const[]){"", "", "sql-version"}, 3);
    see_one_begin_again(OP_ACQUIRED, change_guard);
    assert_int_equal(reruns(), 0);
    assert_true(answer_text(&ops[0], "guard", guard, sizeof guard));
    assert_string_equal(guard, "redis-set");
    assert_int_equal(sold(), ITEMS);
}

/* A lane keeps its lock for the next order if that arrives at once. */
static bool locks_are_free(void *arg)
{
    (void)arg;
    return redis_do(rig.redis, "EXISTS lock:item:2 lock:item:3") == 0;
}

static void a_stale_fence_refuses_its_own_order_only(void **state)
{
    (void)state;
    enum { BEFORE = 20 }; /* orders of items 2 and 3, before Redis loses their fence counters */
    struct op op;
    start_locked();
    for (int i = 0; i < BEFORE; i++)
        assert_int_equal(op_run(rig.service, order(&op, FIRST + i % 2, N + i)), 201);
    assert_true(wait_until(locks_are_free, NULL, PATIENCE_MS));
    for (int i = 0; i < FIRST; i++)
        redis_do(rig.redis, "SET {lock:item:%d}:fence 1", FIRST + i);
    run_together();
    assert_int_equal(ops[0].answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(ops[1].answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(ops_count(ops, N, 201), N - 2);
    run_together(); /* Redis's counters were raised */
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(sold(), N + BEFORE + 2 * FIRST);
    assert_true(audit_is_clean(rig.service));
}

static void a_lock_server_that_stands_still_costs_no_order(void **state)
{
    (void)state;
    rig.config.lease_ms = LEASE_MS;
    start_locked();
    assert_int_equal(sandbox_signal(rig.redis, SIGSTOP), 0);
    for (int i = 0; i < N; i++) /* they wait for the hung server as long as they may */
        ops[i].deadline_us = now_us() + STILL_MS * INT64_C(1000);
    ops_run(rig.service, ops, N);
    assert_int_equal(sandbox_signal(rig.redis, SIGCONT), 0);
    assert_int_equal(ops_count(ops, N, 503), N);
    /* The server executes the sent commands later; the locks are then undone or expire. */
    for (int i = 0; i < N; i++)
        order(&ops[i], FIRST + i, i);
    run_together();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(sold(), ITEMS);
    assert_true(audit_is_clean(rig.service));
}

/* -- with others ------------------------------------------------------------------------------ */

struct other {
    lk_client *client;
    atomic_bool ends;
    uint64_t held;
};

/* Takes locks as another instance does. */
static void *hold_now_and_then(void *arg)
{
    struct other *other = arg;
    for (unsigned i = 0; !atomic_load(&other->ends); i++) {
        lk_hold hold;
        char key[32];
        snprintf(key, sizeof key, "lock:item:%u", i * 7 % ITEMS);
        if (lk_try_acquire(other->client, key, &hold) != LK_OK)
            continue;
        other->held++;
        usleep(300);
        lk_release(&hold);
    }
    return NULL;
}

static void nothing_is_lost_beside_another_instance_with_the_same_locks(void **state)
{
    (void)state;
    struct other other = {.held = 0};
    lk_error error;
    lk_stats stats;
    pthread_t thread;
    start_locked();
    assert_int_equal(lk_open("redis-token", rig.redis->url, NULL, &other.client, &error), LK_OK);
    assert_int_equal(pthread_create(&thread, NULL, hold_now_and_then, &other), 0);
    for (int i = 0; i < ORDERS; i++)
        order(&ops[i], i * 5 % ITEMS, i);
    for (int i = 0; i < ORDERS; i += ORDERS / 30)
        ops_run(rig.service, ops + i, ORDERS / 30);
    atomic_store(&other.ends, true);
    pthread_join(thread, NULL);
    lk_close(other.client);
    lk_client_stats(atomic_load(&guard_default(rig.service->guards)->client), &stats);
    assert_true(other.held > 0 && stats.refusals > 0); /* they contended */
    assert_int_equal(ops_count(ops, ORDERS, 201), ORDERS);
    assert_int_equal(sold(), ORDERS);
    assert_true(audit_is_clean(rig.service));
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, prepare, rig_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(orders_of_many_items_share_one_commit),
        TEST(repeated_orders_are_replayed),
        TEST(guards_of_all_kinds_may_come_together),
        TEST(an_order_that_waits_for_a_lock_keeps_no_other_waiting),
        TEST(orders_that_wait_for_locks_take_no_thread_from_others),
        TEST(orders_without_a_guard_race_beside_others_too),
        TEST(an_order_whose_item_has_changed_begins_again),
        TEST(an_order_whose_item_was_reset_has_released_its_lock),
        TEST(an_order_whose_guard_has_changed_begins_again_under_the_new_one),
        TEST(a_stale_fence_refuses_its_own_order_only),
        TEST(a_lock_server_that_stands_still_costs_no_order),
        TEST(nothing_is_lost_beside_another_instance_with_the_same_locks),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
