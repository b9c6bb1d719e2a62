/* Requests wait for one lock: how many of them poll the lock server? */
#include "process.h"
#include "service_rig.h"
#include "tries.h"
#include "guard.h"
#include "tests.h"

#include <string.h>

enum { ORDERS = 6, TRIES = 30, PATIENCE_MS = 60000 };

/* One order holds the lock and the others wait until so(n) is true. Returns how many threads have
 * asked the lock server by then. */
static int threads_that_ask(bool (*so)(void *arg), int n)
{
    static struct op ops[ORDERS];
    struct op op;
    lk_env env = *lk_env_system();
    env.point = tries_note;
    rig.seams.env = &env;
    rig.config.lanes = false;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    tries_begin("lock:item:1");
    for (int i = 0; i < ORDERS; i++)
        op_order(&ops[i], i);
    gate_set(0, OP_DECIDED, ops[0].request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, ops + 1, ORDERS - 1);
    bool in_time = wait_until(so, &n, PATIENCE_MS);
    int threads = tries_threads();
    gate_open(0);
    ops_wait(ops, ORDERS);
    bool clean = audit_is_clean(rig.service);
    points_clear();
    rig_stop();
    rig.seams.env = NULL;
    assert_true(in_time && clean);
    assert_int_equal(ops_count(ops, ORDERS, 201), ORDERS);
    return threads;
}

GROUP_FIXTURE(rig_open, rig_close);

TEST_THAT(of_those_that_wait_only_the_first_polls)
{
    rig_reset("redis-token");
    /* the holder's thread and the first waiter's */
    assert_int_equal(threads_that_ask(tries_reached, TRIES), 2);
}

TEST_THAT(without_the_line_all_of_them_poll)
{
    rig_reset("redis-token");
    rig.config.lock_queue = false;
    assert_int_equal(threads_that_ask(tries_threads_reached, ORDERS), ORDERS);
}

TEST_THAT(lessons_see_every_attempt)
{
    rig_reset("redis-token");
    rig.seams.one_by_one = true;
    assert_int_equal(threads_that_ask(tries_threads_reached, ORDERS), ORDERS);
}
