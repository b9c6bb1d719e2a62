/* A store that accepts no writes: the answer says why, and the service is not ready until writes
 * work again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "fault_vfs.h"
#include "service_rig.h"
#include "tests.h"

static int start(void **state)
{
    (void)state;
    struct op op;
    rig_reset("mutex");
    if (rig_start() != 0 || op_run(rig.service, op_put_item(&op, "1", 100, "")) != 200)
        return -1;
    answer_free(&op.answer);
    return 0;
}

static void expect_problem(struct op *op, enum problem problem, const char *id, const char *title)
{
    char text[64];
    op_run(rig.service, op);
    assert_int_equal(op->answer.problem, problem);
    assert_int_equal(op->answer.status, 503);
    assert_true(answer_text(op, "type", text, sizeof text));
    assert_string_equal(text, id);
    assert_true(answer_text(op, "title", text, sizeof text));
    assert_string_equal(text, title);
    answer_free(&op->answer);
}

static int is_ready(void)
{
    struct op op;
    int status = op_run(rig.service, op_make(&op, OP_READY, "", "", 0, 0));
    answer_free(&op.answer);
    return status;
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

TEST_THAT(a_full_disk_is_called_so)
{
    struct op op;
    const char *id = "/problems/storage-full", *title = "Storage full";
    assert_int_equal(is_ready(), 200);
    fault_arm((struct fault_plan){.kind = FAULT_FULL, .sticky = true}, 1);
    expect_problem(op_order(&op, 1), PROBLEM_STORAGE_FULL, id, title);
    expect_problem(op_put_item(&op, "2", 1, ""), PROBLEM_STORAGE_FULL, id, title);
    expect_problem(op_make(&op, OP_READY, "", "", 0, 0), PROBLEM_STORAGE_FULL, id, title);
    fault_heal();
    assert_int_equal(is_ready(), 200);
    assert_int_equal(op_run(rig.service, op_order(&op, 1)), 201);
    answer_free(&op.answer);
    assert_int_equal(rig_stock(), 99);
}

TEST_THAT(a_broken_disk_is_the_store_away)
{
    struct op op;
    fault_arm((struct fault_plan){.kind = FAULT_IO, .sticky = true}, 1);
    expect_problem(op_order(&op, 1), PROBLEM_UNAVAILABLE, "/problems/unavailable",
                   "Lock server or database away");
    fault_heal();
    assert_int_equal(is_ready(), 200);
}

TEST_THAT(each_state_of_the_store_has_its_problem)
{
    assert_int_equal(problem_of_store(DB_FULL), PROBLEM_STORAGE_FULL);
    assert_int_equal(problem_of_store(DB_READ_ONLY), PROBLEM_READ_ONLY);
    assert_int_equal(problem_of_store(DB_CROWDED), PROBLEM_CROWDED);
    assert_int_equal(problem_of_store(DB_UNAVAILABLE), PROBLEM_UNAVAILABLE);
    assert_int_equal(problem_of_store(DB_BUSY), PROBLEM_UNAVAILABLE);
    assert_int_equal(problem_of_store(DB_UNKNOWN), PROBLEM_UNAVAILABLE);
    assert_int_equal(problem_of_store(DB_FAILED), PROBLEM_UNAVAILABLE);
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
