/* PostgreSQL's connections: lost at each critical moment, all in use, or the server is away. */
#include "fixture.h"
#include "lateness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { AT_ONCE_MS = 1000, BACK_WITHIN_MS = 15000, PINGERS = 6 };

static const db_put any = {.expected_version = -1};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

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

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(a_pool_that_stays_in_use_is_busy)
{
    struct fixture *fixture = *state;
    db_item item = {.id = "1", .initial_stock = 1};
    db_error error = {0};
    fixture_close(fixture);
    strcat(fixture->url, "?pool=1");
    fixture_open(fixture, &(db_options){.busy_ms = 50});
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item, NULL));
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "1", &item));
    item = (db_item){.id = "2", .initial_stock = 1};
    assert_int_equal(DB_BUSY, db_run(fixture->store, work_reset_item, &item, &error));
    expect_says(&error, "raise pool=N");
    db_reader_end(fixture->reader);
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item, &error));
}

/* A trigger that fires at COMMIT ends its own backend. The store cannot know whether the commit
 * came first. */
TEST_THAT(a_connection_lost_in_commit_is_unknown)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    fixture_sql(fixture, "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                         " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
                         "CREATE CONSTRAINT TRIGGER planted AFTER INSERT ON ledger"
                         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_UNKNOWN, db_run(fixture->store, work_change, &change, NULL));
    fixture_sql(fixture, "ALTER TABLE ledger DISABLE TRIGGER planted");
    assert_int_equal(100, balance(fixture, "a"));
    fixture_sql(fixture, "DROP TRIGGER planted ON ledger;"
                         "CREATE TRIGGER planted AFTER INSERT ON ledger"
                         " FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_UNAVAILABLE, db_run(fixture->store, work_change, &change, NULL));
    fixture_sql(fixture, "DROP TRIGGER planted ON ledger");
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_true(fixture_audit(fixture, "account:a").ok);
}

/* After an error at COMMIT from a live server the outcome is known. */
TEST_THAT(a_commit_that_is_refused_is_undone)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    db_error error = {0};
    fixture_sql(fixture, "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                         " RAISE EXCEPTION 'planted'; END $$;"
                         "CREATE CONSTRAINT TRIGGER planted AFTER INSERT ON ledger"
                         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_FAILED, db_run(fixture->store, work_change, &change, &error));
    expect_says(&error, "planted");
    assert_int_equal(100, balance(fixture, "a"));
}

/* Ends all connections of the store and waits for their end. */
static void end_connections(struct fixture *fixture)
{
    fixture_sql(fixture, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                         " WHERE application_name = 'seckilld'");
}

TEST_THAT(a_connection_that_ended_while_idle_is_replaced)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    end_connections(fixture);
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    end_connections(fixture);
    assert_int_equal(99, balance(fixture, "a"));
}

TEST_THAT(a_snapshot_whose_connection_broke_does_not_go_on_from_another)
{
    struct fixture *fixture = *state;
    db_account account = fixture_account(fixture, "a", 100);
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &account));
    end_connections(fixture);
    assert_int_equal(DB_UNAVAILABLE, db_read_account(fixture->reader, "a", &account));
    assert_int_equal(DB_UNAVAILABLE, db_read_account(fixture->reader, "a", &account));
    db_reader_end(fixture->reader);
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &account));
}

TEST_THAT(an_audit_whose_connection_broke_says_why)
{
    struct fixture *fixture = *state;
    db_error error = {.message = ""};
    db_audit_row row;
    fixture_account(fixture, "a", 100);
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_true(fixture_audit(fixture, "account:a").ok);
    end_connections(fixture);
    assert_int_equal(DB_UNAVAILABLE, db_audit(fixture->reader, NULL, keep_audit_row, &row, &error));
    assert_int_equal(DB_UNAVAILABLE, error.status);
    expect_says(&error, "PostgreSQL: terminating connection");
    db_reader_end(fixture->reader);
    assert_true(fixture_audit(fixture, "account:a").ok);
}

