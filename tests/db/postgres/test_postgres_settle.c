/* A commit without an answer: its outcome is found out on another connection, and it cannot take
 * effect after that. */
#include "fixture.h"
#include "sandbox_proxy.h"
#include "pg_standby.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { FIRST = 100, SETTLE_MS = 20000 };

struct rig {
    struct fixture fixture; /* its store goes through the proxy */
    struct proxy *proxy;
    pthread_t thread;
    struct change change;
    db_job job;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    char direct[sizeof rig->fixture.url];
    assert_non_null(rig);
    rig->fixture = fixture_folder();
    rig->proxy = proxy_open(pg_server->port);
    assert_non_null(rig->proxy);
    strcpy(direct, rig->fixture.url);
    snprintf(rig->fixture.url, sizeof rig->fixture.url,
             "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", proxy_port(rig->proxy));
    fixture_open(&rig->fixture, NULL);
    strcpy(rig->fixture.url, direct);
    rig->change = (struct change){.account = fixture_account(&rig->fixture, "a", FIRST),
                                  .delta = -1,
                                  .txn_id = "k1",
                                  .how = {.expected_version = -1},
                                  .with_answer = true};
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    fixture_remove(&rig->fixture);
    proxy_close(rig->proxy);
    free(rig);
    return 0;
}

static void *run_job(void *arg)
{
    struct rig *rig = arg;
    rig->job = (db_job){.work = work_change, .arg = &rig->change};
    db_run_many(rig->fixture.store, &rig->job, 1);
    return NULL;
}

static void start(struct rig *rig)
{
    assert_int_equal(0, pthread_create(&rig->thread, NULL, run_job, rig));
}

static void expect_unknown(struct rig *rig)
{
    pthread_join(rig->thread, NULL);
    assert_int_equal(DB_UNKNOWN, rig->job.status);
    assert_true(rig->job.commit_id.transaction > 0);
}

/* The COMMIT is held back and the connection is cut. */
static void lose_commit(struct rig *rig)
{
    proxy_hold(rig->proxy, "COMMIT", 1);
    start(rig);
    while (proxy_held(rig->proxy) == 0)
        sched_yield();
    proxy_hang_up(rig->proxy);
    expect_unknown(rig);
}

static db_status settle(struct rig *rig, int64_t wait_ms)
{
    return db_settle(rig->fixture.store, &rig->job.commit_id, wait_ms, NULL);
}

static void wait_for(struct rig *rig, const char *sql)
{
    while (fixture_sql_int(&rig->fixture, sql) == 0)
        sched_yield();
}

static void expect(struct rig *rig, int64_t balance)
{
    db_account account;
    assert_int_equal(DB_OK, db_read_account(rig->fixture.reader, "a", &account));
    assert_int_equal(balance, account.balance);
    assert_int_equal(balance != FIRST, fixture_is_stored(&rig->fixture, 1));
    assert_true(fixture_audit(&rig->fixture, "account:a").ok);
}

#define WITH_TRANSACTION "FROM pg_stat_activity WHERE backend_xid IS NOT NULL"

TEST_FIXTURE(set_up, tear_down);
ON_POSTGRES;

TEST_THAT(a_commit_whose_answer_was_lost_is_found)
{
    struct rig *rig = *state;
    proxy_lose_answer(rig->proxy, "COMMIT", 1, PROXY_CUT);
    start(rig);
    expect_unknown(rig);
    assert_int_equal(DB_OK, settle(rig, SETTLE_MS));
    expect(rig, FIRST - 1);
}

TEST_THAT(a_commit_that_is_still_on_its_way_never_lands)
{
    struct rig *rig = *state;
    lose_commit(rig);
    assert_int_equal(DB_OK, settle(rig, SETTLE_MS));
    expect(rig, FIRST);
    proxy_let_go(rig->proxy);
    while (proxy_held(rig->proxy) > 0)
        sched_yield();
    expect(rig, FIRST);
    assert_int_equal(0, fixture_sql_int(&rig->fixture, "SELECT count(*) " WITH_TRANSACTION));
}

/* "The transaction has already committed locally". */
TEST_THAT(a_commit_that_waits_for_an_absent_standby_is_committed)
{
    struct rig *rig = *state;
    assert_true(pg_standby_set(pg_server->url, "nobody"));
    start(rig);
    wait_for(rig, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                  " AND application_name = 'seckilld'");
    proxy_cut(rig->proxy);
    expect_unknown(rig);
    db_account account;
    assert_int_equal(DB_OK, db_read_account(rig->fixture.reader, "a", &account));
    assert_int_equal(FIRST, account.balance); /* B reads this while it is undecided */
    assert_int_equal(DB_OK, settle(rig, SETTLE_MS));
    assert_true(pg_standby_set(pg_server->url, ""));
    expect(rig, FIRST - 1);
}

/* A stopped backend does not end, so the outcome stays unknown until it does. Its COMMIT has
 * arrived by then, but too late. */
