#include "../../app/lanes.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { OPS_MAX = 10000, THREADS_MAX = 8 };

/* What the threads saw; a turn stops at the gate while it is closed. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct lanes *lanes;
    bool gate_closed;
    bool pass_first; /* who stands at the gate first may pass though it is closed */
    bool spreads;    /* a turn keeps only its first operation */
    bool goes_on;    /* a lane takes further turns while it may */
    int at_gate;
    atomic_int running[2]; /* turns of lane a and of others */
    atomic_bool overlap;   /* two at a time */
    size_t served, turns, calls, largest;
    int64_t order[OPS_MAX]; /* op->amount, as served */
} seen;

static void *state_new(void *ctx)
{
    return ctx;
}

static void state_free(void *state)
{
    (void)state;
}

static void stand_at_gate(void)
{
    seen.at_gate++;
    pthread_cond_broadcast(&seen.changed);
    while (seen.gate_closed && !seen.pass_first)
        pthread_cond_wait(&seen.changed, &seen.mutex);
    seen.pass_first = false;
    seen.at_gate--;
}

static void note_served(struct op **ops, size_t n)
{
    seen.turns++;
    if (n > seen.largest)
        seen.largest = n;
    for (size_t i = 0; i < n; i++)
        seen.order[seen.served++] = ops[i]->amount;
}

static void serve(void *state, struct op **ops, size_t n)
{
    (void)state;
    int lane = ops[0]->id[0] != 'a';
    if (atomic_fetch_add(&seen.running[lane], 1) > 0)
        atomic_store(&seen.overlap, true);
    pthread_mutex_lock(&seen.mutex);
    if (seen.spreads)
        n -= lanes_spread(seen.lanes, ops[0]->id, ops + 1, n - 1);
    stand_at_gate();
    seen.calls++;
    note_served(ops, n);
    const char *name = ops[0]->id;
    while (seen.goes_on && lanes_goes_on(seen.lanes, name))
        note_served(ops, lanes_more(seen.lanes, name, ops));
    atomic_fetch_sub(&seen.running[lane], 1);
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static void open_lanes(size_t threads, size_t batch, size_t waiting_max, bool gate_closed)
{
    memset(&seen, 0, sizeof seen);
    pthread_mutex_init(&seen.mutex, NULL);
    pthread_cond_init(&seen.changed, NULL);
    seen.gate_closed = gate_closed;
    seen.lanes = lanes_open(&(struct lanes_options){
        .thread_name = "test",
        .threads = threads,
        .batch = batch,
        .waiting_max = waiting_max,
        .state_new = state_new,
        .state_free = state_free,
        .serve = serve,
        .ctx = &seen,
    });
    assert_non_null(seen.lanes);
}

static bool submit(struct op *op, const char *name, int64_t amount)
{
    snprintf(op->id, sizeof op->id, "%s", name ? name : "single");
    op->amount = amount;
    return lanes_submit(seen.lanes, name, op);
}

static void open_gate(void)
{
    pthread_mutex_lock(&seen.mutex);
    seen.gate_closed = false;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static void wait_at_gate(int n)
{
    pthread_mutex_lock(&seen.mutex);
    while (seen.at_gate < n)
        pthread_cond_wait(&seen.changed, &seen.mutex);
    pthread_mutex_unlock(&seen.mutex);
}

static void lane_is_served_in_order_by_one_thread_at_a_time(void **state)
{
    (void)state;
    struct op *ops = calloc(OPS_MAX, sizeof *ops);
    open_lanes(THREADS_MAX, 7, OPS_MAX, false);
    for (int i = 0; i < OPS_MAX; i++)
        assert_true(submit(&ops[i], "a", i));
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, OPS_MAX);
    assert_false(seen.overlap);
    assert_true(seen.largest <= 7);
    for (int i = 0; i < OPS_MAX; i++)
        assert_int_equal(seen.order[i], i);
    free(ops);
}

static void see_cold_lane_wait_for_one_batch(bool goes_on)
{
    static struct op ops[12];
    open_lanes(1, 3, OPS_MAX, true);
    seen.goes_on = goes_on;
    assert_true(submit(&ops[0], "first", 0)); /* holds the only thread */
    wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        assert_true(submit(&ops[i], "a", i));
    assert_true(submit(&ops[11], "b", 11));
    open_gate();
    lanes_close(seen.lanes);
    static const int64_t expected[] = {0, 1, 2, 3, 11, 4, 5, 6, 7, 8, 9, 10};
    assert_int_equal(seen.served, 12);
    assert_memory_equal(seen.order, expected, sizeof expected);
}

static void cold_lane_waits_for_one_batch_of_a_hot_one(void **state)
{
    (void)state;
    see_cold_lane_wait_for_one_batch(false);
    see_cold_lane_wait_for_one_batch(true);
}

static void lane_goes_on_while_no_other_waits(void **state)
{
    (void)state;
    static struct op ops[11];
    open_lanes(1, 3, OPS_MAX, true);
    seen.goes_on = true;
    assert_true(submit(&ops[0], "a", 0));
    wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        assert_true(submit(&ops[i], "a", i));
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, 11);
    for (int i = 0; i <= 10; i++)
        assert_int_equal(seen.order[i], i);
    assert_int_equal(seen.turns, 5); /* 1, and 10 in threes */
    assert_int_equal(seen.calls, 1);
}

