/* A PostgreSQL server that answers but accepts no writes: the status says why. */
#include "fixture.h"

static const db_put any = {.expected_version = -1};

/* room: the error may mean a full disk, so the ping writes as much as a commit may need. */
static void expect_refusal(struct fixture *fixture, const char *sqlstate, db_status expected,
                           bool room)
{
    char sql[256];
    struct change change = {.delta = -1, .txn_id = sqlstate, .how = any};
    db_error error = {0};
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " RAISE EXCEPTION 'planted' USING ERRCODE = '%s'; END $$",
             sqlstate);
    fixture_sql(fixture, sql);
    fixture_sql(fixture, "CREATE TRIGGER planted AFTER INSERT ON ledger FOR EACH ROW"
                         " EXECUTE FUNCTION planted()");
    assert_int_equal(expected, db_run(fixture->store, work_change, &change, &error));
    assert_non_null(strstr(error.message, sqlstate));
    fixture_sql(fixture, "DROP TRIGGER planted ON ledger");
    fixture_sql(fixture, "CREATE OR REPLACE FUNCTION much() RETURNS trigger LANGUAGE plpgsql AS $$"
                         " BEGIN IF length(NEW.instance) > 1000 THEN RAISE EXCEPTION 'much';"
                         " END IF; RETURN NEW; END $$");
    fixture_sql(fixture, "CREATE TRIGGER much BEFORE INSERT ON tasks FOR EACH ROW"
                         " EXECUTE FUNCTION much()");
    assert_int_equal(room ? DB_FAILED : DB_OK, db_ping(fixture->store));
    fixture_sql(fixture, "DROP TRIGGER much ON tasks");
    assert_int_equal(DB_OK, db_ping(fixture->store));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
}

GROUP_FIXTURE(pg_start, pg_stop);
TEST_FIXTURE(fixture_setup, fixture_teardown);

TEST_THAT(a_disk_without_room_and_a_standby_are_told_apart)
{
    struct fixture *fixture = *state;
    fixture_account(fixture, "a", 100);
    expect_refusal(fixture, "53100", DB_FULL, true);
    expect_refusal(fixture, "25006", DB_READ_ONLY, true);
    expect_refusal(fixture, "57P03", DB_UNAVAILABLE, false);
    expect_refusal(fixture, "XX000", DB_FAILED, true);
    assert_int_equal(96, fixture_audit(fixture, "account:a").current);
}

static db_status ping_within(db_tx *tx, void *arg)
{
    struct fixture *fixture = arg;
    db_account account;
    db_status status = db_tx_read_account(tx, "a", false, &account); /* has its connection */
    return status == DB_NOT_FOUND ? db_ping(fixture->store) : status;
}

TEST_THAT(a_server_without_room_for_a_connection_says_so)
{
    struct fixture *fixture = *state;
    fixture_sql(fixture, "DROP ROLE IF EXISTS few");
    char role[160];
    snprintf(role, sizeof role, "CREATE ROLE few LOGIN CONNECTION LIMIT 1 PASSWORD '%s'",
             getenv("PGPASSWORD"));
    fixture_sql(fixture, role);
    fixture_sql(fixture, "DO $$ BEGIN EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO few',"
                         " current_schema()); EXECUTE format('GRANT ALL ON SCHEMA %I TO few',"
                         " current_schema()); END $$");
    fixture_close(fixture);
    char url[sizeof fixture->url + 16];
    snprintf(url, sizeof url, "%s%suser=few", fixture->url, strchr(fixture->url, '?') ? "&" : "?");
    assert_int_equal(DB_OK, db_open(&(db_options){.url = url}, &fixture->store, NULL));
    db_error error = {0};
    assert_int_equal(DB_CROWDED, db_run(fixture->store, ping_within, fixture, &error));
    assert_int_equal(DB_OK, db_ping(fixture->store));
    db_close(fixture->store);
    fixture_open(fixture, NULL);
    fixture_sql(fixture, "DROP OWNED BY few");
    fixture_sql(fixture, "DROP ROLE few");
}
