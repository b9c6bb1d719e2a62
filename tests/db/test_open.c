/* Opening a store: refusals and their messages, exclusive use of the file, change of its mode. */
#include "sqlite_sql.h"
#include "child.h"

#include <fcntl.h>
#include <sys/stat.h>

static int folder_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    *state = fixture;
    return 0;
}

static void expect_refused(struct fixture *fixture, db_status expected, bool shared,
                           const char *expected_message)
{
    db_error error = {0};
    db *store = NULL;
    db_options options = {.url = fixture->url, .shared_file = shared};
    assert_int_equal(expected, db_open(&options, &store, &error));
    assert_null(store);
    assert_int_equal(expected, error.status);
    if (!strstr(error.message, expected_message))
        fail_msg("\"%s\" does not say \"%s\"", error.message, expected_message);
}

TEST_FIXTURE(folder_setup, fixture_teardown);

TEST_THAT(an_url_that_names_no_file_is_invalid)
{
    static const char *const urls[] = {"oracle:x", "sqlite",          "",
                                       "sqlite:",  "sqlite::memory:", "sqlite:file:x?a=b"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        db *store = NULL;
        db_error error = {0};
        assert_int_equal(DB_INVALID, db_open(&(db_options){.url = urls[i]}, &store, &error));
        assert_true(error.message[0] != '\0');
    }
    db *store = NULL;
    assert_int_equal(DB_INVALID,
                     db_open(&(db_options){.url = "sqlite:x", .busy_ms = -1}, &store, NULL));
    const int64_t long_ms[] = {DB_BUSY_MS_MAX + 1, INT64_MAX / 1000, INT64_MAX};
    for (size_t i = 0; i < sizeof long_ms / sizeof *long_ms; i++)
        assert_int_equal(
            DB_INVALID,
            db_open(&(db_options){.url = "sqlite:x", .busy_ms = long_ms[i]}, &store, NULL));
}

TEST_THAT(a_missing_folder_is_named)
{
    struct fixture *fixture = *state;
    snprintf(fixture->url, sizeof fixture->url, "sqlite:%s/no/store.db", fixture->folder);
    expect_refused(fixture, DB_UNAVAILABLE, false, "No such file or directory");
}

TEST_THAT(somebody_elses_database_is_left_alone)
{
    struct fixture *fixture = *state;
    fixture_sql(fixture, "CREATE TABLE theirs (x)");
    expect_refused(fixture, DB_INVALID, false, "not one of this service");
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM sqlite_schema"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT journal_mode = 'delete'"
                                                 " FROM pragma_journal_mode"));
}

TEST_THAT(a_file_that_is_no_database_is_invalid)
{
    struct fixture *fixture = *state;
    FILE *file = fopen(fixture->file, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("not a database\n", file);
    fclose(file);
    expect_refused(fixture, DB_INVALID, false, "not a database");
}

TEST_THAT(another_schema_version_is_invalid)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, NULL);
    fixture_close(fixture);
    fixture_sql(fixture, "PRAGMA user_version = 99");
    expect_refused(fixture, DB_INVALID, false, "schema version 99");
}

TEST_THAT(a_store_answers_pings)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, NULL);
    assert_int_equal(DB_OK, db_ping(fixture->store));
}

/* Otherwise SQLite would read each live order of an item, which takes four times as long for a
 * million orders. */
TEST_THAT(live_orders_are_counted_from_their_index_alone)
{
    static const char *const plans[] = {
#define PLAN(use, name, text) [SQL_##name] = "EXPLAIN QUERY PLAN " text,
        SQLITE_SQL_MAP(PLAN)
#undef PLAN
    };
    static const enum sqlite_sql counting[] = {SQL_READ_BOUGHT, SQL_READ_SOLD};
    struct fixture *fixture = *state;
    sqlite3 *handle;
    fixture_open(fixture, NULL);
    fixture_close(fixture);
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &handle));
    for (size_t i = 0; i < sizeof counting / sizeof *counting; i++) {
        sqlite3_stmt *plan;
        assert_int_equal(SQLITE_OK,
                         sqlite3_prepare_v2(handle, plans[counting[i]], -1, &plan, NULL));
        assert_int_equal(SQLITE_ROW, sqlite3_step(plan));
        assert_non_null(
            strstr((const char *)sqlite3_column_text(plan, 3), "USING COVERING INDEX orders_live"));
        sqlite3_finalize(plan);
    }
    sqlite3_close(handle);
}

TEST_THAT(what_was_stored_is_there_after_reopening)
{
    struct fixture *fixture = *state;
    db_item item;
    fixture_open(fixture, NULL);
    fixture_item(fixture, "1", 100);
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "1", &item));
    assert_int_equal(100, item.stock);
}

