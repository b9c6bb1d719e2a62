/* Closed months of the ledger are moved to an archive: the store is sound without it, both together
 * are proved, and nothing is lost or done twice, wherever it stopped. On both engines. */
#include "archive_rig.h"

#include <sys/stat.h>

/* -- claims -------------------------------------------------------------------------------------
 */

TEST_FIXTURE(set_up, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(a_closed_month_is_moved_and_the_store_stays_sound)
{
    struct fixture *fixture = *state;
    struct stat about;
    const int64_t end = old_month(fixture), old_rows = rows_in(fixture);
    new_month(fixture);
    const db_audit_row before = fixture_audit(fixture, "item:1");
    assert_int_equal(old_rows, moved_rows(fixture, end));
    assert_int_equal(5, rows_in(fixture)); /* an order, and two legs each of payment and refund */
    const db_audit_row after = fixture_audit(fixture, "item:1");
    assert_true(after.ok && after.initial == before.initial && after.current == before.current);
    assert_true(after.ledger_sum == before.ledger_sum && after.sold == before.sold);
    assert_true(after.former_paid == before.former_paid);
    expect_sound(fixture);
    assert_int_equal(old_rows, prove(fixture).rows);
    assert_int_equal(0, stat(archive, &about));
    assert_int_equal(0600, about.st_mode & 0777);
    assert_int_equal(0, moved_rows(fixture, end)); /* again: nothing to do */
    expect_sound(fixture);
}

TEST_THAT(later_months_continue_the_file)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture);
    new_month(fixture);
    const int64_t next_end = cut_now(fixture), all = rows_in(fixture);
    order_and_pay(fixture, "o5");
    moved_rows(fixture, end);
    moved_rows(fixture, next_end);
    expect_sound(fixture);
    assert_int_equal(2, prove(fixture).parts);
    assert_int_equal(all, prove(fixture).rows);
    fixture_item(fixture, "1", 7); /* epoch 3 goes on from the archive, too */
    order_and_pay(fixture, "o6");
    expect_sound(fixture);
}

/* SQLite would give its number again, and the feed would not show the next row. */
TEST_THAT(the_newest_movement_stays)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture), rows = rows_in(fixture);
    assert_int_equal(rows - 2, moved_rows(fixture, end)); /* the two legs of the last payment */
    const int64_t newest = fixture_sql_int(fixture, "SELECT max(id) FROM ledger");
    order_and_pay(fixture, "o4");
    assert_true(fixture_sql_int(fixture, "SELECT min(id) FROM ledger WHERE order_id = 'o4'") >
                newest);
    expect_sound(fixture);
}

static int count_row(void *arg, const db_ledger_row *row)
{
    (void)row;
    ++*(int *)arg;
    return 0;
}

TEST_THAT(lists_say_where_they_go_on)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture);
    db_feed_place place = {0}, next;
    db_chain_place start = {0}, chain;
    bool more;
    int n = 0;
    new_month(fixture);
    moved_rows(fixture, end);
    db_reader *reader = fixture->reader;
    assert_int_equal(DB_ARCHIVED, db_read_ledger(reader, &place, 100, count_row, &n, &next, &more));
    assert_int_equal(0, n);
    assert_int_equal(DB_OK, db_read_ledger(reader, &next, 100, count_row, &n, &next, &more));
    assert_int_equal(5, n);
    static const struct {
        const char *resource;
        int rows;
    } lists[] = {{"item:1", 1}, {"account:a", 2}, {DB_SHOP_REVENUE, 2}};
    for (size_t i = 0; i < 3; i++) {
        n = 0;
        assert_int_equal(DB_ARCHIVED, db_read_statement(reader, lists[i].resource, &start, 100,
                                                        count_row, &n, &more));
        assert_int_equal(DB_OK, db_read_chain_start(reader, lists[i].resource, &chain));
        assert_int_equal(
            DB_OK, db_read_statement(reader, lists[i].resource, &chain, 100, count_row, &n, &more));
        assert_int_equal(lists[i].rows, n);
    }
    assert_int_equal(DB_OK,
                     db_read_statement(reader, "account:c", &start, 100, count_row, &n, &more));
}

