/* Many lanes served in one turn, and lanes postponed to their own turn. */
#include "crew.h"
#include "tests.h"

enum { MANY = 4000, BATCH = 128 };

static void open_lanes(size_t threads)
{
    crew_open(true, threads, BATCH, MANY);
}

static void submit(int number, int lane)
{
    assert_true(crew_submit(number, lane));
}

TEST_THAT(operations_that_gather_in_many_lanes_are_served_together)
{
    open_lanes(1);
    submit(0, 0);
    crew_wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        submit(i, i % 5);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, 11);
    assert_int_equal(crew.n_turns, 2);
    assert_true(crew.turns[1].together);
    assert_int_equal(crew.turns[1].n_lanes, 5);
    assert_int_equal(crew.turns[1].n_ops, 10);
}

TEST_THAT(many_lanes_have_their_bounds)
{
    open_lanes(1);
    submit(0, 0);
    crew_wait_at_gate(1);
    int n = 1;
    for (int i = 1; i < CREW_LANES; i++)
        submit(n++, i);
    for (int i = 1; i <= LANES_PART_MAX; i++) /* too many for a part */
        submit(n++, 2);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, n);
    assert_true(crew.turns[1].together);
    assert_int_equal(crew.turns[1].n_lanes, 1);
    assert_false(crew.turns[2].together);
    assert_int_equal(crew.turns[2].n_ops, LANES_PART_MAX + 1);
    assert_int_equal(crew.turns[3].n_lanes, LANES_MANY_MAX);
    assert_int_equal(crew.turns[4].n_lanes, CREW_LANES - 3 - LANES_MANY_MAX);
}

TEST_THAT(lanes_are_served_in_order_of_arrival_single_or_many)
{
    open_lanes(1);
    submit(0, 0);
    crew_wait_at_gate(1);
    submit(1, CREW_NO_LANE);
    submit(2, 2);
    submit(3, CREW_NO_LANE);
    submit(4, 4);
    crew_open_gate();
    lanes_close(crew.lanes);
    static const bool together[] = {true, false, true, false};
    assert_int_equal(crew.n_turns, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(crew.turns[i].together, together[i]);
    assert_int_equal(crew.turns[2].n_lanes, 2);
}

TEST_THAT(many_lanes_have_no_more_operations_than_a_batch)
{
    open_lanes(1);
    submit(0, 0);
    crew_wait_at_gate(1);
    int n = 1;
    for (int i = 1; i <= LANES_MANY_MAX; i++)
        for (int each = 0; each < LANES_PART_MAX - 1; each++)
            submit(n++, i);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, n);
    assert_int_equal(crew.turns[1].n_ops, BATCH / (LANES_PART_MAX - 1) * (LANES_PART_MAX - 1));
    assert_int_equal(crew.turns[1].largest, LANES_PART_MAX - 1);
}

TEST_THAT(a_postponed_lane_has_its_own_turn_next)
{
    open_lanes(1);
    crew.postpones = "l2";
    submit(0, 0);
    crew_wait_at_gate(1);
    for (int i = 1; i <= 3; i++)
        submit(i, i);
    submit(4, 2);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, 5);
    assert_false(crew.disorder);
    assert_int_equal(crew.n_turns, 3);
    assert_int_equal(crew.turns[1].n_lanes, 3);
    assert_false(crew.turns[2].together);
    assert_int_equal(crew.turns[2].n_ops, 2); /* both of lane 2 */
}

TEST_THAT(a_lane_postponed_once_is_served_with_others_again)
{
    open_lanes(1);
    crew.postpones = "l2";
    submit(0, 2);
    crew_pass_gate_until_turn(2);
    submit(1, 2); /* during the turn of the first */
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.n_turns, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(crew.turns[i].together, i % 2 == 0);
}

TEST_THAT(later_operations_stay_behind_a_postponed_one)
{
    open_lanes(1);
    crew.postpones = "l2";
    submit(0, 2);
    crew_wait_at_gate(1);
    submit(1, CREW_NO_LANE);
    crew_pass_gate_until_turn(2);
    submit(2, 2); /* while the first waits for its own turn */
    crew_pass_gate_until_turn(3);
    submit(3, 3);
    submit(4, 2);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.turns[2].n_ops, 2);
    assert_int_equal(crew.turns[3].n_lanes,
                     2); /* lane 2 has one operation, and its own turn is over */
    assert_int_equal(crew.n_turns, 5);
    assert_int_equal(crew.served, 5);
    assert_false(crew.disorder);
}

