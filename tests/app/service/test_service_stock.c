/* A stock change adds pieces to an item or takes them away, once for each key, while it is sold. */
#include "service_rig.h"
#include "stock_change.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROWD = 60, MEETING = 4 };

static struct op ops[CROWD];

static int start(void **state)
{
    rig_reset(*state);
    return rig_start();
}

static int start_without_lanes(void **state)
{
    rig_reset(*state);
    rig.config.lanes = false;
    return rig_start();
}

static struct op *op_change(struct op *op, int64_t delta, const char *reason, int number)
{
    op_make(op, OP_CHANGE_STOCK, "1", "", delta, number);
    snprintf(op->reason, sizeof op->reason, "%s", reason);
    snprintf(op->reference, sizeof op->reference, "note-%d", number);
    return op;
}

static void put_item(int64_t pieces)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", pieces, "")), 200);
}

static void order(int64_t pieces, int number, enum problem expected)
{
    struct op op;
    op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "1", "u1", pieces, number));
    assert_int_equal(op.answer.problem, expected);
}

static int64_t audited(const char *name)
{
    return audit_number(rig.service, "item:1", name);
}

static void pieces_that_come_are_sold_and_booked(void **state)
{
    struct op op;
    (void)state;
    put_item(10);
    order(8, 0, PROBLEM_NONE);
    order(4, 1, PROBLEM_SOLD_OUT);
    assert_int_equal(op_run(rig.service, op_change(&op, 5, "delivery", 2)), 201);
    assert_int_equal(answer_number(&op, "delta"), 5);
    assert_int_equal(answer_number(&op, "stock_before"), 2);
    assert_int_equal(answer_number(&op, "stock_after"), 7);
    assert_int_equal(answer_number(&op, "version"), 3);
    order(4, 3, PROBLEM_NONE);
    assert_int_equal(op_run(rig.service, op_change(&op, -1, "damage", 4)), 201);
    assert_int_equal(rig_stock(), 2);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "sold"), 12);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "initial_stock"), 10);
    assert_int_equal(audited("sold"), 12); /* more than there were at first */
    assert_int_equal(audited("restocked"), 4);
    assert_int_equal(audited("oversold"), 0);
    assert_int_equal(audited("ledger_sum"), -8);
    assert_true(audit_is_clean(rig.service));
    put_item(3); /* a new beginning */
    assert_int_equal(audited("restocked"), 0);
    assert_true(audit_is_clean(rig.service));
}

static void the_ledger_has_reason_and_reference(void **state)
{
    struct op op;
    (void)state;
    put_item(10);
    op_run(rig.service, op_change(&op, -3, "own-use", 7));
    op_make(&op, OP_GET_ITEM_LEDGER, "1", "", 0, 0);
    op.limit = 10;
    assert_int_equal(op_run(rig.service, &op), 200);
    assert_non_null(strstr(op.answer.body, "\"kind\":\"restock\""));
    assert_non_null(strstr(op.answer.body, "\"reason\":\"own-use\""));
    assert_non_null(strstr(op.answer.body, "\"reference\":\"note-7\""));
    free(op.answer.body); /* as long as it is, the service made it */
}

static void a_retried_key_acts_once(void **state)
{
    struct op op;
    (void)state;
    put_item(10);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(op_run(rig.service, op_change(&op, 5, "delivery", 1)), 201);
        assert_int_equal(op.answer.replayed, i == 1);
        assert_int_equal(answer_number(&op, "stock_after"), 15);
    }
    op_change(&op, 5, "delivery", 1);
    strcat(op.request, " of another intent");
    assert_int_equal(op_run(rig.service, &op), 422);
    for (int i = 0; i < 2; i++) { /* a refusal is kept, too */
        assert_int_equal(op_run(rig.service, op_change(&op, -16, "loss", 2)), 409);
        assert_int_equal(op.answer.replayed, i == 1);
    }
    assert_int_equal(rig_stock(), 15);
    assert_int_equal(audited("restocked"), 5);
    assert_true(audit_is_clean(rig.service));
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        int64_t delta;
        const char *reason;
        enum problem expected;
    } refused[] = {
        {-11, "count-correction", PROBLEM_STOCK},
        {-INT64_MAX, "count-correction", PROBLEM_STOCK},
        {INT64_MAX, "count-correction", PROBLEM_OUT_OF_RANGE},
        {0, "count-correction", PROBLEM_BAD_REQUEST},
        {1, "", PROBLEM_BAD_REQUEST},
        {1, "deliver", PROBLEM_BAD_REQUEST},
        {1, "Delivery", PROBLEM_BAD_REQUEST},
    };
    struct op op;
    (void)state;
    put_item(10);
    const int64_t version = rig_number(OP_GET_ITEM, "1", "version");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        op_run(rig.service, op_change(&op, refused[i].delta, refused[i].reason, (int)i));
        assert_int_equal(op.answer.problem, refused[i].expected);
    }
    snprintf(op_change(&op, 1, "delivery", 90)->id, sizeof op.id, "nonesuch");
    assert_int_equal(op_run(rig.service, &op), 404);
    assert_int_equal(rig_stock(), 10);
    assert_int_equal(rig_number(OP_GET_ITEM, "1", "version"), version);
    assert_int_equal(op_run(rig.service, op_change(&op, -10, "loss", 91)), 201); /* the last ones */
    assert_int_equal(op_run(rig.service, op_change(&op, INT64_MAX, "delivery", 92)), 201);
    assert_true(audit_is_clean(rig.service));
}

