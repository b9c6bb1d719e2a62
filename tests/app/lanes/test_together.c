/* Orders for many items at once, with lanes on: one round trip for the locks and one commit. Each
 * order has its own outcome. */
#include "guard.h"
#include "lateness.h"
#include "process.h"
#include "redis.h"
#include "together.h"
#include "service_private.h"
#include "tests.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* -- one commit ------------------------------------------------------------------------------- */

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(together_prepare, rig_clear);

/* If Redis does not answer in time, the orders are served one by one. So a busy machine may need a
 * few rounds. */
TEST_THAT(orders_of_many_items_share_one_commit)
{
    enum { ROUNDS = 10 };
    bool shared = false;
    int rounds = 0;
    together_start_locked();
    for (; rounds < ROUNDS && !shared; rounds++) {
        for (int i = 0; i < N; i++)
            together_order(&ops[i], FIRST + i, N * rounds + i);
        uint64_t before = commits();
        together_run();
        shared = commits() - before <= FIRST + 1;
        assert_int_equal(ops_count(ops, N, 201), N);
        for (int i = 0; i < N; i++)
            assert_true(answer_number(&ops[i], "fence") > rounds);
    }
    assert_true(shared);
    assert_int_equal(redis_do(rig.redis, "EXISTS lock:item:0 lock:item:1 lock:item:2 lock:item:9"),
                     0);
    assert_int_equal(together_sold(), ITEMS * rounds);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(repeated_orders_are_replayed)
{
    together_start_locked();
    together_run();
    together_order(&ops[0], FIRST, ORDERS - 1); /* a new one among them */
    together_run();
    assert_int_equal(ops_count(ops, N, 201), N);
    for (int i = 0; i < N; i++)
        assert_int_equal(ops[i].answer.replayed, i > 0);
    assert_int_equal(together_sold(), ITEMS + FIRST + 1);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(guards_of_all_kinds_may_come_together)
{
    together_start(
        (const char *const[]){"", "sql-atomic", "none", "sql-version", "sql-row", "redis-set"}, 6);
    together_run();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(together_sold(), ITEMS);
    assert_true(audit_is_clean(rig.service));
}

/* -- each by itself --------------------------------------------------------------------------- */

TEST_THAT(an_order_that_waits_for_a_lock_keeps_no_other_waiting)
{
    together_start_locked();
    assert_int_equal(redis_do(rig.redis, "SET lock:item:%d other PX %d", ITEMS - 1, PATIENCE_MS),
                     1);
    together_gather(N);
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

TEST_THAT(orders_that_wait_for_locks_take_no_thread_from_others)
{
    enum { HELD = 4 };
    together_start_locked();
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
TEST_THAT(orders_without_a_guard_race_beside_others_too)
{
    enum { LATE = N - 2, QUICK = N - 1 };
    together_start((const char *const[]){"", "none"}, 2);
    together_order(&ops[LATE], ITEMS - 1, LATE);
    together_order(&ops[QUICK], ITEMS - 1, QUICK);
    gate_set(FIRST, OP_READ, ops[LATE].request_id);
    together_gather(QUICK);
    gate_wait(FIRST);
    ops_submit(rig.service, &ops[QUICK], 1);
    ops_wait(&ops[QUICK], 1);
    gate_open(FIRST);
    ops_wait(ops, LATE + 1);
    ops_wait(holders, FIRST);
    points_clear();
    assert_int_equal(ops_count(ops, N, 201), N);
    assert_int_equal(audit_number(rig.service, "item:11", "lost_updates"), 1);
    assert_int_equal(rig_number(OP_GET_ITEM, "11", "stock"), STOCK - 1);
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

TEST_THAT(nothing_is_lost_beside_another_instance_with_the_same_locks)
{
    struct other other = {.held = 0};
    lk_error error;
    lk_stats stats;
    pthread_t thread;
    const int64_t start_ms = test_now_ms();
    together_start_locked();
    assert_int_equal(lk_open("redis-token", rig.redis->url, NULL, &other.client, &error), LK_OK);
    assert_int_equal(pthread_create(&thread, NULL, hold_now_and_then, &other), 0);
    for (int i = 0; i < ORDERS; i++)
        together_order(&ops[i], i * 5 % ITEMS, i);
    for (int i = 0; i < ORDERS; i += ORDERS / 30)
        ops_run(rig.service, ops + i, ORDERS / 30);
    atomic_store(&other.ends, true);
    pthread_join(thread, NULL);
    lk_close(other.client);
    lk_client_stats(atomic_load(&guard_default(rig.service->guards)->client), &stats);
    assert_true(other.held > 0 && stats.refusals > 0); /* they contended */
    const size_t sold = ops_count(ops, ORDERS, 201);
    assert_true(sold == ORDERS || lateness_since(start_ms) > GUARD_COMMAND_TIMEOUT_MS / 4);
    assert_int_equal(sold + ops_count(ops, ORDERS, 503), ORDERS); /* Redis answered too late */
    assert_int_equal(together_sold(), sold);
    assert_true(audit_is_clean(rig.service));
}
