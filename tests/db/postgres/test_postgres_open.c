/* Opening a PostgreSQL store: refusals and their messages, and creation of the tables. */
#include "fixture.h"
#include "lateness.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { AT_ONCE_MS = 1000, OPENERS = 8 };

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

static int database_setup(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    *fixture = fixture_folder();
    *state = fixture;
    return 0;
}

static db_status open_url(const char *url, db_error *error)
{
    db *store = NULL;
    *error = (db_error){0};
    db_status status = db_open(&(db_options){.url = url}, &store, error);
    assert_true((status == DB_OK) == (store != NULL));
    db_close(store);
    return status;
}

TEST_FIXTURE(database_setup, fixture_teardown);
ON_POSTGRES;

TEST_THAT(bad_urls_are_invalid_and_show_no_password)
{
    static const char *const urls[] = {"postgres:",
                                       "postgres:host=secret",
                                       "postgres://u:secret@h:1/d?isolation=dirty",
                                       "postgres://u:secret@h:1/d?pool=0",
                                       "postgres://u:secret@h:1/d?pool=9999999",
                                       "postgres://u:secret@h:1/d?pool=",
                                       "postgres://u:secret@h:1/d?what=ever",
                                       "postgres://u:secret@[h/d"};
    db_error error;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(DB_INVALID, open_url(urls[i], &error));
        assert_true(error.message[0] != '\0' && !strstr(error.message, "secret"));
    }
}

TEST_THAT(a_missing_server_is_told_at_once)
{
    char url[64];
    db_error error;
    snprintf(url, sizeof url, "postgres://postgres@127.0.0.1:%d/x", sandbox_free_port());
    int64_t start_ms = now_ms();
    assert_int_equal(DB_UNAVAILABLE, open_url(url, &error));
    assert_true(ended_within(start_ms, AT_ONCE_MS));
    expect_says(&error, "Connection refused");
}

TEST_THAT(somebody_elses_database_is_left_alone)
{
    struct fixture *fixture = *state;
    db_error error;
    fixture_sql(fixture, "CREATE TABLE theirs (x int)");
    assert_int_equal(DB_INVALID, open_url(fixture->url, &error));
    expect_says(&error, "not by this service");
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM pg_class"
                                                 " WHERE relnamespace = 'public'::regnamespace"));
}

TEST_THAT(another_schema_version_is_invalid)
{
    struct fixture *fixture = *state;
    db_error error;
    assert_int_equal(DB_OK, open_url(fixture->url, &error));
    fixture_sql(fixture, "UPDATE seckill_schema SET version = 99");
    assert_int_equal(DB_INVALID, open_url(fixture->url, &error));
    expect_says(&error, "schema version 99");
}

struct opener {
    pthread_t thread;
    const char *url;
    db_status status;
    db_error error;
};

static void *opener_main(void *arg)
{
    struct opener *opener = arg;
    db *store = NULL;
    opener->status = db_open(&(db_options){.url = opener->url}, &store, &opener->error);
    db_close(store);
    return NULL;
}

/* All openers wait for the schema's lock at once: an outsider holds it until then. */
static void open_together(const char *url)
{
    struct opener openers[OPENERS];
    PGconn *outsider = pg_connect(pg_server->url);
    PQclear(PQexec(outsider, "SELECT pg_advisory_lock(1589735741)")); /* SCHEMA_LOCK */
    for (int i = 0; i < OPENERS; i++) {
        openers[i] = (struct opener){.url = url};
        assert_int_equal(0, pthread_create(&openers[i].thread, NULL, opener_main, &openers[i]));
    }
    while (pg_sql_int(pg_server->url, "SELECT count(*) FROM pg_locks WHERE NOT granted") < OPENERS)
        sched_yield();
    PQfinish(outsider);
    for (int i = 0; i < OPENERS; i++)
        pthread_join(openers[i].thread, NULL);
    for (int i = 0; i < OPENERS; i++)
        assert_string_equal("", openers[i].error.message);
}

TEST_THAT(instances_that_start_together_make_the_tables_once)
{
    static const char *const levels[] = {"read-committed", "repeatable-read", "serializable"};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char url[160];
        pg_empty_database(fixture->url, sizeof fixture->url);
        snprintf(url, sizeof url, "%s%sisolation=%s", fixture->url,
                 strchr(fixture->url, '?') ? "&" : "?", levels[i]);
        open_together(url);
        assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM seckill_schema"));
    }
}
