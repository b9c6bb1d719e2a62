/* Lanes that are served together, and those that are left to be served by themselves. */
#include "../../app/lanes.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { OPS_MAX = 4000, LANES = 40, BATCH = 128, TURNS_MAX = OPS_MAX * 2 };

struct seen_turn {
    bool together;
    size_t n_lanes, n_ops, largest; /* share */
};

/* What the threads saw; a turn stops at the gate while it is closed. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct lanes *lanes;
    bool gate_closed, pass; /* who stands there may pass though it is closed */
    int at_gate;
    int leaves_every;    /* of the shares in company one in so many is left; 0: none */
    const char *leaves;  /* this lane's share is */
    size_t shares;       /* in company, so far */
    int running[LANES];  /* threads that serve the lane */
    bool overlap;        /* two of one lane at a time */
    bool disorder;       /* an operation before an earlier one of its lane */
    int64_t last[LANES]; /* served of each lane */
    size_t served;
    struct seen_turn turns[TURNS_MAX];
    size_t n_turns;
} seen;

static struct op ops[OPS_MAX];

static void *state_new(void *ctx)
{
    return ctx;
}

static void state_free(void *state)
{
    (void)state;
}

static int lane_of(const struct op *op)
{
    return op->id[0] == 'l' ? atoi(op->id + 1) : -1;
}

static void stand_at_gate(void)
{
    seen.at_gate++;
    pthread_cond_broadcast(&seen.changed);
    while (seen.gate_closed && !seen.pass)
        pthread_cond_wait(&seen.changed, &seen.mutex);
    seen.pass = false;
    seen.at_gate--;
}

static void run(const struct op *first, int step)
{
    int lane = lane_of(first);
    if (lane < 0)
        return;
    seen.running[lane] += step;
    seen.overlap = seen.overlap || seen.running[lane] > 1;
}

static void note(struct op **served, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int lane = lane_of(served[i]);
        if (lane < 0)
            continue;
        seen.disorder = seen.disorder || served[i]->amount <= seen.last[lane];
        seen.last[lane] = served[i]->amount;
    }
    seen.served += n;
}

static struct seen_turn *new_turn(bool together, size_t n_lanes)
{
    struct seen_turn *turn = &seen.turns[seen.n_turns++];
    *turn = (struct seen_turn){.together = together, .n_lanes = n_lanes};
    return turn;
}

static void count(struct seen_turn *turn, size_t n)
{
    turn->n_ops += n;
    turn->largest = n > turn->largest ? n : turn->largest;
}

