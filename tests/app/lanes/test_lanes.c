/* Lanes served one at a time. */
#include "crew.h"
#include "tests.h"

#include <string.h>

enum { MANY = CREW_OPS_MAX, THREADS = 8, A = 0, B = 1, FIRST = 2 };

static void expect_order(size_t n)
{
    assert_int_equal(crew.served, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(crew.order[i], i);
}

TEST_THAT(lane_is_served_in_order_by_one_thread_at_a_time)
{
    crew_open(false, THREADS, 7, MANY);
    crew_open_gate();
    for (int i = 0; i < MANY; i++)
        assert_true(crew_submit(i, A));
    lanes_close(crew.lanes);
    expect_order(MANY);
    assert_false(crew.overlap);
    for (size_t i = 0; i < crew.n_turns; i++)
        assert_in_range(crew.turns[i].n_ops, 1, 7);
}

static void see_cold_lane_wait_for_one_batch(bool goes_on)
{
    static const int64_t expected[] = {0, 1, 2, 3, 11, 4, 5, 6, 7, 8, 9, 10};
    crew_open(false, 1, 3, MANY);
    crew.goes_on = goes_on;
    assert_true(crew_submit(0, FIRST)); /* occupies the only thread */
    crew_wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        assert_true(crew_submit(i, A));
    assert_true(crew_submit(11, B));
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, 12);
    assert_memory_equal(crew.order, expected, sizeof expected);
}

TEST_THAT(cold_lane_waits_for_one_batch_of_a_hot_one)
{
    see_cold_lane_wait_for_one_batch(false);
    see_cold_lane_wait_for_one_batch(true);
}

TEST_THAT(lane_goes_on_while_no_other_waits)
{
    crew_open(false, 1, 3, MANY);
    crew.goes_on = true;
    assert_true(crew_submit(0, A));
    crew_wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        assert_true(crew_submit(i, A));
    crew_open_gate();
    lanes_close(crew.lanes);
    expect_order(11);
    assert_int_equal(crew.n_turns, 1);
    assert_int_equal(crew.turns[0].n_batches, 5); /* 1, then 3 + 3 + 3 + 1 */
}

TEST_THAT(waiting_operations_of_a_hot_lane_hold_no_thread)
{
    crew_open(false, 2, 1, MANY);
    for (int i = 0; i < MANY - 1; i++)
        assert_true(crew_submit(i, A));
    crew_wait_at_gate(1);
    assert_true(crew_submit(MANY - 1, B));
    crew_wait_at_gate(2); /* the second thread is free for the cold lane */
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, MANY);
}

TEST_THAT(operations_without_a_name_run_at_the_same_time)
{
    crew_open(false, THREADS, 10, MANY);
    for (int i = 0; i < THREADS; i++)
        assert_true(crew_submit(i, CREW_NO_LANE));
    crew_wait_at_gate(THREADS);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, THREADS);
    assert_int_equal(crew.n_turns, THREADS);
}

TEST_THAT(spread_operations_run_at_the_same_time)
{
    crew_open(false, THREADS, 3, MANY);
    assert_true(crew_submit(0, A));
    crew_wait_at_gate(1);
    for (int i = 1; i < THREADS; i++) /* queue behind the first, in one lane */
        assert_true(crew_submit(i, A));
    pthread_mutex_lock(&crew.mutex);
    crew.spreads = true;
    crew.pass = true;
    pthread_cond_broadcast(&crew.changed);
    pthread_mutex_unlock(&crew.mutex);
    crew_wait_at_gate(THREADS - 1);
    assert_true(crew_submit(THREADS, A)); /* does not wait for them */
    crew_wait_at_gate(THREADS);
    assert_int_equal(lanes_waiting(crew.lanes), 0);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, THREADS + 1);
    assert_int_equal(crew.n_turns, THREADS + 1);
}

TEST_THAT(full_queue_refuses_and_takes_again_when_served)
{
    crew_open(false, 1, 1, 2);
    assert_true(crew_submit(0, A));
    crew_wait_at_gate(1); /* being served: not counted as waiting */
    assert_true(crew_submit(1, A));
    assert_true(crew_submit(2, CREW_NO_LANE));
    assert_int_equal(lanes_waiting(crew.lanes), 2);
    assert_false(crew_submit(3, A));
    assert_false(crew_submit(3, CREW_NO_LANE));
    crew_open_gate();
    crew_wait_served(3);
    assert_true(crew_submit(4, A));
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, 4);
}
