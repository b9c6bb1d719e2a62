/* Requests that wait for one lock: who of them asks the lock server? */
#include "../lib/process.h"
#include "../lib/service_rig.h"
#include "../../app/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ORDERS = 6, TRIES = 30, PATIENCE_MS = 60000 };

/* -- threads that try for the item's lock -------------------------------------------------------
 */

static struct {
    pthread_mutex_t lock;
    pthread_t by[ORDERS + 1];
    int n, threads;
} tries = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_try(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_TRY) != 0 || strcmp(key, "lock:item:1") != 0)
        return;
    pthread_mutex_lock(&tries.lock);
    int i = 0;
    while (i < tries.threads && !pthread_equal(tries.by[i], pthread_self()))
        i++;
    if (i == tries.threads && i <= ORDERS)
        tries.by[tries.threads++] = pthread_self();
    tries.n++;
    pthread_mutex_unlock(&tries.lock);
}

static bool tried_often(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&tries.lock);
    bool often = tries.n >= TRIES;
    pthread_mutex_unlock(&tries.lock);
    return often;
}

static bool all_have_tried(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&tries.lock);
    bool all = tries.threads == ORDERS;
    pthread_mutex_unlock(&tries.lock);
    return all;
}

/* One order has the lock; those behind it wait until so() is true. Returns how many threads have
 * asked the lock server by then. */
static int threads_that_ask(bool (*so)(void *arg))
{
    static struct op ops[ORDERS];
    struct op op;
    lk_env env = *lk_env_system();
    env.point = note_try;
    guards_set_env(&env);
    rig.config.lanes = false;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    tries.n = tries.threads = 0;
    for (int i = 0; i < ORDERS; i++)
        op_order(&ops[i], i);
    gate_set(0, OP_DECIDED, ops[0].request_id);
    ops_submit(rig.service, ops, 1);
    gate_wait(0);
    ops_submit(rig.service, ops + 1, ORDERS - 1);
    bool in_time = wait_until(so, NULL, PATIENCE_MS);
    pthread_mutex_lock(&tries.lock);
    int threads = tries.threads;
    pthread_mutex_unlock(&tries.lock);
    gate_open(0);
    ops_wait(ops, ORDERS);
    bool clean = audit_is_clean(rig.service);
    points_clear();
    rig_stop();
    guards_set_env(NULL);
    assert_true(in_time && clean);
    assert_int_equal(ops_count(ops, ORDERS, 201), ORDERS);
    return threads;
}

static void of_those_that_wait_only_the_first_polls(void **state)
{
    (void)state;
    rig_reset("redis-token");
    assert_int_equal(threads_that_ask(tried_often), 2); /* the holder's, and the first in line */
}

static void without_the_line_all_of_them_poll(void **state)
{
    (void)state;
    rig_reset("redis-token");
    rig.config.lock_queue = false;
    assert_int_equal(threads_that_ask(all_have_tried), ORDERS);
}

static void lessons_see_every_attempt(void **state)
{
    (void)state;
    rig_reset("redis-token");
    rig.config.lab = true;
    assert_int_equal(threads_that_ask(all_have_tried), ORDERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_those_that_wait_only_the_first_polls),
        cmocka_unit_test(without_the_line_all_of_them_poll),
        cmocka_unit_test(lessons_see_every_attempt),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