TEST_THAT(rows_that_stay_are_still_guarded)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture);
    new_month(fixture);
    moved_rows(fixture, end);
    const int64_t rows = rows_in(fixture);
    assert_true(fixture_sql_fails(fixture, "DELETE FROM ledger"));
    assert_true(fixture_sql_fails(fixture, "UPDATE ledger SET delta = 0, after = before"));
    if (pg_server) {
        assert_true(fixture_sql_fails(fixture, "TRUNCATE ledger"));
        assert_true(fixture_sql_fails(fixture,
                                      "BEGIN; INSERT INTO archives VALUES (9, 0, 0, 0, 1, 'x');"
                                      " DELETE FROM ledger; COMMIT")); /* it does not cover them */
    } else {
        static const char row[] =
            "INSERT OR REPLACE INTO ledger (id, resource, epoch, version_before, txn_id, delta,"
            " before, after, fence, guard, instance, kind, at_us) VALUES (%s, 'item:1', 2, 99, 'f',"
            " 0, 0, 0, 0, '', '', 'setting', 0)";
        char sql[512];
        snprintf(sql, sizeof sql, row, "(SELECT max(id) FROM ledger)");
        assert_true(fixture_sql_fails(fixture, sql));
        snprintf(sql, sizeof sql, row, "1"); /* a number that was moved */
        assert_true(fixture_sql_fails(fixture, sql));
        snprintf(sql, sizeof sql, row, "(SELECT min(id) - 1 FROM ledger)");
        assert_true(fixture_sql_fails(fixture, sql));
    }
    assert_int_equal(rows, rows_in(fixture));
    expect_sound(fixture);
}

TEST_THAT(what_stopped_between_the_steps_is_finished)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture), old_rows = rows_in(fixture);
    archive_moved moved;
    db_error error = {.message = ""};
    new_month(fixture);
    stop_between_steps(fixture, end);
    assert_string_equal("", bad_resource(fixture));
    assert_int_equal(old_rows + 5, rows_in(fixture));
    assert_int_equal(DB_OK, move(fixture, end, &moved, &error));
    fixture_open(fixture, NULL);
    assert_int_equal(1, moved.finished);
    assert_int_equal(old_rows, moved.rows);
    expect_sound(fixture);
}

static void archive_sql(const char *sql)
{
    sqlite3 *handle;
    char *message = NULL;
    assert_int_equal(SQLITE_OK, sqlite3_open(archive, &handle));
    if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(handle);
}

TEST_THAT(each_kind_of_damage_is_found)
{
    static const char *const of_archive[] = {
        "UPDATE ledger SET delta = delta - 1, after = after - 1 WHERE id = 4",
        "UPDATE ledger SET reason = 'x' WHERE resource = 'item:1' AND kind = 'order'",
        "UPDATE ledger SET at_us = at_us - 1 WHERE resource = 'shop:revenue'",
        "DELETE FROM ledger WHERE seq = 1",
        "DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)",
        "UPDATE parts SET digest = 'x'",
        "UPDATE parts SET n = n + 1",
        "DELETE FROM parts",
        "INSERT INTO parts SELECT part + 1, before_us, 0, last_id + 1, n, 'x' FROM parts",
        "UPDATE ledger SET part = 7 WHERE seq = 3",
    };
    static const char *const of_store[] = {
        "UPDATE carried SET total = total + 1 WHERE resource = 'shop:revenue'",
        "UPDATE carried SET moved = moved + 1 WHERE resource = 'account:b'",
        "UPDATE carried SET restocked = 1 WHERE resource = 'item:1'",
        "UPDATE carried SET n = n + 1 WHERE resource = 'item:1'",
        "DELETE FROM carried WHERE resource = 'account:b'",
        "DELETE FROM carried_orders WHERE order_id = 'o1'",
        "UPDATE carried_orders SET delta = delta - 1 WHERE order_id = 'o1'",
        "UPDATE archives SET digest = 'x'",
        "UPDATE archives SET last_id = last_id - 1",
    };
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture);
    char copy[160], command[400];
    new_month(fixture);
    moved_rows(fixture, end);
    snprintf(copy, sizeof copy, "%s.copy", archive);
    snprintf(command, sizeof command, "cp %s %s", archive, copy);
    assert_int_equal(0, system(command));
    snprintf(command, sizeof command, "cp %s %s", copy, archive);
    for (size_t i = 0; i < sizeof of_archive / sizeof *of_archive; i++) {
        archive_sql(of_archive[i]);
        if (prove(fixture).faults == 0)
            fail_msg("not found: %s", of_archive[i]);
        assert_string_equal("", bad_resource(fixture)); /* the store does not need it */
        assert_int_equal(0, system(command));
    }
    expect_sound(fixture);
    for (size_t i = 0; i < sizeof of_store / sizeof *of_store; i++) {
        fixture_sql(fixture, "CREATE TABLE kept AS SELECT * FROM carried;"
                             "CREATE TABLE kept_orders AS SELECT * FROM carried_orders;"
                             "CREATE TABLE kept_archives AS SELECT * FROM archives");
        fixture_sql(fixture, of_store[i]);
        if (prove(fixture).faults == 0)
            fail_msg("not found: %s", of_store[i]);
        fixture_sql(fixture, "DELETE FROM carried; INSERT INTO carried SELECT * FROM kept;"
                             "DELETE FROM carried_orders; INSERT INTO carried_orders SELECT *"
                             " FROM kept_orders; DELETE FROM archives; INSERT INTO archives"
                             " SELECT * FROM kept_archives; DROP TABLE kept;"
                             "DROP TABLE kept_orders; DROP TABLE kept_archives");
    }
    expect_sound(fixture);
}