static void each_reason_goes_the_ways_of_the_table(void **state)
{
    struct op op;
    int64_t stock = 10;
    (void)state;
    put_item(stock);
    assert_true(n_stock_reasons >= 5);
    for (size_t i = 0; i < n_stock_reasons; i++) {
        const struct stock_reason *reason = &stock_reasons[i];
        assert_true(reason->comes || reason->goes);
        op_run(rig.service, op_change(&op, 1, reason->name, (int)(2 * i)));
        assert_int_equal(op.answer.status, reason->comes ? 201 : 400);
        op_run(rig.service, op_change(&op, -1, reason->name, (int)(2 * i + 1)));
        assert_int_equal(op.answer.status, reason->goes ? 201 : 400);
        stock += reason->comes - reason->goes;
        assert_int_equal(rig_stock(), stock);
    }
    assert_true(audit_is_clean(rig.service));
}

/* Orders, deliveries and losses at once: what is left follows from what was accepted. */
static void in_a_crowd_no_piece_is_lost(void **state)
{
    int64_t sold = 0, restocked = 0;
    char user[16];
    (void)state;
    put_item(10);
    for (int i = 0; i < CROWD; i++) {
        snprintf(user, sizeof user, "u%d", i);
        if (i % 3 == 0)
            op_make(&ops[i], OP_PLACE_ORDER, "1", user, 2, i);
        else
            op_change(&ops[i], i % 3 == 1 ? 1 : -1, "count-correction", i);
    }
    ops_run(rig.service, ops, CROWD);
    for (int i = 0; i < CROWD; i++) {
        const bool done = ops[i].answer.status == 201;
        assert_true(done || ops[i].answer.problem == PROBLEM_SOLD_OUT ||
                    ops[i].answer.problem == PROBLEM_STOCK);
        *(ops[i].kind == OP_PLACE_ORDER ? &sold : &restocked) += done ? ops[i].amount : 0;
    }
    assert_true(sold > 0);
    assert_int_equal(rig_stock(), 10 + restocked - sold);
    assert_int_equal(audited("sold"), sold);
    assert_int_equal(audited("restocked"), restocked);
    assert_true(audit_is_clean(rig.service));
}

/* All have read 10 before any of them writes. */
static void without_a_guard_the_audit_tells_what_was_lost(void **state)
{
    (void)state;
    put_item(10);
    for (int i = 0; i < MEETING; i++)
        if (i % 2 == 0)
            op_make(&ops[i], OP_PLACE_ORDER, "1", "u1", 1, i);
        else
            op_change(&ops[i], 5, "delivery", i);
    meeting_set(OP_READ, MEETING);
    ops_run(rig.service, ops, MEETING);
    points_clear();
    assert_int_equal(ops_count(ops, MEETING, 201), MEETING);
    const int64_t left = rig_stock(); /* as the last one wrote it */
    assert_true(left == 9 || left == 15);
    assert_int_equal(audited("sold"), 2);
    assert_int_equal(audited("restocked"), 10);
    assert_int_equal(audited("oversold"), 0); /* 18 are there to be sold */
    assert_int_equal(audited("lost_updates"), MEETING - 1);
    assert_int_equal(audited("lost_amount"), 18 - left);
}

#define UNDER(name, begin, guard)                                                                  \
    {                                                                                              \
#name " " #begin " " guard, name, begin, rig_clear, guard                                  \
    }
#define RULE(name, begin)                                                                          \
    UNDER(name, begin, "redis-token"), UNDER(name, begin, "redis-fair"),                           \
        UNDER(name, begin, "mutex"), UNDER(name, begin, "sql-row"),                                \
        UNDER(name, begin, "sql-atomic"), UNDER(name, begin, "sql-version")

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(pieces_that_come_are_sold_and_booked, start),
        UNDER(the_ledger_has_reason_and_reference, start, "redis-token"),
        RULE(a_retried_key_acts_once, start),
        RULE(what_cannot_be_is_refused_and_changes_nothing, start),
        UNDER(each_reason_goes_the_ways_of_the_table, start, "redis-token"),
        RULE(in_a_crowd_no_piece_is_lost, start),
        RULE(in_a_crowd_no_piece_is_lost, start_without_lanes),
        UNDER(without_a_guard_the_audit_tells_what_was_lost, start_without_lanes, "none"),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
