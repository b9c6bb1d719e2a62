/* What waits for a client that has gone ends at once and has no effect; what waits for others
 * stays. Audits are few, and end. */
#include "answer.h"
#include "business.h"
#include "service_rig.h"
#include "service_private.h"
#include "tests.h"

#include <sched.h>

enum { N = 6, AUDITS = 17 /* one that runs, and those that may wait */ };

static struct op held, waiting[N];

static int prepare(void **state)
{
    (void)state;
    rig_reset("mutex");
    rig.config.workers = 1;
    return 0;
}

/* Operation 0 is held in its critical section by the only worker, the others wait. */
static void start_with_a_queue(void)
{
    struct op op;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", 100, "")), 200);
    gate_set(0, OP_READ, "request-0");
    ops_submit(rig.service, op_order(&held, 0), 1);
    gate_wait(0);
    for (int i = 0; i < N; i++)
        op_make(&waiting[i], OP_PLACE_ORDER, i % 2 == 0 ? "1" : "2", "u1", 1, 1 + i);
    ops_submit(rig.service, waiting, N);
}

static void the_queue_of_the_gone_is_empty(void)
{
    struct op again;
    for (int i = 0; i < N; i++)
        if (i != 2 && i != 3)
            atomic_store(&waiting[i].abandoned, true);
    service_withdraw(rig.service);
    ops_wait(waiting, 2);
    ops_wait(&waiting[4], 2);
    assert_int_equal(ops_count(waiting, N, 0), N); /* no answer: neither yet, nor ever */
    assert_int_equal(lanes_waiting(rig.service->writes), 2);
    assert_true(rig_metrics_contain(
        "seckill_operations_total{kind=\"place-order\",outcome=\"abandoned\"} 4\n"));

    op_make(&again, OP_PLACE_ORDER, "1", "u1", 1, 1); /* the key of the first one is free */
    ops_submit(rig.service, &again, 1);
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(&waiting[2], 2);
    ops_wait(&again, 1);
    assert_int_equal(ops_count(&waiting[2], 2, 201), 2);
    assert_int_equal(again.answer.status, 201);
    assert_false(again.answer.replayed);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 100 - 3);
    assert_int_equal(rig_number(OP_GET_ITEM, "2", "stock"), 100 - 1);
    assert_true(audit_is_clean(rig.service));
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(prepare, rig_clear);

TEST_THAT(with_lanes_the_gone_leave_the_queue)
{
    start_with_a_queue();
    the_queue_of_the_gone_is_empty();
}

TEST_THAT(without_lanes_the_gone_leave_the_queue)
{
    rig.config.lanes = false;
    start_with_a_queue();
    the_queue_of_the_gone_is_empty();
}

/* What a worker has begun goes on: its commit may be on its way. */
TEST_THAT(what_has_begun_goes_on)
{
    start_with_a_queue();
    atomic_store(&held.abandoned, true);
    service_withdraw(rig.service);
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(waiting, N);
    assert_int_equal(held.answer.status, 201);
    assert_int_equal(ops_count(waiting, N, 201), N);
}

/* The auditor is held before its first audit. */
static void start_audits(struct op *audits, size_t n)
{
    assert_int_equal(rig_start(), 0);
    gate_set(0, OP_WAITING, "request-0");
    for (size_t i = 0; i < n; i++)
        op_make(&audits[i], OP_AUDIT, "", "", 0, (int)i);
    ops_submit(rig.service, audits, 1);
    gate_wait(0);
    ops_submit(rig.service, audits + 1, n - 1);
}

TEST_THAT(few_audits_wait_and_the_gone_give_way)
{
    static struct op audits[AUDITS];
    struct op more;
    start_audits(audits, AUDITS);
    op_make(&more, OP_AUDIT, "", "", 0, AUDITS);
    assert_false(service_submit(rig.service, &more));
    assert_int_equal(more.answer.problem, PROBLEM_OVERLOADED);

    for (int i = 0; i < AUDITS; i++)
        atomic_store(&audits[i].abandoned, true);
    service_withdraw(rig.service);
    ops_wait(audits + 1, AUDITS - 1);
    ops_submit(rig.service, &more, 1);
    gate_open(0);
    ops_wait(audits, 1);
    ops_wait(&more, 1);
    assert_int_equal(ops_count(audits, AUDITS, 0), AUDITS);
    assert_int_equal(more.answer.status, 200);
    answer_free(&more.answer);
}

/* Audits may take minutes: a drain gives them a second. */
TEST_THAT(a_drain_ends_audits)
{
    static struct op audits[2];
    start_audits(audits, 2);
    assert_false(service_drain(rig.service, 600000));
    gate_open(0);
    ops_wait(audits, 2);
    assert_int_equal(ops_count_problem(audits, 2, PROBLEM_DRAINING), 2);
    assert_true(service_drain(rig.service, 600000));
}
