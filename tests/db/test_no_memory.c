/* SQLite's Nth allocation fails, for every N. Reported outcomes are true, and a change reported as
 * failed does not happen later. */
#include "fixture.h"

#include <stdlib.h>

enum { FIRST = 1000000, N_MAX = 5000 };

static sqlite3_mem_methods real;
static _Thread_local int countdown; /* 0: no failure planned; 1: the next allocation fails */
static _Thread_local bool sticky;
static _Thread_local int size_refused; /* growth to this size fails; 0: none */
static _Thread_local int refused;

static bool is_refused(void)
{
    bool due = countdown == 1;
    if (countdown > 1 || (due && !sticky))
        countdown--;
    refused += due;
    return due;
}

static void *take(int size)
{
    return is_refused() ? NULL : real.xMalloc(size);
}

static void *resize(void *piece, int size)
{
    bool due = size == size_refused;
    if (due)
        size_refused = 0;
    return due || is_refused() ? NULL : real.xRealloc(piece, size);
}

static void have_plenty(void)
{
    countdown = size_refused = 0;
}

/* Inserts rows first and ignores errors: the store must not overlook them. */
static db_status work_carelessly(db_tx *tx, void *arg)
{
    struct change change = *(const struct change *)arg;
    db_answer answer = {.http_status = 201, .request = "change", .body = "{}"};
    db_account now;
    snprintf(answer.key, sizeof answer.key, "%s", change.txn_id);
    db_tx_insert_answer(tx, &answer);
    db_tx_read_account(tx, "a", false, &now);
    return work_change(tx, &change);
}

static db_status change(struct fixture *fixture, int i)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    struct change change = {.delta = -1, .txn_id = key, .how = {.expected_version = -1}};
    int planned = countdown, size = size_refused;
    have_plenty();
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    countdown = planned;
    size_refused = size;
    return db_run(fixture->store, work_carelessly, &change, NULL);
}

static int64_t balance(struct fixture *fixture)
{
    db_account account;
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &account));
    return account.balance;
}

/* Each change is stored completely or not at all, and leaves nothing for the next commit. */
static void a_change_is_whole_or_not_at_all(struct fixture *fixture, bool goes_on)
{
    int changes = 0, i = 0, fired;
    fixture_account(fixture, "a", FIRST);
    for (int n = 1; n < N_MAX; n++) {
        sticky = goes_on;
        countdown = n;
        refused = 0;
        db_status status = change(fixture, i);
        have_plenty();
        fired = refused;
        assert_true(status == DB_OK || status == DB_FAILED);
        changes += status == DB_OK;
        assert_int_equal(fixture_is_stored(fixture, i++), status == DB_OK);
        assert_int_equal(balance(fixture), FIRST - changes);
        assert_int_equal(DB_OK, change(fixture, i++));
        assert_int_equal(balance(fixture), FIRST - ++changes);
        if (fired == 0)
            break;
    }
    assert_int_equal(fired, 0);
    assert_int_equal(changes, fixture_sql_int(fixture, "SELECT count(*) FROM idempotency"));
    assert_true(fixture_audit(fixture, "account:a").ok);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);

TEST_THAT(a_piece_refused_in_a_change_harms_that_change_only)
{
    a_change_is_whole_or_not_at_all(*state, false);
}

TEST_THAT(a_change_without_any_memory_leaves_nothing_behind)
{
    a_change_is_whole_or_not_at_all(*state, true);
}

/* One error ends the transaction of both. Each is tried again alone and fails. */
TEST_THAT(each_of_a_group_without_memory_is_told)
{
    struct fixture *fixture = *state;
    const db_account accounts[] = {fixture_account(fixture, "a", FIRST),
                                   fixture_account(fixture, "b", FIRST)};
    bool fired = true;
    for (int n = 1; fired && n < N_MAX; n++) {
        struct change changes[2];
        db_job jobs[2];
        char keys[2][16];
        for (int i = 0; i < 2; i++) {
            snprintf(keys[i], sizeof keys[i], "%c%d", 'a' + i, n);
            changes[i] = (struct change){.account = accounts[i],
                                         .txn_id = keys[i],
                                         .how = {.expected_version = -1},
                                         .with_answer = true};
            jobs[i] = (db_job){.work = work_change, .arg = &changes[i]};
        }
        sticky = true;
        countdown = n;
        refused = 0;
        db_run_many(fixture->store, jobs, 2);
        have_plenty();
        fired = refused > 0;
        for (int i = 0; i < 2; i++) {
            db_answer answer;
            db_status stored = db_read_answer(fixture->reader, keys[i], &answer);
            assert_int_equal(stored, jobs[i].status == DB_OK ? DB_OK : DB_NOT_FOUND);
        }
    }
    assert_false(fired);
}

/* An error in a read ends the snapshot. The audit must not continue in another snapshot. */
TEST_THAT(an_audit_in_a_snapshot_that_an_error_ended_says_so)
{
    struct fixture *fixture = *state;
    db_account account = fixture_account(fixture, "a", FIRST);
    db_audit_row row;
    int ended = 0;
    bool fired = true;
    for (int n = 1; fired && n < N_MAX; n++) {
        db_error error = {.status = DB_OK};
        assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
        sticky = false;
        refused = 0;
        countdown = n;
        db_status read = db_read_account(fixture->reader, "a", &account);
        have_plenty();
        fired = refused > 0;
        db_status status = db_audit(fixture->reader, "account:a", keep_audit_row, &row, &error);
        assert_true(status == DB_OK || (read == DB_FAILED && status == DB_FAILED));
        ended += status == DB_FAILED && strstr(error.message, "ended by an error") != NULL;
        db_reader_end(fixture->reader);
        assert_true(fixture_audit(fixture, "account:a").ok);
    }
    assert_true(ended > 0);
}

/* The index of the log grows after the commit's frames were written and flushed. A commit reported
 * as failed must not return after a crash. */
TEST_THAT(a_commit_without_memory_for_the_index_of_the_log_is_undone_for_good)
{
    enum { SECOND_PAGE = 2 * sizeof(void *), CHANGES_MAX = 3000 };
    struct fixture *fixture = *state;
    char crashed[sizeof fixture->file + 16], command[5 * sizeof crashed];
    db_status status = DB_OK;
    int i = 0;
    fixture_account(fixture, "a", FIRST);
    for (; i < CHANGES_MAX && status == DB_OK; i++) {
        size_refused = SECOND_PAGE;
        status = change(fixture, i);
        have_plenty();
    }
    assert_int_equal(status, DB_FAILED);
    assert_false(fixture_is_stored(fixture, i - 1));

    snprintf(crashed, sizeof crashed, "%s/crash.db", fixture->folder);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s-wal' '%s-wal'", fixture->file,
             crashed, fixture->file, crashed);
    assert_int_equal(system(command), 0);
    struct fixture again = *fixture;
    snprintf(again.url, sizeof again.url, "sqlite:%.80s", crashed);
    fixture_open(&again, NULL);
    assert_true(fixture_is_stored(&again, i - 2));
    assert_false(fixture_is_stored(&again, i - 1));
    fixture_close(&again);
}

int main(void)
{
    sqlite3_mem_methods scarce;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) != SQLITE_OK)
        return 1;
    scarce = real;
    scarce.xMalloc = take;
    scarce.xRealloc = resize;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &scarce) != SQLITE_OK)
        return 1;
    return tests_run();
}