static void waiting_operations_of_a_hot_lane_hold_no_thread(void **state)
{
    (void)state;
    struct op *ops = calloc(OPS_MAX, sizeof *ops);
    open_lanes(2, 1, OPS_MAX, true);
    for (int i = 0; i < OPS_MAX - 1; i++)
        assert_true(submit(&ops[i], "a", i));
    wait_at_gate(1);
    assert_true(submit(&ops[OPS_MAX - 1], "b", OPS_MAX - 1));
    wait_at_gate(2); /* the second thread is free for the cold lane */
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, OPS_MAX);
    free(ops);
}

static void operations_without_a_name_run_at_the_same_time(void **state)
{
    (void)state;
    static struct op ops[THREADS_MAX];
    open_lanes(THREADS_MAX, 10, OPS_MAX, true);
    for (int i = 0; i < THREADS_MAX; i++)
        assert_true(submit(&ops[i], NULL, i));
    wait_at_gate(THREADS_MAX);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.largest, 1);
}

static void spread_operations_run_at_the_same_time(void **state)
{
    (void)state;
    static struct op ops[THREADS_MAX + 1];
    open_lanes(THREADS_MAX, 3, OPS_MAX, true);
    assert_true(submit(&ops[0], "a", 0));
    wait_at_gate(1);
    for (int i = 1; i < THREADS_MAX; i++) /* gather behind the first, in one lane */
        assert_true(submit(&ops[i], "a", i));
    pthread_mutex_lock(&seen.mutex);
    seen.spreads = true;
    seen.pass_first = true;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
    wait_at_gate(THREADS_MAX - 1);
    assert_true(submit(&ops[THREADS_MAX], "a", THREADS_MAX)); /* waits for none of them */
    wait_at_gate(THREADS_MAX);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, THREADS_MAX + 1);
    assert_int_equal(seen.largest, 1);
}

static void full_queue_refuses_and_takes_again_when_served(void **state)
{
    (void)state;
    static struct op ops[5];
    open_lanes(1, 1, 2, true);
    assert_true(submit(&ops[0], "a", 0));
    wait_at_gate(1); /* taken: it waits no longer */
    assert_true(submit(&ops[1], "a", 1));
    assert_true(submit(&ops[2], NULL, 2));
    assert_int_equal(lanes_waiting(seen.lanes), 2);
    assert_false(submit(&ops[3], "a", 3));
    assert_false(submit(&ops[3], NULL, 3));
    open_gate();
    pthread_mutex_lock(&seen.mutex);
    while (seen.served < 3)
        pthread_cond_wait(&seen.changed, &seen.mutex);
    pthread_mutex_unlock(&seen.mutex);
    assert_true(submit(&ops[4], "a", 4));
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_is_served_in_order_by_one_thread_at_a_time),
        cmocka_unit_test(cold_lane_waits_for_one_batch_of_a_hot_one),
        cmocka_unit_test(lane_goes_on_while_no_other_waits),
        cmocka_unit_test(waiting_operations_of_a_hot_lane_hold_no_thread),
        cmocka_unit_test(operations_without_a_name_run_at_the_same_time),
        cmocka_unit_test(spread_operations_run_at_the_same_time),
        cmocka_unit_test(full_queue_refuses_and_takes_again_when_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