/* Without the archive: what is carried must fit to what is left. */
TEST_THAT(the_store_alone_finds_what_does_not_fit)
{
    static const struct {
        const char *sql, *resource; /* NULL: the books */
    } cases[] = {
        {"UPDATE carried SET hash = 'x' WHERE resource = 'item:1'", "item:1"},
        {"UPDATE carried SET total = total + 1 WHERE resource = 'account:a'", "account:a"},
        {"UPDATE carried SET moved = moved + 1 WHERE resource = 'account:b'", "account:b"},
        {"UPDATE carried SET total = total + 1 WHERE resource = 'account:b'", "account:b"},
        {"UPDATE carried SET version_before = version_before - 1 WHERE resource = 'account:a'",
         "account:a"},
        {"DELETE FROM carried WHERE resource = 'item:1'", "item:1"},
        {"UPDATE carried SET total = total + 1 WHERE resource = 'shop:revenue'", NULL},
        {"UPDATE carried_orders SET delta = 0 WHERE order_id = 'o1'", NULL},
        {"DELETE FROM accounts WHERE id = 'b'", "account:b"},
        {"UPDATE orders SET state = 2 WHERE id = 'o2'", NULL},
        {"UPDATE accounts SET balance = balance + 1 WHERE id = 'b'", "account:b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_teardown(state);
        set_up(state);
        struct fixture *fixture = *state;
        const int64_t end = old_month(fixture);
        new_month(fixture);
        moved_rows(fixture, end);
        fixture_sql(fixture, cases[i].sql);
        if (cases[i].resource == NULL ? books_of(fixture).ok
                                      : strcmp(bad_resource(fixture), cases[i].resource) != 0)
            fail_msg("%s: %s", cases[i].sql, bad_resource(fixture));
    }
}

/* A late writer that continues a version which was moved. */
TEST_THAT(a_fork_behind_the_archive_is_a_lost_update)
{
    struct fixture *fixture = *state;
    struct change late = {.delta = -1, .txn_id = "late", .how = anyhow};
    fixture_item(fixture, "1", 10);
    fixture_account(fixture, "a", 1000);
    fixture_account(fixture, "b", 5);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &late.account));
    order_and_pay(fixture, "o1");
    order_and_pay(fixture, "o2");
    const int64_t end = cut_now(fixture);
    order_and_pay(fixture, "o3");
    moved_rows(fixture, end);
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &late, NULL));
    const db_audit_row row = fixture_audit(fixture, "account:a");
    assert_false(row.ok);
    assert_int_equal(1, row.lost_updates);
}

