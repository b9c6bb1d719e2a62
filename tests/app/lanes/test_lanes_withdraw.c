/* Operations that are taken out while they wait: of lanes that wait and of one that is served. */
#include "crew.h"
#include "tests.h"

#include <string.h>

enum { A, B, C, D, SERVED, NUMBERS = 40 };

static bool gone[NUMBERS];

static bool is_gone(const struct op *op)
{
    return gone[op->amount];
}

static void submit(int first, int last, int lane)
{
    for (int number = first; number <= last; number++)
        assert_true(crew_submit(number, lane));
}

/* Just these are taken out, each once. */
static void withdraw(const int *numbers, size_t n)
{
    const size_t waiting = lanes_waiting(crew.lanes);
    memset(gone, 0, sizeof gone);
    for (size_t i = 0; i < n; i++)
        gone[numbers[i]] = true;
    size_t taken = 0;
    for (struct op *op = lanes_withdraw(crew.lanes, is_gone); op != NULL; op = op->next, taken++) {
        assert_true(gone[op->amount]);
        gone[op->amount] = false;
    }
    assert_int_equal(taken, n);
    assert_int_equal(lanes_waiting(crew.lanes), waiting - n);
}

static void expect_order(const int64_t *expected, size_t n)
{
    crew_open_gate();
    lanes_close(crew.lanes);
    assert_int_equal(crew.served, n);
    assert_memory_equal(crew.order, expected, n * sizeof *expected);
}

TEST_THAT(what_stays_is_served_in_its_order_and_there_is_room_again)
{
    static const int leave[] = {1, 4, 6, 7, 8, 10, 11};
    static const int64_t expected[] = {0, 2, 3, 5, 9, 14, 15, 16, 17, 12, 20, 13, 18};
    crew_open(false, 1, 3, 12);
    submit(0, 0, SERVED);
    crew_wait_at_gate(1);
    submit(1, 6, A);
    submit(7, 7, B);
    submit(8, 9, CREW_NO_LANE);
    submit(10, 10, C); /* the last one of the run queue */
    submit(11, 12, SERVED);
    assert_false(crew_submit(13, A));
    withdraw(leave, sizeof leave / sizeof *leave);
    submit(13, 13, A);
    submit(14, 14, C);
    submit(15, 16, B);
    submit(17, 17, CREW_NO_LANE);
    submit(18, 19, A);
    assert_false(crew_submit(20, C));
    withdraw((const int[]){19}, 1);
    submit(20, 20, SERVED);
    expect_order(expected, sizeof expected / sizeof *expected);
}

/* As many as are left decide whether lanes share a turn. A lane that is empty is not among them. */
TEST_THAT(what_stays_is_served_together)
{
    static const int64_t expected[] = {0, 1, 11, 3, 4, 5, 6, 7, 8, 9, 10, 14};
    crew_open(true, 1, 128, NUMBERS);
    submit(0, 0, SERVED);
    crew_wait_at_gate(1);
    submit(1, 1, B);
    submit(2, 2 + LANES_PART_MAX, A); /* one more than fits a shared turn */
    submit(12, 12, D);
    submit(13, 13, C);
    withdraw((const int[]){2, 12, 13}, 3);
    submit(11, 11, B);
    submit(14, 14, C);
    expect_order(expected, sizeof expected / sizeof *expected);
    assert_int_equal(crew.n_turns, 2);
    assert_true(crew.turns[1].together);
    assert_int_equal(crew.turns[1].n_lanes, 3);
}

/* Nothing waits, or nobody is gone. */
TEST_THAT(nothing_is_taken_from_others)
{
    static const int64_t expected[] = {0, 1, 2};
    crew_open(false, 1, 3, NUMBERS);
    withdraw(NULL, 0);
    submit(0, 0, SERVED);
    crew_wait_at_gate(1);
    gone[0] = true; /* a thread has it */
    assert_null(lanes_withdraw(crew.lanes, is_gone));
    submit(1, 2, A);
    withdraw(NULL, 0);
    expect_order(expected, sizeof expected / sizeof *expected);
}