TEST_THAT(a_transaction_that_does_not_end_stays_undecided)
{
    struct rig *rig = *state;
    proxy_hold(rig->proxy, "COMMIT", 1);
    start(rig);
    while (proxy_held(rig->proxy) == 0)
        sched_yield();
    pid_t backend = (pid_t)fixture_sql_int(&rig->fixture, "SELECT pid " WITH_TRANSACTION);
    assert_true(backend > 1);
    assert_int_equal(0, kill(backend, SIGSTOP));
    proxy_hang_up(rig->proxy);
    expect_unknown(rig);
    assert_int_equal(DB_BUSY, settle(rig, 50));
    proxy_let_go(rig->proxy);
    assert_int_equal(DB_BUSY, settle(rig, 50));
    expect(rig, FIRST);
    assert_int_equal(0, kill(backend, SIGCONT));
    assert_int_equal(DB_OK, settle(rig, SETTLE_MS));
    expect(rig, FIRST);
}

TEST_THAT(a_server_that_does_not_answer_is_no_decision)
{
    struct rig *rig = *state;
    lose_commit(rig);
    assert_int_equal(0, sandbox_signal(pg_server, SIGSTOP)); /* no new connections */
    db_status status = settle(rig, 0);
    proxy_let_go(rig->proxy); /* the transaction's backend is running and commits */
    assert_int_equal(0, sandbox_signal(pg_server, SIGCONT));
    assert_int_equal(DB_UNAVAILABLE, status);
    assert_int_equal(DB_OK, settle(rig, SETTLE_MS));
    db_account account;
    assert_int_equal(DB_OK, db_read_account(rig->fixture.reader, "a", &account));
    int64_t decided = account.balance; /* either outcome, but final */
    assert_true(fixture_is_stored(&rig->fixture, 1) == (decided == FIRST - 1));
    expect(rig, decided);
}

/* Happens after a failover to a standby that lacks it, or after a restored backup. */
TEST_THAT(a_transaction_that_the_server_does_not_know_will_not_commit)
{
    struct rig *rig = *state;
    rig->job.commit_id.transaction = INT64_C(1) << 40;
    assert_int_equal(DB_OK, settle(rig, 0));
    rig->job.commit_id.transaction = 0; /* a transaction without writes */
    assert_int_equal(DB_OK, settle(rig, 0));
}

/* A transaction made without the store, and the identification that the store would use. */
static PGconn *begin_another(struct rig *rig, db_commit_id *ret)
{
    PGconn *handle = pg_connect(rig->fixture.url);
    PQclear(PQexec(handle, "BEGIN"));
    PGresult *result = PQexec(handle, "SELECT pg_current_xact_id()::text, pid,"
                                      " (extract(epoch FROM backend_start) * 1000000)::bigint"
                                      " FROM pg_stat_activity WHERE pid = pg_backend_pid()");
    assert_int_equal(1, PQntuples(result));
    *ret = (db_commit_id){.transaction = strtoll(PQgetvalue(result, 0, 0), NULL, 10),
                          .backend = strtoll(PQgetvalue(result, 0, 1), NULL, 10),
                          .backend_start_us = strtoll(PQgetvalue(result, 0, 2), NULL, 10)};
    PQclear(result);
    return handle;
}

static bool commits(PGconn *handle)
{
    PGresult *result = PQexec(handle, "COMMIT");
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    PQfinish(handle);
    return ok;
}

/* After a crash that lost the end of the log, the number or the process id may belong to another
 * transaction. */
TEST_THAT(a_number_that_was_given_again_ends_nobody)
{
    struct rig *rig = *state;
    static const struct {
        int backend, start_us; /* added to those of the innocent transaction */
    } others[] = {{1, 0}, {0, -1}, {1, -1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        db_commit_id commit_id;
        PGconn *innocent = begin_another(rig, &commit_id);
        commit_id.backend += others[i].backend;
        commit_id.backend_start_us += others[i].start_us;
        assert_int_equal(DB_OK, db_settle(rig->fixture.store, &commit_id, 0, NULL));
        assert_true(commits(innocent));
    }
}

TEST_THAT(a_transaction_of_that_very_process_is_ended)
{
    struct rig *rig = *state;
    db_commit_id commit_id;
    PGconn *handle = begin_another(rig, &commit_id);
    assert_int_equal(DB_OK, db_settle(rig->fixture.store, &commit_id, SETTLE_MS, NULL));
    assert_false(commits(handle));
}

/* The store answers reads; only a write shows that commits fail. */
TEST_THAT(after_an_unknown_outcome_a_ping_writes)
{
    struct rig *rig = *state;
    fixture_sql(&rig->fixture, "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$"
                               " BEGIN RAISE EXCEPTION 'planted'; END $$;"
                               "CREATE TRIGGER planted BEFORE INSERT ON tasks"
                               " FOR EACH ROW EXECUTE FUNCTION planted()");
    assert_int_equal(DB_OK, db_ping(rig->fixture.store));
    lose_commit(rig);
    assert_int_equal(DB_FAILED, db_ping(rig->fixture.store));
    fixture_sql(&rig->fixture, "ALTER TABLE tasks DISABLE TRIGGER planted");
    assert_int_equal(DB_OK, db_ping(rig->fixture.store));
    fixture_sql(&rig->fixture, "ALTER TABLE tasks ENABLE TRIGGER planted");
    assert_int_equal(DB_OK, db_ping(rig->fixture.store));
}