TEST_THAT(a_lane_that_had_many_operations_is_served_with_others_again)
{
    open_lanes(1);
    submit(0, CREW_NO_LANE);
    crew_wait_at_gate(1);
    for (int i = 1; i <= LANES_PART_MAX; i++)
        submit(i, 1);
    crew_pass_gate_until_turn(2);
    submit(LANES_PART_MAX + 1, 0);
    submit(LANES_PART_MAX + 2, 1);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.n_turns, 3);
    assert_int_equal(crew.turns[1].n_ops, LANES_PART_MAX);
    assert_int_equal(crew.turns[2].n_lanes, 2);
}

TEST_THAT(a_lane_does_not_go_on_while_many_lanes_wait)
{
    open_lanes(1);
    crew.goes_on = true;
    submit(0, CREW_NO_LANE);
    crew_wait_at_gate(1);
    int n = 1;
    while (n <= LANES_PART_MAX + 1) /* too many for a part */
        submit(n++, 2);
    crew_pass_gate_until_turn(2);
    submit(n++, 2);
    submit(n++, 3);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, n);
    assert_int_equal(crew.n_turns, 3);
    assert_int_equal(crew.turns[1].n_batches, 1);
    assert_int_equal(crew.turns[2].n_lanes, 2);
}

/* An operation of the same name, in its own lane, spreads the waiting lane, which is then empty. */
TEST_THAT(a_lane_that_is_spread_while_it_waits_has_no_turn)
{
    open_lanes(1);
    crew.postpones = "l2";
    crew.spreads = true;
    submit(0, CREW_NO_LANE);
    crew_wait_at_gate(1);
    submit(1, 2);
    submit(2, 2);
    crew_pass_gate_until_turn(3); /* postponed, then its own turn: operation 2 has its own lane */
    submit(3, 3);
    submit(4, 2);
    crew_pass_gate_until_turn(4); /* the turn of operation 2, which spreads lane 2 */
    crew_open_gate();
    lanes_close(crew.lanes);
    static const bool together[] = {false, true, false, false, true, false};
    assert_int_equal(crew.served, 5);
    assert_int_equal(crew.n_turns, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(crew.turns[i].together, together[i]);
        assert_int_equal(crew.turns[i].n_lanes, 1);
    }
}

/* At most two threads serve many lanes. Operations that arrive meanwhile queue up, and a thread
 * stays free for single lanes. */
TEST_THAT(many_lanes_leave_threads_to_single_ones)
{
    open_lanes(4);
    submit(0, 0);
    crew_wait_at_gate(1);
    submit(1, 1);
    crew_wait_at_gate(2);
    for (int i = 2; i < 12; i++)
        submit(i, i);
    submit(12, CREW_NO_LANE);
    crew_wait_at_gate(3);
    submit(13, CREW_NO_LANE);
    crew_wait_at_gate(4);
    pthread_mutex_lock(&crew.mutex);
    size_t together = 0, turns = crew.n_turns;
    for (size_t i = 0; i < turns; i++)
        together += crew.turns[i].together;
    pthread_mutex_unlock(&crew.mutex);
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(turns, 4);
    assert_int_equal(together, 2);
    assert_int_equal(crew.served, 14);
    assert_int_equal(crew.turns[4].n_lanes, 10);
}

TEST_THAT(each_lane_keeps_its_order_whatever_is_postponed)
{
    unsigned random = 1;
    open_lanes(8);
    crew_open_gate();
    crew.postpones_every = 3;
    for (int i = 0; i < MANY; i++) {
        random = random * 1103515245u + 12345u;
        int lane = (int)(random >> 16) % (CREW_LANES + CREW_LANES / 4);
        submit(i, lane < CREW_LANES ? lane : CREW_NO_LANE);
    }
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, MANY);
    assert_false(crew.overlap);
    assert_false(crew.disorder);
}
