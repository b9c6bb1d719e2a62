/* The audit's answer if the store is damaged or cannot be read to its end. */
#include "fault_vfs.h"
#include "service_rig.h"
#include "answer.h"
#include "tests.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static int start(void **state)
{
    struct op op;
    (void)state;
    rig_reset("mutex");
    if (rig_start() != 0)
        return -1;
    assert_int_equal(op_run(rig.service, op_put_item(&op, "1", 5, "")), 200);
    assert_int_equal(op_run(rig.service, op_put_item(&op, "2", 5, "")), 200);
    return 0;
}

/* Changes the store without the service. */
static void damage(const char *sql)
{
    sqlite3 *store;
    char *message = NULL;
    assert_int_equal(SQLITE_OK, sqlite3_open(rig.config.db + strlen("sqlite:"), &store));
    if (sqlite3_exec(store, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(store);
}

static void audit_fails_and_says(enum problem problem, const char *text)
{
    struct op op;
    op_run(rig.service, op_make(&op, OP_AUDIT, "", "", 0, 0));
    assert_int_equal(op.answer.problem, problem);
    assert_int_equal(op.answer.status, 503);
    if (!strstr(op.answer.body, text))
        fail_msg("%s", op.answer.body);
    answer_free(&op.answer);
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

/* An audit that stopped silently at item 1 would never check item 2. */
TEST_THAT(a_resource_that_cannot_be_written_is_a_problem)
{
    damage("UPDATE items SET guard = CAST(x'ff41' AS TEXT) WHERE id = '1';"
           " UPDATE items SET stock = 99 WHERE id = '2'");
    audit_fails_and_says(PROBLEM_UNAVAILABLE, "audit of item:1: it cannot be written");
}

TEST_THAT(a_fork_that_cannot_be_written_is_a_problem)
{
    damage("INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
           " fence, guard, instance, kind, at_us) SELECT resource, epoch, version_before, 'fork',"
           " delta, before, after, fence, guard, CAST(x'ff41' AS TEXT), kind, at_us FROM ledger"
           " WHERE resource = 'item:1'");
    audit_fails_and_says(PROBLEM_UNAVAILABLE, "audit of item:1: it cannot be written");
}

TEST_THAT(an_audit_without_room_names_the_folder)
{
    damage("INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
           " fence, guard, instance, kind, at_us) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
           " SELECT i + 1 FROM n WHERE i < 100000)"
           " SELECT 'item:1', 1, i, i, 0, 5, 5, 0, '', '', 'order', 1 FROM n");
    fault_arm((struct fault_plan){.kind = FAULT_FULL, .sticky = true}, 1);
    audit_fails_and_says(PROBLEM_STORAGE_FULL, "no room to sort the ledger in $SQLITE_TMPDIR");
    fault_heal();
}

TEST_THAT(a_vanished_account_is_shown)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_put_account(&op, "u1", 895, "")), 200);
    damage("DELETE FROM accounts WHERE id = 'u1'");
    assert_int_equal(audit_number(rig.service, "account:u1", "missing"), 1);
    assert_false(audit_is_clean(rig.service));
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
