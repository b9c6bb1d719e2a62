/* Idempotency keys: one effect per key, and one answer. */
#include "business.h"
#include "service_rig.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

static int start(void **state)
{
    struct op op;
    (void)state;
    rig_reset("redis-token");
    if (rig_start() != 0)
        return -1;
    return op_run(rig.service, op_put_item(&op, "1", 100, "")) == 200 ? 0 : -1;
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

TEST_THAT(same_key_and_request_replays_the_same_bytes)
{
    struct op first, again;
    assert_int_equal(op_run(rig.service, op_order(&first, 7)), 201);
    assert_false(first.answer.replayed);
    assert_int_equal(op_run(rig.service, op_order(&again, 7)), 201);
    assert_true(again.answer.replayed);
    assert_string_equal(again.answer.body, first.answer.body);
    assert_int_equal(rig_stock(), 99);
}

/* So it is sent at once, even if another client holds the lock or the lock server is away. */
TEST_THAT(stored_answer_takes_no_lock)
{
    struct op first, again;
    assert_int_equal(op_run(rig.service, op_order(&first, 7)), 201);
    assert_true(first.point_us[OP_ACQUIRED] > 0);
    assert_int_equal(op_run(rig.service, op_order(&again, 7)), 201);
    assert_int_equal(again.point_us[OP_ACQUIRED], 0);
}

/* Runs SQL without the service. */
static void sql(const char *text)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(rig.config.db + strlen("sqlite:"), &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

TEST_THAT(key_that_cannot_be_looked_up_takes_no_lock)
{
    struct op op;
    sql("ALTER TABLE idempotency RENAME TO elsewhere");
    op_run(rig.service, op_order(&op, 7));
    assert_int_equal(op.answer.problem, PROBLEM_UNAVAILABLE);
    assert_int_equal(op.point_us[OP_ACQUIRED], 0);
    sql("ALTER TABLE elsewhere RENAME TO idempotency");
    assert_int_equal(op_run(rig.service, op_order(&op, 7)), 201);
    assert_int_equal(rig_stock(), 99);
}

TEST_THAT(refusal_is_replayed_too)
{
    struct op first, again;
    op_make(&first, OP_PLACE_ORDER, "1", "u1", 101, 0);
    op_make(&again, OP_PLACE_ORDER, "1", "u1", 101, 0);
    snprintf(again.request_id, sizeof again.request_id, "another");
    op_run(rig.service, &first);
    struct op more;
    assert_int_equal(op_run(rig.service, op_put_item(&more, "1", 1000, "")), 200);
    op_run(rig.service, &again); /* the stock would suffice now */
    assert_int_equal(again.answer.problem, PROBLEM_SOLD_OUT);
    assert_true(again.answer.replayed);
    assert_string_equal(again.answer.body, first.answer.body);
}

TEST_THAT(key_of_another_request_is_refused)
{
    struct op first, other;
    assert_int_equal(op_run(rig.service, op_order(&first, 7)), 201);
    op_order(&other, 7);
    snprintf(other.request, sizeof other.request, "something else");
    op_run(rig.service, &other);
    assert_int_equal(other.answer.problem, PROBLEM_KEY_REUSED);
    assert_false(other.answer.replayed);
    assert_int_equal(rig_stock(), 99);
}

TEST_THAT(what_was_not_decided_is_not_stored)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "2", "u1", 1, 7)), 404);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", 100, "")), 200);
    assert_int_equal(op_run(rig.service, op_make(&op, OP_PLACE_ORDER, "2", "u1", 1, 7)), 201);
    assert_false(op.answer.replayed);
}

TEST_THAT(running_key_is_in_flight_for_others)
{
    struct op running, second, asking;
    op_order(&running, 7);
    gate_set(0, OP_DECIDED, running.request_id);
    ops_submit(rig.service, &running, 1);
    gate_wait(0);
    op_run(rig.service, op_order(&second, 7));
    assert_int_equal(second.answer.problem, PROBLEM_IN_FLIGHT);
    op_make(&asking, OP_GET_TRANSACTION, "", "", 0, 0);
    snprintf(asking.key, sizeof asking.key, "%s", running.key);
    op_run(rig.service, &asking);
    assert_int_equal(asking.answer.problem, PROBLEM_IN_FLIGHT);
    gate_open(0);
    ops_wait(&running, 1);
    assert_int_equal(running.answer.status, 201);
    op_run(rig.service, op_order(&second, 7));
    assert_true(second.answer.replayed);
    assert_int_equal(rig_stock(), 99);
}

static struct op *order_of(struct op *op, const char *caller, const char *item, int number)
{
    op_make(op, OP_PLACE_ORDER, item, "u1", 1, number);
    snprintf(op->caller, sizeof op->caller, "%s", caller);
    op_set_key(op, "same");
    return op;
}

/* Another caller's request under the same key runs beside it, and its own is all that can be asked.
 */
