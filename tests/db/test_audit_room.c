/* An audit sorts on disk what does not fit into memory. If the disk has no room, it says so. SQLite
 * only: there the reader sorts. */
#include "damage.h"
#include "fault_vfs.h"

TEST_THAT_WITH(an_audit_without_room_names_the_folder, fixture_setup, fixture_teardown)
{
    struct fixture *fixture = *state;
    db_error error = {.message = ""};
    db_audit_row row;
    fixture_account(fixture, "a", 1000);
    fixture_sql(fixture,
                "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after,"
                " fence, guard, instance, kind, at_us) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                " SELECT i + 1 FROM n WHERE i < 100000)"
                " SELECT 'account:a', 1, i, i, 0, 1000, 1000, 0, '', '', 'change', 1 FROM n");
    fixture_sql(fixture, "UPDATE accounts SET version = 100001");
    fault_arm((struct fault_plan){.kind = FAULT_FULL, .sticky = true}, 1);
    assert_int_equal(DB_FULL, db_audit(fixture->reader, NULL, keep_audit_row, &row, &error));
    assert_int_equal(DB_FULL, error.status);
    assert_non_null(strstr(error.message, "$SQLITE_TMPDIR"));
    assert_non_null(strstr(error.message, "disk is full"));
    fault_heal();
    row = fixture_audit(fixture, "account:a");
    assert_int_equal(0, row.broken);
    assert_int_equal(100001, row.unchained); /* rows that nobody sealed, and the chain */
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
