/* How often a lane acquires its lock. */
#include "redis.h"
#include "service_rig.h"
#include "service_private.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One order is held in its section while the others queue behind it. */
enum { BATCH = 4, BATCHES = 6, ORDERS = 1 + BATCH * (BATCHES - 1), LEASE_MS = 10000 };

static struct op ops[ORDERS];

static uint64_t grants(void)
{
    lk_stats stats;
    lk_client_stats(atomic_load(&guard_default(rig.service->guards)->client), &stats);
    return stats.grants;
}

static bool is_locked(void)
{
    redisContext *context = redis_connect(rig.redis->port);
    redisReply *reply = redisCommand(context, "EXISTS lock:item:1");
    bool locked = reply && reply->integer != 0;
    freeReplyObject(reply);
    redisFree(context);
    return locked;
}

static void start(const char *guard, int64_t turns)
{
    struct op op;
    rig_reset(guard);
    rig.config.batch = BATCH;
    rig.config.lane_turns = turns;
    rig.config.workers = 2;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    for (int i = 0; i < ORDERS; i++)
        op_make(&ops[i], OP_PLACE_ORDER, "1", "u1", 1, i);
}

/* Runs all orders. The first is held at this point until the others wait. Returns how often the
 * lock was granted. */
static int grants_for_all(enum op_point held_at)
{
    uint64_t before = grants();
    gate_set(0, held_at, ops[0].request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, ops + 1, ORDERS - 1);
    gate_open(0);
    ops_wait(ops, ORDERS);
    int granted = (int)(grants() - before);
    bool clean = audit_is_clean(rig.service), locked = is_locked();
    points_clear();
    rig_stop();
    assert_true(clean);
    assert_false(locked); /* released before the last answer */
    assert_int_equal(ops_count(ops, ORDERS, 201), ORDERS);
    return granted;
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(NULL, rig_clear);

TEST_THAT(waiting_batches_go_on_under_one_lock)
{
    start("redis-token", BATCHES);
    assert_int_equal(grants_for_all(OP_DECIDED), 1);
}

TEST_THAT(after_its_turns_a_lane_gives_the_lock_back)
{
    start("redis-token", 2);
    assert_int_equal(grants_for_all(OP_DECIDED), BATCHES / 2);
    start("redis-token", 1);
    assert_int_equal(grants_for_all(OP_DECIDED), BATCHES);
}

TEST_THAT(fair_lock_goes_back_to_its_line_after_each_batch)
{
    start("redis-fair", BATCHES);
    assert_int_equal(grants_for_all(OP_DECIDED), BATCHES);
}

/* When half of the lease is over, the lane acquires the lock again before its next turn. */
TEST_THAT(lock_with_little_of_its_lease_left_is_taken_anew)
{
    start("redis-token", BATCHES);
    rig_stop();
    rig.config.watchdog = false;
    rig.config.lease_ms = LEASE_MS;
    assert_int_equal(rig_start(), 0);
    uint64_t before = grants();
    gate_set(0, OP_COMMITTED, ops[0].request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, ops + 1, BATCH);
    usleep((LEASE_MS / 2 + 200) * 1000);
    gate_open(0);
    ops_wait(ops, 1 + BATCH);
    int granted = (int)(grants() - before);
    points_clear();
    rig_stop();
    assert_int_equal(granted, 2);
    assert_int_equal(ops_count(ops, 1 + BATCH, 201), 1 + BATCH);
}

/* A's lane has written once and stands before its second write, under the same hold and fence. Its
 * lock is deleted and B acquires it. Then both write, in either order. */
static void second_turn_of_a_late_holder(bool late_one_writes_first, struct op *late,
                                         struct op *newer)
{
    struct op op;
    char id[DB_ID_MAX + 1];
    start("redis-token", BATCHES);
    rig_stop();
    rig.config.watchdog = false;   /* A does not learn the loss */
    rig.config.lock_queue = false; /* B behaves as if it were on another instance */
    assert_int_equal(rig_start(), 0);
    op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u2", 1, 100));
    assert_true(answer_text(&op, "order_id", id, sizeof id));

    op_make(late, OP_PLACE_ORDER, "1", "u1", 1, 101);
    op_make(newer, OP_CANCEL_ORDER, id, "", 0, 102);
    gate_set(0, OP_DECIDED, ops[0].request_id);
    gate_set(1, OP_DECIDED, late->request_id);
    gate_set(2, OP_DECIDED, newer->request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, late, 1);
    gate_open(0);
    gate_wait(1);
    assert_int_equal(redis_do(rig.redis, "DEL lock:item:1"), 1);
    ops_submit(rig.service, newer, 1);
    gate_wait(2);
    gate_open(late_one_writes_first ? 1 : 2);
    ops_wait(late_one_writes_first ? late : newer, 1);
    gate_open(late_one_writes_first ? 2 : 1);
    ops_wait(late_one_writes_first ? newer : late, 1);
    ops_wait(ops, 1);
    assert_int_equal(ops[0].answer.status, 201);
    assert_int_equal(newer->answer.status, 201);
}

TEST_THAT(late_second_turn_that_writes_first_makes_the_newer_holder_read_again)
{
    struct op late, newer;
    second_turn_of_a_late_holder(true, &late, &newer);
    assert_int_equal(late.answer.status, 201);
    assert_int_equal(answer_number(&late, "fence"), answer_number(&ops[0], "fence"));
    assert_int_equal(answer_number(&newer, "stock_before"), 97);
    assert_int_equal(rig_stock(), 98);
    assert_true(audit_is_clean(rig.service));
}

TEST_THAT(late_second_turn_after_a_newer_holder_wrote_is_refused)
{
    struct op late, newer;
    second_turn_of_a_late_holder(false, &late, &newer);
    assert_int_equal(late.answer.problem, PROBLEM_LOCK_LOST);
    assert_int_equal(rig_stock(), 99);
    assert_true(audit_is_clean(rig.service));
}

/* The lane's lock is released even if all orders of a turn are replayed. */
TEST_THAT(replayed_orders_leave_no_lock_behind)
{
    static struct op again[BATCH];
    struct op held;
    start("redis-token", BATCHES);
    ops_run(rig.service, ops, BATCH);
    assert_int_equal(ops_count(ops, BATCH, 201), BATCH);
    op_make(&held, OP_PLACE_ORDER, "1", "u2", 1, 1000);
    for (int i = 0; i < BATCH; i++)
        op_make(&again[i], OP_PLACE_ORDER, "1", "u1", 1, i);
    gate_set(0, OP_DECIDED, held.request_id);
    ops_submit(rig.service, &held, 1);
    gate_wait(0);
    ops_submit(rig.service, again, BATCH);
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(again, BATCH);
    points_clear();
    bool drained = service_drain(rig.service, 60000); /* the worker may not have released yet */
    service_close(rig.service);
    rig.service = NULL;
    assert_true(drained);
    assert_false(is_locked());
    for (int i = 0; i < BATCH; i++)
        assert_true(again[i].answer.replayed);
}

static uint64_t observed(const struct metric_histogram *histogram)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= METRIC_BOUNDS_MAX; i++)
        n += histogram->counts[i];
    return n;
}

/* Whether the lock was acquired alone or together with those of other items. */
TEST_THAT(each_lock_is_measured_once_however_it_was_taken)
{
    enum { ROUNDS = 10 };
    struct op op;
    char ids[ORDERS][16];
    start("redis-token", 1);
    for (int i = 0; i < ORDERS; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        assert_int_equal(op_run(rig.service, op_put_item(&op, ids[i], 100, "")), 200);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ORDERS; i++)
            op_make(&ops[i], OP_PLACE_ORDER, ids[i], "u1", 1, round * ORDERS + i);
        ops_run(rig.service, ops, ORDERS);
        assert_int_equal(ops_count(ops, ORDERS, 201), ORDERS);
    }
    assert_true(service_drain(rig.service, 60000)); /* the worker may not have released yet */
    const struct guard *guard = guard_default(rig.service->guards);
    assert_int_equal(observed(&guard->wait_us), grants());
    assert_int_equal(observed(&guard->hold_us), grants());
    service_close(rig.service);
    rig.service = NULL;
}
