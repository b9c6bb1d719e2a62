/* An audit that may take minutes ends when its caller wants no answer any more. */
#include "damage.h"

enum { MANY = 3000 };

static db_status work_reset_many(db_tx *tx, void *arg)
{
    db_status status = DB_OK;
    (void)arg;
    for (int i = 0; i < MANY && status == DB_OK; i++) {
        db_account account = {.initial_balance = i};
        snprintf(account.id, sizeof account.id, "a%d", i);
        status = db_tx_reset_account(tx, &account, "none", "test");
    }
    return status;
}

struct caller {
    int asked, stops_at; /* 0: never */
    int heard;           /* resources */
};

static bool stop(void *arg)
{
    struct caller *caller = arg;
    return ++caller->asked == caller->stops_at;
}

static int hear(void *arg, const db_audit_row *row)
{
    struct caller *caller = arg;
    caller->heard += row->ok;
    return 0;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(an_audit_ends_when_its_caller_says_so)
{
    struct fixture *fixture = *state;
    struct caller stays = {0}, goes = {.stops_at = 2};
    db_error error = {0};
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_many, NULL, NULL));

    db_reader_stop_when(fixture->reader, stop, &goes);
    assert_int_equal(DB_INTERRUPTED, db_audit(fixture->reader, NULL, hear, &goes, &error));
    assert_int_equal(DB_INTERRUPTED, error.status);
    assert_true(strlen(error.message) > 0);
    assert_true(goes.heard < MANY); /* the first question comes before the audit */
    assert_int_equal(2, goes.asked);

    db_reader_stop_when(fixture->reader, stop, &stays);
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, hear, &stays, &error));
    assert_int_equal(MANY, stays.heard);
    assert_true(stays.asked > 0);

    const int asked = stays.asked;
    db_reader_stop_when(fixture->reader, NULL, NULL);
    stays.heard = 0;
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, hear, &stays, &error));
    assert_int_equal(MANY, stays.heard);
    assert_int_equal(asked, stays.asked);
}

/* A snapshot that was begun before does not go on. */
TEST_THAT(a_snapshot_ends_with_its_audit)
{
    struct fixture *fixture = *state;
    struct caller goes = {.stops_at = 2};
    db_account account;
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_many, NULL, NULL));
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    db_reader_stop_when(fixture->reader, stop, &goes);
    assert_int_equal(DB_INTERRUPTED, db_audit(fixture->reader, NULL, hear, &goes, NULL));
    db_reader_end(fixture->reader);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a1", &account));
    assert_int_equal(1, account.balance);
}
