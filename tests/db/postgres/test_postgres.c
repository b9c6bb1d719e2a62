/* Features of the PostgreSQL engine only: pipelined writes, row locks, isolation levels and their
 * retries. */
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { ROWS = 300 };

static const db_put any = {.expected_version = -1};

static void expect_says(const db_error *error, const char *expected)
{
    if (!strstr(error->message, expected))
        fail_msg("\"%s\" does not say \"%s\"", error->message, expected);
}

static int64_t balance(struct fixture *fixture, const char *id)
{
    db_account account;
    assert_int_equal(DB_OK, db_read_account(fixture->reader, id, &account));
    return account.balance;
}

/* -- pipelined writes ---------------------------------------------------------------------------
 */

/* Changes of one account; one expects a wrong version. */
struct changes {
    db_account account;
    int refused, runs;
    int told; /* the change that was finally reported */
};

static db_status work_changes(db_tx *tx, void *arg)
{
    struct changes *changes = arg;
    db_account account = changes->account;
    db_status status = DB_OK;
    changes->runs++;
    changes->told = -1;
    for (int i = 0; i < ROWS && status == DB_OK; i++) {
        const db_put how = {.expected_version = account.version + (i == changes->refused)};
        account.version++;
        account.balance++;
        status = db_tx_put_account(tx, &account, &how);
        if (status != DB_OK)
            changes->told = i;
    }
    return status;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(a_refused_write_among_many_is_told_by_place)
{
    struct fixture *fixture = *state;
    const db_account account = fixture_account(fixture, "a", 100);
    static const int places[] = {0, 1, 150, 255, 256, ROWS - 1}; /* around one full pipeline */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct changes changes = {.account = account, .refused = places[i]};
        assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_changes, &changes, NULL));
        assert_int_equal(places[i], changes.told);
        assert_int_equal(2, changes.runs);
    }
    assert_int_equal(100, balance(fixture, "a"));
    struct changes changes = {.account = account, .refused = -1};
    assert_int_equal(DB_OK, db_run(fixture->store, work_changes, &changes, NULL));
    assert_int_equal(1, changes.runs);
    assert_int_equal(100 + ROWS, balance(fixture, "a"));
}

/* A work must not continue with a read after a write that was refused. */
struct write_then_read {
    struct change change;
    int reads;
};

static db_status work_write_then_read(db_tx *tx, void *arg)
{
    struct write_then_read *both = arg;
    db_account account;
    db_status status = db_tx_put_account(tx, &both->change.account, &both->change.how);
    if (status == DB_OK)
        status = db_tx_read_account(tx, "a", false, &account);
    both->reads += status == DB_OK;
    return status;
}

TEST_THAT(a_read_after_a_refused_write_is_refused_too)
{
    struct fixture *fixture = *state;
    db *store = fixture->store;
    struct write_then_read both = {
        .change = {.account = fixture_account(fixture, "a", 100), .how = {.expected_version = 7}}};
    assert_int_equal(DB_CONFLICT, db_run(store, work_write_then_read, &both, NULL));
    assert_int_equal(0, both.reads);
    both.change.how = (db_put){.fence = 5, .expected_version = 1};
    assert_int_equal(DB_OK, db_run(store, work_write_then_read, &both, NULL));
    assert_int_equal(1, both.reads);
    both.change.how.fence = 4;
    assert_int_equal(DB_STALE_FENCE, db_run(store, work_write_then_read, &both, NULL));
    strcpy(both.change.account.id, "ghost");
    assert_int_equal(DB_NOT_FOUND, db_run(store, work_write_then_read, &both, NULL));
    assert_int_equal(1, both.reads);
}

/* The server refuses the text only when it reads it, after the end of the work. */
static db_status work_not_utf8(db_tx *tx, void *arg)
{
    db_ledger_row row = {.resource = "item:1", .txn_id = "\xff"};
    db_status status = db_tx_append_ledger(tx, &row);
    return status == DB_OK ? *(db_status *)arg : status;
}

TEST_THAT(an_error_among_unread_answers_harms_nothing_later)
{
    struct fixture *fixture = *state;
    db_status refused = DB_REFUSED, ok = DB_OK;
    fixture_close(fixture);
    strcat(fixture->url, "?pool=1");
    fixture_open(fixture, NULL);
    assert_int_equal(DB_INVALID, db_run(fixture->store, work_not_utf8, &ok, NULL));
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_not_utf8, &refused, NULL));
    fixture_item(fixture, "1", 10);
    assert_true(fixture_audit(fixture, "item:1").ok);
}

/* -- row locks ----------------------------------------------------------------------------------
 */

/* Reads one account for update, then another. In between the two threads wait for each other. */
struct locker {
    pthread_t thread;
    db *store;
    pthread_barrier_t *both_have_one; /* at the first run only */
    const char *first, *second;
    int64_t delta;
    int runs;
    db_status status;
};