TEST_THAT(running_key_of_another_caller_does_not_show)
{
    struct op running, second, again, asking;
    assert_int_equal(op_run(rig.service, op_put_item(&second, "2", 100, "")), 200);
    order_of(&running, "ann", "1", 7);
    gate_set(0, OP_DECIDED, running.request_id);
    ops_submit(rig.service, &running, 1);
    gate_wait(0);
    order_of(&second, "bob", "2", 8);
    op_make(&asking, OP_GET_TRANSACTION, "", "", 0, 0);
    snprintf(asking.caller, sizeof asking.caller, "bob");
    op_set_key(&asking, "same");
    const int before = op_run(rig.service, &asking), beside = op_run(rig.service, &second),
              after = op_run(rig.service, &asking);
    gate_open(0); /* before an assertion fails: the held request is on this stack */
    ops_wait(&running, 1);
    assert_int_equal(before, 404);
    assert_int_equal(beside, 201);
    assert_int_equal(after, 200);
    assert_string_equal(asking.answer.body, second.answer.body);
    assert_int_equal(running.answer.status, 201);
    assert_int_equal(op_run(rig.service, order_of(&again, "ann", "1", 7)), 201);
    assert_true(again.answer.replayed);
    assert_string_equal(again.answer.body, running.answer.body);
    assert_int_equal(op_run(rig.service, order_of(&again, "", "1", 7)), 201); /* nobody's key */
    assert_false(again.answer.replayed);
    assert_int_equal(rig_stock(), 98);
}

TEST_THAT(what_became_of_a_key_can_be_asked)
{
    struct op first, asking;
    op_order(&first, 7);
    op_make(&asking, OP_GET_TRANSACTION, "", "", 0, 0);
    snprintf(asking.key, sizeof asking.key, "%s", first.key);
    assert_int_equal(op_run(rig.service, &asking), 404);
    assert_int_equal(op_run(rig.service, &first), 201);
    assert_int_equal(op_run(rig.service, &asking), 200);
    assert_string_equal(asking.answer.body, first.answer.body);
}

/* Two instances do not know each other's running requests; the table's unique key decides. One
 * instance learns it only when it commits a batch. The rest of that batch succeeds. */
TEST_THAT(key_that_two_instances_run_has_one_effect_and_one_answer)
{
    enum { BATCH = 3 };
    static struct op first, here, batch[BATCH];
    struct config config = rig.config;
    struct service *other;
    struct op op;
    rig_stop();
    rig.config.db_shared = config.db_shared = true;
    snprintf(config.instance, sizeof config.instance, "other");
    assert_int_equal(rig_start(), 0);
    assert_int_equal(service_open(&config, &business, &rig.seams, &other), 0);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 100, "sql-row")), 200);

    gate_set(0, OP_ACQUIRED, "request-1");
    ops_submit(other, op_order(&first, 1), 1);
    gate_wait(0);
    for (int i = 0; i < BATCH; i++) /* queue in one lane behind the first */
        op_order(&batch[i], 10 + i);
    ops_submit(other, batch, BATCH);
    gate_set(1, OP_ACQUIRED, batch[1].request_id);
    gate_open(0);
    gate_wait(1); /* the batch has found no stored answers */
    op_order(&here, 11);
    snprintf(here.request_id, sizeof here.request_id, "here");
    assert_int_equal(op_run(rig.service, &here), 201);
    gate_open(1);
    ops_wait(&first, 1);
    ops_wait(batch, BATCH);
    assert_int_equal(ops_count(batch, BATCH, 201), BATCH);
    assert_false(batch[0].answer.replayed);
    assert_true(batch[1].answer.replayed);
    assert_string_equal(batch[1].answer.body, here.answer.body);
    assert_false(batch[2].answer.replayed);
    assert_int_equal(rig_stock(), 100 - 4);
    assert_true(audit_is_clean(rig.service));
    service_close(other);
}

/* Three tenths of the requests are duplicates, some at the same time as the first. */
TEST_THAT(duplicates_under_load_have_one_effect_per_key)
{
    int n = getenv("TEST_FULL") ? 10000 : 600, keys = n * 7 / 10;
    struct op *ops = calloc((size_t)n, sizeof *ops), op;
    assert_non_null(ops);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", keys / 2, "")), 200);
    for (int i = 0; i < n; i++)
        op_order(&ops[i], i % keys);
    ops_run(rig.service, ops, (size_t)n);
    for (int i = 0; i < n; i++) { /* after "in flight" the request is sent again, as clients do */
        if (ops[i].answer.problem == PROBLEM_IN_FLIGHT)
            op_run(rig.service, op_order(&ops[i], i % keys));
    }
    int accepted = 0;
    for (int i = 0; i < n; i++) {
        assert_string_equal(ops[i].answer.body, ops[i % keys].answer.body);
        accepted += i < keys && ops[i].answer.status == 201;
    }
    assert_int_equal(accepted, keys / 2);
    assert_int_equal(rig_stock(), 0);
    assert_int_equal(audit_number(rig.service, "item:1", "duplicates"), 0);
    assert_true(audit_is_clean(rig.service));
    free(ops);
}