static void serve(void *state, struct op **taken, size_t n)
{
    (void)state;
    pthread_mutex_lock(&seen.mutex);
    run(taken[0], 1);
    count(new_turn(false, 1), n);
    stand_at_gate();
    note(taken, n);
    run(taken[0], -1);
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static bool is_left(const struct op *op)
{
    seen.shares++;
    return (seen.leaves && strcmp(op->id, seen.leaves) == 0) ||
           (seen.leaves_every > 0 && seen.shares % (size_t)seen.leaves_every == 0);
}

static void serve_together(void *state, struct lanes_share *shares, size_t n)
{
    (void)state;
    pthread_mutex_lock(&seen.mutex);
    struct seen_turn *turn = new_turn(true, n);
    for (size_t i = 0; i < n; i++) {
        run(shares[i].ops[0], 1);
        count(turn, shares[i].n);
    }
    stand_at_gate();
    for (size_t i = 0; i < n; i++) {
        run(shares[i].ops[0], -1);
        if (is_left(shares[i].ops[0]))
            continue;
        note(shares[i].ops, shares[i].n);
        shares[i].n = 0;
    }
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static void open_lanes(size_t threads, bool gate_closed)
{
    memset(&seen, 0, sizeof seen);
    memset(seen.last, -1, sizeof seen.last);
    pthread_mutex_init(&seen.mutex, NULL);
    pthread_cond_init(&seen.changed, NULL);
    seen.gate_closed = gate_closed;
    seen.lanes = lanes_open(&(struct lanes_options){
        .thread_name = "test",
        .threads = threads,
        .batch = BATCH,
        .waiting_max = OPS_MAX,
        .state_new = state_new,
        .state_free = state_free,
        .serve = serve,
        .serve_together = serve_together,
        .ctx = &seen,
    });
    assert_non_null(seen.lanes);
}

static void submit(int number, int lane)
{
    struct op *op = &ops[number];
    snprintf(op->id, sizeof op->id, lane < 0 ? "x%d" : "l%d", lane);
    op->amount = number;
    assert_true(lanes_submit(seen.lanes, lane < 0 ? NULL : op->id, op));
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

/* Lets pass who stands there, until the given turn has begun and stands there. */
static void pass_gate_until_turn(size_t turn)
{
    pthread_mutex_lock(&seen.mutex);
    while (seen.n_turns < turn || seen.at_gate == 0) {
        seen.pass = seen.n_turns < turn && seen.at_gate > 0;
        pthread_cond_broadcast(&seen.changed);
        pthread_cond_wait(&seen.changed, &seen.mutex);
    }
    pthread_mutex_unlock(&seen.mutex);
}

static void what_gathers_in_many_lanes_is_served_together(void **state)
{
    (void)state;
    open_lanes(1, true);
    submit(0, 0);
    wait_at_gate(1);
    for (int i = 1; i <= 10; i++)
        submit(i, i % 5);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, 11);
    assert_int_equal(seen.n_turns, 2);
    assert_true(seen.turns[1].together);
    assert_int_equal(seen.turns[1].n_lanes, 5);
    assert_int_equal(seen.turns[1].n_ops, 10);
}

static void a_company_has_its_bounds(void **state)
{
    (void)state;
    open_lanes(1, true);
    submit(0, 0);
    wait_at_gate(1);
    int n = 1;
    for (int i = 1; i < LANES; i++)
        submit(n++, i);
    for (int i = 1; i <= LANES_SHARE; i++) /* too many for company */
        submit(n++, 2);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, n);
    assert_true(seen.turns[1].together);
    assert_int_equal(seen.turns[1].n_lanes, 1);
    assert_false(seen.turns[2].together);
    assert_int_equal(seen.turns[2].n_ops, LANES_SHARE + 1);
    assert_int_equal(seen.turns[3].n_lanes, LANES_TOGETHER);
    assert_int_equal(seen.turns[4].n_lanes, LANES - 3 - LANES_TOGETHER);
}

static void who_came_first_is_served_first_in_company_or_not(void **state)
{
    (void)state;
    open_lanes(1, true);
    submit(0, 0);
    wait_at_gate(1);
    submit(1, -1);
    submit(2, 2);
    submit(3, -1);
    submit(4, 4);
    open_gate();
    lanes_close(seen.lanes);
    static const bool together[] = {true, false, true, false};
    assert_int_equal(seen.n_turns, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(seen.turns[i].together, together[i]);
    assert_int_equal(seen.turns[2].n_lanes, 2);
}

static void a_company_has_no_more_operations_than_a_batch(void **state)
{
    (void)state;
    open_lanes(1, true);
    submit(0, 0);
    wait_at_gate(1);
    int n = 1;
    for (int i = 1; i <= LANES_TOGETHER; i++)
        for (int each = 0; each < LANES_SHARE - 1; each++)
            submit(n++, i);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, n);
    assert_int_equal(seen.turns[1].n_ops, BATCH / (LANES_SHARE - 1) * (LANES_SHARE - 1));
    assert_int_equal(seen.turns[1].largest, LANES_SHARE - 1);
}

static void what_is_left_is_served_next_and_by_itself(void **state)
{
    (void)state;
    open_lanes(1, true);
    seen.leaves = "l2";
    submit(0, 0);
    wait_at_gate(1);
    for (int i = 1; i <= 3; i++)
        submit(i, i);
    submit(4, 2);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, 5);
    assert_false(seen.disorder);
    assert_int_equal(seen.n_turns, 3);
    assert_int_equal(seen.turns[1].n_lanes, 3);
    assert_false(seen.turns[2].together);
    assert_int_equal(seen.turns[2].n_ops, 2); /* both of lane 2 */
}

static void a_lane_that_was_left_once_comes_in_company_again(void **state)
{
    (void)state;
    open_lanes(1, true);
    seen.leaves = "l2";
    submit(0, 2);
    pass_gate_until_turn(2);
    submit(1, 2); /* while the first is served by itself */
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(seen.n_turns, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(seen.turns[i].together, i % 2 == 0);
}

/* Those who are served together may not fill all threads: what comes meanwhile gathers, and who
 * comes by itself is served. */
static void companies_leave_threads_to_others(void **state)
{
    (void)state;
    open_lanes(4, true);
    submit(0, 0);
    wait_at_gate(1);
    submit(1, 1);
    wait_at_gate(2);
    for (int i = 2; i < 12; i++)
        submit(i, i);
    submit(12, -1);
    wait_at_gate(3);
    submit(13, -1);
    wait_at_gate(4);
    pthread_mutex_lock(&seen.mutex);
    size_t together = 0, turns = seen.n_turns;
    for (size_t i = 0; i < turns; i++)
        together += seen.turns[i].together;
    pthread_mutex_unlock(&seen.mutex);
    open_gate();
    lanes_close(seen.lanes);
    assert_int_equal(turns, 4);
    assert_int_equal(together, 2);
    assert_int_equal(seen.served, 14);
    assert_int_equal(seen.turns[4].n_lanes, 10);
}

static void each_lane_keeps_its_order_whatever_is_left(void **state)
{
    (void)state;
    unsigned random = 1;
    open_lanes(8, false);
    seen.leaves_every = 3;
    for (int i = 0; i < OPS_MAX; i++) {
        random = random * 1103515245u + 12345u;
        int lane = (int)(random >> 16) % (LANES + LANES / 4);
        submit(i, lane < LANES ? lane : -1);
    }
    lanes_close(seen.lanes);
    assert_int_equal(seen.served, OPS_MAX);
    assert_false(seen.overlap);
    assert_false(seen.disorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gathers_in_many_lanes_is_served_together),
        cmocka_unit_test(a_company_has_its_bounds),
        cmocka_unit_test(who_came_first_is_served_first_in_company_or_not),
        cmocka_unit_test(a_company_has_no_more_operations_than_a_batch),
        cmocka_unit_test(what_is_left_is_served_next_and_by_itself),
        cmocka_unit_test(a_lane_that_was_left_once_comes_in_company_again),
        cmocka_unit_test(companies_leave_threads_to_others),
        cmocka_unit_test(each_lane_keeps_its_order_whatever_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
