/* Queue, drain and close: every accepted operation is answered, and every wait is bounded. */
#include "business.h"
#include "service_rig.h"
#include "service_private.h"
#include "tests.h"

#include <sched.h>

static int prepare(void **state)
{
    (void)state;
    rig_reset("mutex");
    return 0;
}

/* Starts the service and holds operation 0 in its critical section. */
static void start_and_hold(struct op *held)
{
    struct op op;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "")), 200);
    gate_set(0, OP_READ, "request-0");
    ops_submit(rig.service, op_order(held, 0), 1);
    gate_wait(0);
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(prepare, rig_clear);

TEST_THAT(full_queue_is_answered_at_once)
{
    struct op held, waiting[2], refused;
    rig.config.queue_max = 2;
    rig.config.workers = 1;
    start_and_hold(&held);
    op_order(&waiting[0], 1);
    op_order(&waiting[1], 2);
    ops_submit(rig.service, waiting, 2);
    op_order(&refused, 3);
    assert_false(service_submit(rig.service, &refused));
    assert_int_equal(refused.answer.problem, PROBLEM_OVERLOADED);
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(waiting, 2);
    assert_int_equal(ops_count(waiting, 2, 201), 2);
    assert_int_equal(op_run(rig.service, op_order(&refused, 3)), 201); /* its key is free */
    assert_false(refused.answer.replayed);
}

TEST_THAT(reads_do_not_wait_behind_locks)
{
    struct op held, waiting, op;
    rig.config.workers = 1;
    rig.config.lanes = false;
    start_and_hold(&held);
    ops_submit(rig.service, op_order(&waiting, 1), 1);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ITEM, "1", "", 0, 0)), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_READY, "", "", 0, 0)), 200);
    assert_true(audit_is_clean(rig.service));
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(&waiting, 1);
}

/* To count what was sold of an item may take long, and whoever asks needs no token. */
TEST_THAT(reads_of_one_item_hold_one_reader_and_share_its_answer)
{
    enum { WAITING = 5 };
    static struct op item[WAITING + 1], account;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&account, "1", 7, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_account(&account, "u1", 9, "")), 200);
    for (int i = 0; i <= WAITING; i++)
        op_make(&item[i], OP_GET_ITEM, i == 3 ? "nonesuch" : "1", "", 0, i);
    gate_set(0, OP_WAITING, item[0].request_id);
    ops_submit(rig.service, item, 1);
    gate_wait(0);
    ops_submit(rig.service, &item[1], WAITING);
    op_run(rig.service, op_make(&account, OP_GET_ACCOUNT, "u1", "", 0, 20));
    size_t waiting = lanes_waiting(rig.service->reads);
    gate_open(0);
    ops_wait(item, WAITING + 1);
    points_clear();
    assert_int_equal(account.answer.status, 200);
    assert_int_equal(waiting, WAITING - 1); /* the other reader was free */
    for (int i = 0; i <= WAITING; i++) {
        assert_int_equal(item[i].answer.status, i == 3 ? 404 : 200);
        if (i == 3)
            continue;
        assert_int_equal(answer_number(&item[i], "stock"), 7);
        if (i > 0) /* served together */
            assert_true(item[i].point_us[OP_WAITING] == item[1].point_us[OP_WAITING]);
    }
    rig_stop();
}

TEST_THAT(cold_item_does_not_wait_behind_a_hot_one)
{
    enum { N = 200 };
    static struct op hot[N];
    struct op held, op;
    rig.config.workers = 2;
    start_and_hold(&held);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", 1, "")), 200);
    for (int i = 0; i < N; i++)
        op_order(&hot[i], 1 + i);
    ops_submit(rig.service, hot, N);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "2", "u1", 1, 999)), 201);
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(hot, N);
}

TEST_THAT(drain_waits_for_what_was_accepted_and_takes_no_more)
{
    struct op held, late;
    start_and_hold(&held);
    assert_false(service_drain(rig.service, 1));
    op_order(&late, 1);
    assert_false(service_submit(rig.service, &late));
    assert_int_equal(late.answer.problem, PROBLEM_DRAINING);
    op_make(&late, OP_READY, "", "", 0, 0);
    assert_false(service_submit(rig.service, &late));
    gate_open(0);
    assert_true(service_drain(rig.service, 60000));
    assert_int_equal(held.answer.status, 201);
}

static void *close_service(void *arg)
{
    service_close(arg);
    return NULL;
}

TEST_THAT(close_without_drain_still_answers_everything)
{
    enum { N = 5 };
    static struct op waiting[N];
    struct op held;
    pthread_t closer;
    rig.config.batch = 1;
    start_and_hold(&held);
    for (int i = 0; i < N; i++)
        op_order(&waiting[i], 1 + i);
    ops_submit(rig.service, waiting, N);
    assert_int_equal(pthread_create(&closer, NULL, close_service, rig.service), 0);
    while (!atomic_load(&rig.service->closing))
        sched_yield();
    gate_open(0);
    ops_wait(&held, 1);
    ops_wait(waiting, N);
    pthread_join(closer, NULL);
    rig.service = NULL;
    assert_int_equal(held.answer.status, 201);
    assert_int_equal(ops_count_problem(waiting, N, PROBLEM_DRAINING), N);
}

TEST_THAT(service_does_not_open_on_a_bad_store)
{
    struct service *service = NULL;
    snprintf(rig.config.db, sizeof rig.config.db, "sqlite:/nonexistent/folder/x.db");
    assert_int_equal(service_open(&rig.config, &business, &rig.seams, &service), -1);
    snprintf(rig.config.db, sizeof rig.config.db, "oracle:x");
    assert_int_equal(service_open(&rig.config, &business, &rig.seams, &service), -1);
    assert_null(service);
}