TEST_THAT(what_is_not_sound_is_not_moved)
{
    struct fixture *fixture = *state;
    struct change late = {.delta = -1, .txn_id = "late", .how = anyhow};
    fixture_account(fixture, "a", 1000);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &late.account));
    struct change first = late;
    first.txn_id = "first";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &first, NULL));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &late, NULL));
    fixture_account(fixture, "b", 5);
    fixture_account(fixture, "b", 6);
    archive_moved moved;
    db_error error = {.message = ""};
    assert_int_equal(DB_OK, move(fixture, INT64_MAX, &moved, &error));
    fixture_open(fixture, NULL);
    assert_int_equal(2, moved.rows); /* the reset of "a"; its changes have one leg */
    assert_true(strlen(moved.held) > 0);
    assert_int_equal(1, fixture_audit(fixture, "account:a").lost_updates);
}

static bool count_steps(void *arg)
{
    ++*(int64_t *)arg;
    return false;
}

static int ignore_row(void *arg, const db_audit_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

/* Steps of SQLite's machine, in ten thousands, for the audit of so many accounts whose rows were
 * all moved, each with one live order that was paid before. */
static int64_t steps_for(int accounts)
{
    struct fixture fixture = fixture_folder();
    char sql[1024];
    int64_t steps = 0;
    db_books books;
    fixture_open(&fixture, NULL);
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO accounts SELECT 'u' || i, '', 30, 0, 0, 2, 0, 1, 'h' FROM n;"
             "INSERT INTO carried SELECT 'account:' || id, 1, 1, 1, 'h', 0, -30, 0, 2"
             " FROM accounts;"
             "INSERT INTO orders SELECT 'o' || id, '1', id, 1, 30, 1, 1, 0, 1, 0, 0, ''"
             " FROM accounts;"
             "INSERT INTO carried_orders SELECT id, -30 FROM orders",
             accounts);
    fixture_sql(&fixture, sql);
    db_reader_stop_when(fixture.reader, count_steps, &steps);
    assert_int_equal(DB_OK, db_audit(fixture.reader, NULL, ignore_row, NULL, NULL));
    assert_int_equal(DB_OK, db_audit_books(fixture.reader, &books, NULL));
    assert_int_equal(0, books.unpaid);
    fixture_remove(&fixture);
    return steps;
}

TEST_THAT(another_file_is_refused)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture);
    new_month(fixture);
    moved_rows(fixture, end);
    const int64_t next_end = cut_now(fixture);
    order_and_pay(fixture, "o5");
    char first[128];
    memcpy(first, archive, sizeof first);
    snprintf(archive, sizeof archive, "%s/other.db", fixture->folder);
    expect_refused(fixture, next_end, "more parts than this file has");
    if (!pg_server) {
        snprintf(archive, sizeof archive, "%s", fixture->file);
        expect_refused(fixture, next_end, "not an archive");
        snprintf(archive, sizeof archive, "%s-lock", fixture->file); /* empty, so it could be one */
        expect_refused(fixture, next_end, "give another");
    }
    memcpy(archive, first, sizeof first);
    archive_sql("UPDATE parts SET digest = 'x'");
    expect_refused(fixture, next_end, "archive of another store");
}

TEST_THAT(a_store_that_is_not_there_is_not_made)
{
    struct fixture *fixture = *state, other = *fixture;
    archive_moved moved;
    db_error error = {.message = ""};
    fixture_close(fixture);
    if (pg_server) {
        fixture_sql(fixture, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    } else {
        snprintf(other.url, sizeof other.url, "sqlite:%s/typo.db", fixture->folder);
    }
    other.store = NULL;
    assert_int_equal(DB_INVALID, move(&other, 1, &moved, &error));
    assert_non_null(strstr(error.message, "there is no store"));
    assert_int_equal(-1, access(archive, F_OK));
    if (!pg_server) {
        char typo[96];
        snprintf(typo, sizeof typo, "%s/typo.db", fixture->folder);
        assert_int_equal(-1, access(typo, F_OK));
    }
    fixture_open(fixture, NULL);
}

TEST_GROUP("of_sqlite", NULL, NULL);

TEST_THAT_WITH(the_audit_stays_linear, NULL, NULL)
{
    const int64_t few = steps_for(25000), many = steps_for(100000);
    assert_true(few > 10);
    assert_in_range(many, few, 6 * few);
}