TEST_THAT(a_killed_server_is_told_at_once_and_used_again_when_back)
{
    struct fixture *fixture = *state;
    db_error error = {0};
    db_audit_row row;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "t", .how = any};
    assert_true(WIFSIGNALED(sandbox_signal(pg_server, SIGKILL)));
    int64_t start_ms = now_ms();
    while (db_ping(fixture->store) == DB_OK) /* an orphaned backend may still commit for a while */
        assert_true(ended_within(start_ms, BACK_WITHIN_MS));
    start_ms = now_ms();
    assert_int_equal(DB_UNAVAILABLE, db_run(fixture->store, work_change, &change, &error));
    assert_int_equal(DB_UNAVAILABLE, db_ping(fixture->store));
    assert_int_equal(DB_UNAVAILABLE, db_read_account(fixture->reader, "a", &change.account));
    assert_int_equal(DB_UNAVAILABLE, db_audit(fixture->reader, NULL, keep_audit_row, &row, &error));
    expect_says(&error, "PostgreSQL: connection");
    assert_true(ended_within(start_ms, AT_ONCE_MS));
    while (sandbox_restart(pg_server) != 0) /* until the old backends have ended */
        assert_true(ended_within(start_ms, BACK_WITHIN_MS));
    assert_int_equal(DB_OK, db_ping(fixture->store));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, &error));
    assert_int_equal(99, balance(fixture, "a"));
}

struct pinger {
    pthread_t thread;
    db *store;
    db_status status;
    int64_t took_ms;
};

static void *pinger_main(void *arg)
{
    struct pinger *pinger = arg;
    int64_t start_ms = now_ms();
    pinger->status = db_ping(pinger->store);
    pinger->took_ms = now_ms() - start_ms;
    return NULL;
}

/* A stopped server accepts connections but does not answer. One caller tries it; the others get its
 * last result. */
TEST_THAT(a_stopped_server_holds_up_one_caller_at_a_time)
{
    struct fixture *fixture = *state;
    end_connections(fixture);
    assert_int_equal(0, sandbox_signal(pg_server, SIGSTOP));
    int64_t start_ms = now_ms();
    assert_int_equal(DB_UNAVAILABLE, db_ping(fixture->store));
    int64_t one_ms = now_ms() - start_ms;
    struct pinger pingers[PINGERS];
    for (int i = 0; i < PINGERS; i++) {
        pingers[i] = (struct pinger){.store = fixture->store};
        assert_int_equal(0, pthread_create(&pingers[i].thread, NULL, pinger_main, &pingers[i]));
    }
    int waited = 0;
    for (int i = 0; i < PINGERS; i++) {
        pthread_join(pingers[i].thread, NULL);
        waited += pingers[i].took_ms > one_ms / 2;
    }
    assert_int_equal(0, sandbox_signal(pg_server, SIGCONT));
    assert_int_equal(1, waited);
    for (int i = 0; i < PINGERS; i++)
        assert_int_equal(DB_UNAVAILABLE, pingers[i].status);
    assert_int_equal(DB_OK, db_ping(fixture->store));
}

/* The socket is intact; only the deadline shows the fault. */
TEST_THAT(a_connection_that_does_not_answer_in_time_is_replaced)
{
    struct fixture *fixture = *state;
    struct change change = {.delta = -1, .txn_id = "t", .how = any};
    db_error error = {.message = ""};
    fixture_close(fixture);
    strcat(fixture->url, "?pool=1");
    fixture_open(fixture, &(db_options){.busy_ms = 50});
    *strchr(fixture->url, '?') = '\0'; /* only the store understands the option */
    change.account = fixture_account(fixture, "a", 100);
    pid_t backend = (pid_t)fixture_sql_int(
        fixture, "SELECT pid FROM pg_stat_activity WHERE application_name = 'seckilld'");
    assert_true(backend > 0);
    assert_int_equal(0, kill(backend, SIGSTOP));
    db_status status = db_run(fixture->store, work_change, &change, &error);
    assert_int_equal(0, kill(backend, SIGCONT));
    assert_int_equal(DB_UNAVAILABLE, status);
    expect_says(&error, "in time");
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, &error));
    assert_int_equal(99, balance(fixture, "a"));
}
