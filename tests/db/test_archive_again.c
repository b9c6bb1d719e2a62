/* What an earlier archive left is finished, and only when it is on the disk; rows of the open month
 * stay, whatever the clocks say; a part costs its own rows, however long the file is. */
#include "archive_part.h"
#include "archive_rig.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* -- a disk that fails ------------------------------------------------------------------------- */

static bool archive_fails; /* to be flushed */

static bool is_archive(int fd)
{
    struct stat file, mine;
    return stat(archive, &file) == 0 && fstat(fd, &mine) == 0 && file.st_ino == mine.st_ino &&
           file.st_dev == mine.st_dev;
}

/* Stands before the one of the C library, for everything in this program. */
int fsync(int fd)
{
    if (archive_fails && is_archive(fd)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static int begin(void **state)
{
    archive_fails = false;
    return set_up(state);
}

struct dated {
    const char *txn_id;
    int64_t at_us;
};

/* -- claims ------------------------------------------------------------------------------------ */

TEST_FIXTURE(begin, fixture_teardown);
ON_BOTH_ENGINES;

/* The earlier run was killed, so nobody knows what of its part is on the disk. */
TEST_THAT(rows_go_only_when_an_earlier_part_is_on_the_disk)
{
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture), old_rows = rows_in(fixture);
    new_month(fixture);
    stop_between_steps(fixture, end);
    archive_fails = true;
    expect_refused(fixture, end, strerror(EIO));
    archive_fails = false;
    assert_int_equal(old_rows + 5, rows_in(fixture));
    assert_int_equal(old_rows, moved_rows(fixture, end));
    expect_sound(fixture);
}

static void copy(const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(0, system(command));
}

/* Adds 1 to account "b". */
static db_status work_dated(db_tx *tx, void *arg)
{
    const struct dated *dated = arg;
    const struct sale sale = {"", dated->txn_id, DB_KIND_CHANGE};
    db_account account;
    db_ledger_row row = row_of(tx, &sale, "account:b"), leg;
    db_status status = db_tx_read_account(tx, "b", true, &account);
    if (status != DB_OK)
        return status;
    snprintf(row.counterpart, sizeof row.counterpart, "%s", DB_SHOP_CASH);
    row.at_us = dated->at_us;
    row.epoch = account.epoch;
    row.delta = 1;
    row.before = account.balance;
    row.after = ++account.balance;
    row.version_before = account.version++;
    db_ledger_seal(&row, account.chain);
    db_ledger_shop_leg(&row, &leg);
    if ((status = db_tx_put_account(tx, &account, &anyhow)) == DB_OK &&
        (status = db_tx_append_ledger(tx, &row)) == DB_OK)
        status = db_tx_append_ledger(tx, &leg);
    return status;
}

static void append_dated(struct fixture *fixture, const char *txn_id, int64_t at_us)
{
    struct dated dated = {txn_id, at_us};
    assert_int_equal(DB_OK, db_run(fixture->store, work_dated, &dated, NULL));
}

/* The clock that dates rows may be ahead, and sales go on while the archive runs. */
TEST_THAT(rows_that_are_dated_just_ahead_stay)
{
    static const int64_t hour_us = INT64_C(3600000000);
    struct fixture *fixture = *state;
    const int64_t end = old_month(fixture), old_rows = rows_in(fixture);
    append_dated(fixture, "wrong", end + 1000 * hour_us); /* does not hold the others up */
    append_dated(fixture, "old", end - 1);
    append_dated(fixture, "ahead", end + hour_us);
    append_dated(fixture, "behind", end - 1); /* comes after it in the feed */
    new_month(fixture);
    assert_int_equal(old_rows + 4, moved_rows(fixture, end));
    assert_int_equal(
        2, fixture_sql_int(fixture, "SELECT count(*) FROM ledger WHERE txn_id = 'ahead'"));
    assert_int_equal(
        2, fixture_sql_int(fixture, "SELECT count(*) FROM ledger WHERE txn_id = 'behind'"));
    expect_sound(fixture);
}

TEST_GROUP("of_file", NULL, NULL);

TEST_THAT(a_store_that_was_put_back_goes_on_with_its_file)
{
    struct fixture *fixture = *state;
    char kept[160];
    const int64_t end = old_month(fixture);
    new_month(fixture);
    const int64_t next_end = cut_now(fixture);
    order_and_pay(fixture, "o5");
    snprintf(kept, sizeof kept, "%s.kept", fixture->file);
    fixture_close(fixture);
    copy(fixture->file, kept);
    fixture_open(fixture, NULL);
    const int64_t rows = moved_rows(fixture, end) + moved_rows(fixture, next_end);
    fixture_close(fixture);
    copy(kept, fixture->file);
    archive_moved moved;
    db_error error = {.message = ""};
    if (move(fixture, next_end, &moved, &error) != DB_OK)
        fail_msg("archive_move: %s", error.message);
    assert_int_equal(2, moved.finished);
    assert_int_equal(rows, moved.rows);
    fixture_open(fixture, NULL);
    assert_int_equal(3, rows_in(fixture));
    expect_sound(fixture);
}

/* -- cost -------------------------------------------------------------------------------------- */

static int count_steps(void *arg)
{
    ++*(int64_t *)arg;
    return 0;
}

static int ignore_order(void *arg, const void *row)
{
    (void)row;
    ++*(int64_t *)arg;
    return 0;
}

/* Hundreds of steps of SQLite's machine to go through the last of so many parts, each of 100
 * payments. */
static int64_t steps_for(int parts)
{
    struct archive_file file;
    db_books books;
    int64_t steps = 0, orders = 0;
    unlink(archive);
    assert_int_equal(DB_OK, archive_open(&file, archive, true));
    const struct value args[] = {VALUE_INT(parts * 200)};
    assert_int_equal(
        DB_OK, archive_run(&file,
                           "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                           " WHERE i < ?1) INSERT INTO ledger (seq, part, resource, epoch, txn_id,"
                           " delta, before, after, version_before, fence, guard, instance, kind,"
                           " order_id, counterpart, reason, reference, at_us, hash, id)"
                           " SELECT i, (i + 199) / 200, CASE i % 2 WHEN 0 THEN 'shop:revenue' ELSE"
                           " 'account:' || i END, 1, 't' || ((i + 1) / 2), CASE i % 2 WHEN 0 THEN 1"
                           " ELSE -1 END, 1, 0, 0, 0, '', '', 'payment', 'o' || ((i + 1) / 2), '',"
                           " '', '', 0, 'h', i FROM n",
                           args, VALUE_COUNT(args)));
    sqlite3_progress_handler(file.handle, 100, count_steps, &steps);
    assert_int_equal(DB_OK, part_check_legs(&file, parts, &books));
    assert_int_equal(100, books.transactions);
    assert_int_equal(DB_OK, part_orders(&file, parts, ignore_order, &orders));
    assert_int_equal(100, orders);
    archive_close(&file);
    return steps;
}

TEST_THAT(a_part_costs_its_own_rows)
{
    const int64_t few = steps_for(2), many = steps_for(100);
    assert_true(few > 10);
    assert_in_range(many, few / 2, 2 * few);
}
