/*
 * Locks whose transaction is undecided, in cases that test_undecided.c does not have: a PUT, the
 * task that closes orders, a full keeper, a service that ends meanwhile.
 */
#include "guard.h"
#include "lateness.h"
#include "process.h"
#include "undecided_plan.h"
#include "tests.h"

#include "keeper.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FIRST = 1000, BUSY_WAIT_MS = 40, MANY = KEEPER_LOCK_SETS_MAX + 10 };

static void start(const char *guard)
{
    watch_releases();
    rig_reset(guard);
    rig.config.lanes = false;
    assert_int_equal(rig_start(), 0);
}

static void put_account(const char *id, int64_t balance, int status)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_account(&op, id, balance, "")), status);
}

static void expect_kept_out(const char *account)
{
    struct op op;
    op_make(&op, OP_CHANGE_BALANCE, account, "", -1, 77);
    op.deadline_us = now_us() + BUSY_WAIT_MS * 1000;
    assert_int_equal(op_run(rig.service, &op), 503);
    assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
}

static void expect_none_released(void)
{
    assert_int_equal(atomic_load(&plan.releases), 0);
    assert_int_equal(atomic_load(&plan.early), 0);
}

static void decide(void)
{
    atomic_store(&plan.undecided, false);
    wait_until_given_back();
    assert_int_equal(atomic_load(&plan.early), 0);
}

/* -- PUT --------------------------------------------------------------------------------------- */

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(NULL, rig_clear);

TEST_THAT(a_put_is_answered_by_what_became_of_it)
{
    for (int outcome = 0; outcome < OUTCOMES; outcome++) {
        fprintf(stderr, "%s\n", outcome_texts[outcome]);
        start("redis-token");
        put_account("a", FIRST, 200);
        plan_from_now((enum outcome)outcome);
        atomic_store(&plan.armed, true);
        put_account("a", 500, outcome == COMMITTED ? 200 : 503);
        if (outcome >= LATE) {
            expect_kept_out("a");
            expect_none_released();
            decide();
        }
        assert_int_equal(rig_number(OP_GET_ACCOUNT, "a", "balance"),
                         is_committed((enum outcome)outcome) ? 500 : FIRST);
        put_account("a", 300, 200);
        assert_int_equal(rig_number(OP_GET_ACCOUNT, "a", "balance"), 300);
        assert_true(audit_is_clean(rig.service));
        rig_stop();
    }
}

TEST_THAT(a_put_that_makes_the_row_is_answered_by_what_became_of_it)
{
    struct op op;
    for (int outcome = COMMITTED; outcome <= UNDONE; outcome++) {
        start("redis-token");
        plan_from_now((enum outcome)outcome);
        atomic_store(&plan.armed, true);
        assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 7, "")),
                         outcome == COMMITTED ? 200 : 503);
        assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ITEM, "1", "", 0, 0)),
                         outcome == COMMITTED ? 200 : 404);
        rig_stop();
    }
}

/* -- the closing task -------------------------------------------------------------------------- */

static bool is_closed(const char *order)
{
    struct op op;
    char text[16];
    assert_int_equal(op_run(rig.service, op_make(&op, OP_GET_ORDER, order, "", 0, 0)), 200);
    assert_true(answer_text(&op, "state", text, sizeof text));
    return strcmp(text, "closed") == 0;
}

TEST_THAT(the_closing_task_keeps_its_locks_too)
{
    struct op op;
    char order[DB_ID_MAX + 1];
    for (int outcome = LATE; outcome < OUTCOMES; outcome++) {
        watch_releases();
        rig_reset("redis-token");
        rig.config.lanes = false;
        rig.config.close_orders_ms = 20;
        assert_int_equal(rig_start(), 0);
        op_put_item(&op, "1", 5, "");
        op.reserve_s = 1;
        assert_int_equal(op_run(rig.service, &op), 200);
        assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
        assert_true(answer_text(&op, "order_id", order, sizeof order));
        plan_from_now((enum outcome)outcome);
        atomic_store(&plan.armed, true);
        while (!rig_metrics_contain("\nseckill_undecided_locks 2\n")) /* the order's, the task's */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        expect_none_released();
        op_order(&op, 2);
        op.deadline_us = now_us() + BUSY_WAIT_MS * 1000;
        assert_int_equal(op_run(rig.service, &op), 503);
        assert_int_equal(op.answer.problem, PROBLEM_LOCK_TIMEOUT);
        expect_none_released();
        decide();
        while (!is_closed(order))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(rig_number(OP_GET_ITEM, "1", "stock"), 5); /* given back once */
        assert_true(audit_is_clean(rig.service));
        rig_stop();
    }
}

/* -- a full keeper ----------------------------------------------------------------------------- */

TEST_THAT(where_all_places_are_taken_workers_wait_with_their_locks)
{
    static struct op ops[MANY];
    char id[16], full[64];
    const int64_t start_ms = test_now_ms();
    start("redis-token");
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "a%d", i);
        put_account(id, FIRST, 200);
        op_make(&ops[i], OP_CHANGE_BALANCE, id, "", -100, i);
    }
    plan_from_now(SILENT);
    atomic_store(&plan.always, true);
    ops_submit(rig.service, ops, MANY);
    snprintf(full, sizeof full, "\nseckill_undecided_locks %d\n", KEEPER_LOCK_SETS_MAX);
    while (!rig_metrics_contain(full))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* time for a wrong release */
    expect_none_released();
    atomic_store(&plan.always, false);
    atomic_store(&plan.undecided, false);
    ops_wait(ops, MANY);
    wait_until_given_back();
    assert_int_equal(atomic_load(&plan.early), 0);
    int written = 0; /* without the few whose lock server was late: they got no lock */
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "a%d", i);
        const int64_t balance = rig_number(OP_GET_ACCOUNT, id, "balance");
        assert_true(balance == FIRST - 100 || (balance == FIRST && ops[i].answer.status == 503));
        written += balance != FIRST;
    }
    assert_true(written == MANY || lateness_since(start_ms) > GUARD_COMMAND_TIMEOUT_MS / 4);
    assert_true(written > KEEPER_LOCK_SETS_MAX); /* some worker has waited */
    assert_int_equal(atomic_load(&plan.releases), written);
    assert_true(audit_is_clean(rig.service));
    rig_stop();
}

/* -- the end ----------------------------------------------------------------------------------- */

TEST_THAT(what_is_undecided_at_the_end_is_left_locked)
{
    struct op op;
    start("redis-token");
    put_account("a", FIRST, 200);
    plan_from_now(NEVER);
    atomic_store(&plan.armed, true);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_CHANGE_BALANCE, "a", "", -100, 1)), 503);
    rig_stop(); /* the store is closed with the transaction undecided */
    expect_none_released();
    assert_int_equal(rig_start(), 0); /* another process, on the same Redis */
    expect_kept_out("a");
    atomic_store(&plan.undecided, false);
    rig_stop();
}
