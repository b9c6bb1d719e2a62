/* The task that prunes old answers: a late retry is told that its request was done, and never acts
 * twice. */
#include "business.h"
#include "process.h"
#include "schema.h"
#include "service_rig.h"
#include "tests.h"
#include "upkeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

enum { WITHIN_MS = 60000, STOCK = 100, ORDERS = 150, REFUSALS = 10, MANY = 200 };

static bool lanes;

static int start(void **state)
{
    struct op op;
    (void)state;
    rig_reset("redis-token");
    rig.config.key_retention_s = 1;
    rig.config.lanes = lanes;
    if (rig_start() != 0)
        return -1;
    return op_run(rig.service, op_put_item(&op, "1", STOCK, "")) == 200 ? 0 : -1;
}

/* The answer that GET /v1/transactions/{key} gives. */
static enum problem transaction(const struct op *of)
{
    struct op op;
    op_make(&op, OP_GET_TRANSACTION, "", "", 0, 0);
    snprintf(op.key, sizeof op.key, "%s", of->key);
    op_run(rig.service, &op);
    return op.answer.problem;
}

struct wanted {
    const struct op *of;
    enum problem problem;
};

static bool is_told(void *arg)
{
    const struct wanted *wanted = arg;
    return transaction(wanted->of) == wanted->problem;
}

static void await(const struct op *of, enum problem problem)
{
    struct wanted wanted = {of, problem};
    assert_true(wait_until(is_told, &wanted, WITHIN_MS));
}

TEST_FIXTURE(start, rig_clear);

TEST_THAT(a_late_retry_is_told_that_it_was_done_and_never_acts_again)
{
    struct op first, again;
    assert_int_equal(op_run(rig.service, op_order(&first, 7)), 201);
    await(&first, PROBLEM_ALREADY_DONE);
    assert_int_equal(op_run(rig.service, op_order(&again, 7)), 409);
    assert_int_equal(again.answer.problem, PROBLEM_ALREADY_DONE);
    assert_non_null(strstr(again.answer.body, "answered 201"));
    assert_false(again.answer.replayed);
    op_make(&again, OP_PLACE_ORDER, "1", "u1", 2, 7); /* what was asked is not known any more */
    op_run(rig.service, &again);
    assert_int_equal(again.answer.problem, PROBLEM_ALREADY_DONE);
    assert_int_equal(rig_stock(), STOCK - 1);
}

/* It moved nothing, so it may be decided anew. */
TEST_THAT(a_pruned_refusal_can_be_asked_again)
{
    struct op first, again;
    op_make(&first, OP_PLACE_ORDER, "1", "u1", STOCK + 1, 0);
    op_run(rig.service, &first);
    assert_int_equal(first.answer.problem, PROBLEM_SOLD_OUT);
    await(&first, PROBLEM_NOT_FOUND);
    op_make(&again, OP_PLACE_ORDER, "1", "u1", 1, 0);
    assert_int_equal(op_run(rig.service, &again), 201);
    assert_int_equal(rig_stock(), STOCK - 1);
}

static bool is_shown(void *line)
{
    return rig_metrics_contain(line);
}

/* More than two bites. */
TEST_THAT(every_old_answer_is_pruned_and_counted)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", ORDERS, "")), 200);
    for (int i = 0; i < ORDERS; i++)
        assert_int_equal(op_run(rig.service, op_order(&op, i)), 201);
    for (int i = 0; i < ORDERS; i++)
        await(op_order(&op, i), PROBLEM_ALREADY_DONE);
    char line[64];
    snprintf(line, sizeof line, "seckill_answers_pruned_total %d\n", ORDERS);
    assert_true(wait_until(is_shown, line, WITHIN_MS)); /* counted after the commit */
    assert_int_equal(rig_stock(), 0);
}

static void refuse(struct op *op, int key)
{
    op_make(op, OP_PLACE_ORDER, "1", "u1", STOCK + 1, key);
    op_run(rig.service, op);
    assert_int_equal(op->answer.problem, PROBLEM_SOLD_OUT);
}

/* However many are refused, the newest refusals are replayed, and the others may be asked again. */
TEST_THAT(refusals_beyond_a_number_go_the_oldest_first)
{
    struct op op, done, oldest;
    rig_stop();
    rig.config.key_retention_s = 0;
    rig.config.refusals_max = REFUSALS;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(op_run(rig.service, op_order(&done, MANY)), 201);
    for (int i = 0; i < MANY; i++)
        refuse(i == 0 ? &oldest : &op, i);
    await(&oldest, PROBLEM_NOT_FOUND);
    await(op_make(&op, OP_PLACE_ORDER, "1", "u1", STOCK + 1, MANY - REFUSALS - 1),
          PROBLEM_NOT_FOUND); /* more than one bite */
    for (int i = MANY - REFUSALS; i < MANY; i++) {
        refuse(&op, i);
        assert_true(op.answer.replayed);
    }
    op_order(&op, 0); /* the key of the oldest */
    assert_int_equal(op_run(rig.service, &op), 201);
    assert_false(op.answer.replayed);
    assert_int_equal(op_run(rig.service, op_order(&done, MANY)), 201);
    assert_true(done.answer.replayed);
    assert_int_equal(rig_stock(), STOCK - 2);
}

static void drop_index(void)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(strchr(rig.config.db, ':') + 1, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "DROP INDEX " SCHEMA_REFUSALS, NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(handle);
}

/* How often the file says it. */
static int count_said(const char *path, const char *what)
{
    char text[4096];
    int n = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static bool is_said(void *path)
{
    return count_said(path, "no index of them") > 0;
}

/* An earlier program made the store. */
TEST_THAT(without_its_index_the_task_rests_and_says_so)
{
    struct op op, oldest;
    char path[512];
    db_versions versions;
    rig_stop();
    rig.config.key_retention_s = 0;
    rig.config.refusals_max = REFUSALS;
    drop_index();
    snprintf(path, sizeof path, "%s.log", strchr(rig.config.db, ':') + 1);
    const int errors = dup(STDERR_FILENO), log = open(path, O_CREAT | O_WRONLY, 0600);
    dup2(log, STDERR_FILENO);
    close(log);
    assert_int_equal(rig_start(), 0);
    for (int i = 0; i < MANY; i++)
        refuse(i == 0 ? &oldest : &op, i);
    const bool said = wait_until(is_said, path, WITHIN_MS);
    const bool kept = transaction(&oldest) != PROBLEM_NOT_FOUND;
    rig_stop();
    dup2(errors, STDERR_FILENO);
    close(errors);
    assert_true(said);
    assert_true(kept);
    assert_int_equal(count_said(path, "no index of them"), 1);
    assert_int_equal(db_migrate(rig.config.db, &versions, NULL), DB_OK);
    assert_int_equal(rig_start(), 0);
    await(&oldest, PROBLEM_NOT_FOUND);
}

int main(void)
{
    int failed = tests_run_as("lanes off", rig_open, rig_close);
    lanes = true;
    return failed + tests_run_as("lanes on", rig_open, rig_close);
}
