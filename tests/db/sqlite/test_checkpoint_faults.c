/* Copying the log into the file fails (db/sqlite/sqlite_checkpoint.c). No acknowledged change is
 * lost.
 */
#include "child.h"
#include "fault_vfs.h"

#include <limits.h>

static int folder_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    *state = fixture;
    return 0;
}

static db_status change(struct fixture *fixture, int i, db_error *error)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    struct change change = {
        .delta = -1, .txn_id = key, .how = {.expected_version = -1}, .with_answer = true};
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    return db_run(fixture->store, work_change, &change, error);
}

/* Makes changes, of a few frames each, until n more checkpoints were requested. */
static int change_until_checkpoints(struct fixture *fixture, int from, uint64_t n)
{
    db_stats start, now;
    db_get_stats(fixture->store, &start);
    do {
        assert_int_equal(DB_OK, change(fixture, from++, NULL));
        db_get_stats(fixture->store, &now);
    } while (now.checkpoints < start.checkpoints + n);
    return from;
}

TEST_FIXTURE(folder_setup, fixture_teardown);

TEST_THAT(a_checkpoint_that_cannot_copy_hurts_nobody)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, &(db_options){.sync = DB_SYNC_NORMAL});
    fixture_account(fixture, "a", 1000);
    fault_arm((struct fault_plan){.kind = FAULT_FULL, .sticky = true, .database_only = true}, 1);
    int changes = change_until_checkpoints(fixture, 0, 2);
    assert_true(fault_fired > 0);
    fault_heal();
    changes = change_until_checkpoints(fixture, changes, 1);
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    assert_int_equal(1000 - changes, fixture_audit(fixture, "account:a").current);
    assert_int_equal(0, fixture_audit(fixture, "account:a").broken);
    assert_int_equal(changes, fixture_sql_int(fixture, "SELECT count(*) FROM idempotency"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
}

static void fail_the_flush_of_the_file(enum fault_event event, int flags, sqlite3_int64 at)
{
    (void)at;
    if (event == FAULT_FLUSHES && (flags & SQLITE_OPEN_MAIN_DB)) {
        atomic_store(&fault_watch, NULL); /* runs on the thread that copies */
        fault_arm((struct fault_plan){.kind = FAULT_IO, .database_only = true}, 1);
    }
}

static void copy_file(const char *from, const char *to)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* The kernel never writes the pages of the failed flush, so the file stays as it was. */
TEST_THAT(after_a_failed_flush_nothing_is_written_and_the_log_has_all)
{
    struct fixture *fixture = *state;
    char durable[PATH_MAX + 16];
    snprintf(durable, sizeof durable, "%s-durable", fixture->file);
    fixture_open(fixture, NULL);
    fixture_account(fixture, "a", 1000);
    fixture_close(fixture);
    copy_file(fixture->file, durable);

    int changes = 0;
    db_error error = {0};
    db_status status;
    fixture_open(fixture, &(db_options){.sync = DB_SYNC_NORMAL});
    atomic_store(&fault_watch, fail_the_flush_of_the_file);
    while ((status = change(fixture, changes, &error)) == DB_OK)
        assert_true(++changes < 1000);
    assert_int_equal(status, DB_FAILED);
    assert_non_null(strstr(error.message, "a flush failed"));
    assert_int_equal(db_ping(fixture->store), DB_FAILED);
    assert_int_equal(change(fixture, changes, NULL), DB_FAILED); /* for good */
    fixture_close(fixture);

    copy_file(durable, fixture->file);
    fixture_open(fixture, NULL);
    assert_int_equal(db_ping(fixture->store), DB_OK);
    for (int i = 0; i < changes; i++)
        assert_true(fixture_is_stored(fixture, i));
    assert_int_equal(DB_OK, change(fixture, changes, NULL));
    assert_true(fixture_audit(fixture, "account:a").ok);
    assert_int_equal(1000 - changes - 1, fixture_audit(fixture, "account:a").current);
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