/* A log and its index are there while the store is open, a journal while a shared one is. */
TEST_THAT(nobody_else_may_read_the_files_of_a_store)
{
    struct fixture *fixture = *state;
    mode_t umask_before = umask(022);
    for (int shared = 0; shared < 2; shared++) {
        int files = 0;
        fixture_open(fixture, &(db_options){.shared_file = shared});
        fixture_item(fixture, shared ? "1" : "2", 100);
        DIR *folder = opendir(fixture->folder);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            struct stat about;
            assert_int_equal(0, fstatat(dirfd(folder), entry->d_name, &about, 0));
            if (!S_ISREG(about.st_mode))
                continue;
            files++;
            if ((about.st_mode & 0777) != 0600)
                fail_msg("%s: mode %o", entry->d_name, about.st_mode & 0777);
        }
        closedir(folder);
        fixture_close(fixture);
        assert_true(files >= 3);
    }
    umask(umask_before);
}

/* -- use of the file by several processes --------------------------------------------------------
 */

struct elsewhere {
    const char *url;
    bool shared;
};

static int open_and_stay(void *arg, int report)
{
    const struct elsewhere *elsewhere = arg;
    db *store;
    db_options options = {.url = elsewhere->url, .shared_file = elsewhere->shared};
    if (db_open(&options, &store, NULL) != DB_OK)
        return 1;
    db_item item = {.id = "child", .initial_stock = 5};
    if (db_run(store, work_reset_item, &item, NULL) != DB_OK)
        return 2;
    child_say(report, 'o');
    for (;;)
        pause();
}

static struct child open_elsewhere(const struct fixture *fixture, bool shared)
{
    struct elsewhere elsewhere = {fixture->url, shared};
    struct child child = child_start(open_and_stay, &elsewhere);
    child_expect(&child, 'o');
    return child;
}

TEST_THAT(a_second_process_is_refused_until_the_first_is_gone)
{
    struct fixture *fixture = *state;
    struct child child = open_elsewhere(fixture, false);
    expect_refused(fixture, DB_UNAVAILABLE, false, "already open elsewhere");
    expect_refused(fixture, DB_UNAVAILABLE, true, "already open elsewhere");
    child_kill(&child);
    fixture_open(fixture, NULL);
    db_item item;
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "child", &item));
}

TEST_THAT(a_second_open_in_one_process_is_refused_too)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, NULL);
    expect_refused(fixture, DB_UNAVAILABLE, false, "already open elsewhere");
    fixture_item(fixture, "1", 100); /* the first store still works */
}

TEST_THAT(sharers_keep_out_a_process_that_wants_the_file_alone)
{
    struct fixture *fixture = *state;
    struct child child = open_elsewhere(fixture, true);
    expect_refused(fixture, DB_UNAVAILABLE, false, "already open elsewhere");
    fixture_open(fixture, &(db_options){.shared_file = true});
    child_kill(&child);
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    db_item item;
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "child", &item));
}

TEST_THAT(a_symbolic_link_leads_to_the_same_lock)
{
    struct fixture *fixture = *state, other = *fixture;
    fixture_open(fixture, NULL);
    snprintf(other.file, sizeof other.file, "%s/link.db", fixture->folder);
    snprintf(other.url, sizeof other.url, "sqlite:%s", other.file);
    assert_int_equal(0, symlink(fixture->file, other.file));
    expect_refused(&other, DB_UNAVAILABLE, false, "already open elsewhere");
}

static bool is_wal(struct fixture *fixture)
{
    return fixture_sql_int(fixture, "SELECT journal_mode = 'wal' FROM pragma_journal_mode") == 1;
}

TEST_THAT(a_file_changes_its_mode_with_the_next_open)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 4; i++) {
        bool shared = i % 2 == 1;
        fixture_open(fixture, &(db_options){.shared_file = shared});
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        fixture_item(fixture, id, i);
        fixture_close(fixture);
        assert_int_equal(!shared, is_wal(fixture));
    }
    assert_int_equal(4, fixture_sql_int(fixture, "SELECT count(*) FROM items"));
}

TEST_THAT(a_killed_processs_log_is_recovered_into_the_other_mode)
{
    struct fixture *fixture = *state;
    struct child child = open_elsewhere(fixture, false);
    child_kill(&child);
    fixture_open(fixture, &(db_options){.shared_file = true});
    db_item item;
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "child", &item));
    assert_int_equal(5, item.stock);
}

/* -- an outsider holds SQLite's write lock ----------------------------------------------------- */

TEST_THAT(a_lock_held_too_long_is_busy_and_writes_nothing)
{
    struct fixture *fixture = *state;
    fixture_open(fixture, &(db_options){.busy_ms = 30});
    sqlite3 *outsider;
    assert_int_equal(SQLITE_OK, sqlite3_open(fixture->file, &outsider));
    assert_int_equal(SQLITE_OK, sqlite3_exec(outsider, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    db_item item = {.id = "1", .initial_stock = 1};
    db_error error = {0};
    assert_int_equal(DB_BUSY, db_run(fixture->store, work_reset_item, &item, &error));
    assert_non_null(strstr(error.message, "locked"));
    sqlite3_close(outsider);
    assert_int_equal(DB_NOT_FOUND, db_read_item(fixture->reader, "1", &item));
    item = (db_item){.id = "1", .initial_stock = 1};
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item, &error));
    db_stats stats;
    db_get_stats(fixture->store, &stats);
    assert_true(stats.busy_retries > 0);
}