static db_status work_lock_two(db_tx *tx, void *arg)
{
    struct locker *locker = arg;
    db_account first, second;
    db_status status = db_tx_read_account(tx, locker->first, true, &first);
    if (locker->runs++ == 0 && locker->both_have_one)
        pthread_barrier_wait(locker->both_have_one);
    if (status == DB_OK)
        status = db_tx_read_account(tx, locker->second, true, &second);
    if (status != DB_OK)
        return status;
    first.balance -= locker->delta;
    second.balance += locker->delta;
    status = db_tx_put_account(tx, &first, &any);
    return status == DB_OK ? db_tx_put_account(tx, &second, &any) : status;
}

static void *locker_main(void *arg)
{
    struct locker *locker = arg;
    locker->status = db_run(locker->store, work_lock_two, locker, NULL);
    return NULL;
}

TEST_THAT(a_deadlock_is_run_again)
{
    struct fixture *fixture = *state;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    fixture_account(fixture, "a", 100);
    fixture_account(fixture, "b", 100);
    struct locker lockers[] = {{.first = "a", .second = "b", .delta = 5},
                               {.first = "b", .second = "a", .delta = 7}};
    for (int i = 0; i < 2; i++) {
        lockers[i].store = fixture->store;
        lockers[i].both_have_one = &barrier;
        assert_int_equal(0, pthread_create(&lockers[i].thread, NULL, locker_main, &lockers[i]));
    }
    for (int i = 0; i < 2; i++)
        pthread_join(lockers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(DB_OK, lockers[0].status);
    assert_int_equal(DB_OK, lockers[1].status);
    assert_int_equal(102, balance(fixture, "a"));
    assert_int_equal(98, balance(fixture, "b"));
    db_stats stats;
    db_get_stats(fixture->store, &stats);
    assert_true(stats.busy_retries >= 1);
    assert_int_equal(2 + stats.busy_retries, lockers[0].runs + lockers[1].runs);
}

TEST_THAT(a_row_locked_for_too_long_is_busy_and_nothing_is_written)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture_open(fixture, &(db_options){.busy_ms = 50});
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    struct locker locker = {.store = fixture->store, .first = "a", .second = "a"};
    db_error error = {0};
    PGconn *outsider = pg_connect(fixture->url);
    PQclear(PQexec(outsider, "BEGIN; SELECT * FROM accounts FOR UPDATE"));
    assert_int_equal(DB_BUSY, db_run(fixture->store, work_lock_two, &locker, &error));
    expect_says(&error, "lock timeout");
    assert_int_equal(DB_BUSY, db_run(fixture->store, work_change, &change, &error));
    assert_int_equal(100, balance(fixture, "a")); /* readers do not wait */
    PQfinish(outsider);
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, &error));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM ledger WHERE delta = -1"));
}

/* -- isolation ----------------------------------------------------------------------------------
 */

/* Write skew: each takes from its own account if both together hold enough. Only "serializable"
 * detects it (Berenson et al., "A Critique of ANSI SQL Isolation Levels", 1995). */
struct skew {
    pthread_t thread;
    db *store;
    pthread_barrier_t *both_have_read; /* at the first run only */
    const char *id;
    int runs;
    db_status status;
};

static db_status work_skew(db_tx *tx, void *arg)
{
    struct skew *skew = arg;
    db_account a, b;
    db_status status = db_tx_read_account(tx, "a", false, &a);
    if (status == DB_OK)
        status = db_tx_read_account(tx, "b", false, &b);
    if (skew->runs++ == 0)
        pthread_barrier_wait(skew->both_have_read);
    if (status != DB_OK)
        return status;
    if (a.balance + b.balance < 100)
        return DB_REFUSED;
    db_account *own = skew->id[0] == 'a' ? &a : &b;
    own->balance -= 100;
    return db_tx_put_account(tx, own, &any);
}

static void *skew_main(void *arg)
{
    struct skew *skew = arg;
    skew->status = db_run(skew->store, work_skew, skew, NULL);
    return NULL;
}

/* Returns the final sum of both accounts; it starts at 100. */
static int64_t run_skew(struct fixture *fixture, const char *isolation, uint64_t *ret_retries)
{
    size_t length = strlen(fixture->url);
    snprintf(fixture->url + length, sizeof fixture->url - length, "?isolation=%s", isolation);
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    fixture->url[length] = '\0';
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    fixture_account(fixture, "a", 50);
    fixture_account(fixture, "b", 50);
    struct skew skews[] = {{.id = "a"}, {.id = "b"}};
    for (int i = 0; i < 2; i++) {
        skews[i].store = fixture->store;
        skews[i].both_have_read = &barrier;
        assert_int_equal(0, pthread_create(&skews[i].thread, NULL, skew_main, &skews[i]));
    }
    for (int i = 0; i < 2; i++)
        pthread_join(skews[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    db_stats stats;
    db_get_stats(fixture->store, &stats);
    *ret_retries = stats.busy_retries;
    return balance(fixture, "a") + balance(fixture, "b");
}

TEST_THAT(isolation_is_what_the_url_says)
{
    uint64_t retries;
    assert_int_equal(-100, run_skew(*state, "read-committed", &retries));
    assert_int_equal(0, retries);
    assert_int_equal(-100, run_skew(*state, "repeatable-read", &retries));
    assert_int_equal(0, retries);
    assert_int_equal(0, run_skew(*state, "serializable", &retries));
    assert_true(retries >= 1);
}
