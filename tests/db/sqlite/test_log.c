/* The log of the writing connection: its frames are gathered (db/sqlite/sqlite_wal_vfs.c), and
 * copied into the file in parts (db/sqlite/sqlite_checkpoint.c). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fault_vfs.h"
#include "fixture.h"
#include "tests.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum {
    MANY = 400,      /* answers of 1 KB: more than one gathered write */
    TOO_MANY = 9000, /* more than the writer's cache of 8 MB */
    WRITERS = 4,
    FRAME = 4096 + 24, /* bytes, as SQLite writes a page to the log */
    COMMIT = 42,       /* frames of a commit of 100 answers */
    LONG = 12000,      /* frames after which the whole log is copied (db/sqlite/sqlite.h) */
    SLACK = 4000,      /* frames that may be added meanwhile */
    HELD_MAX_S = 20
};

struct answers {
    const char *key;
    int n;
    bool undone;
};

static db_status work_answers(db_tx *tx, void *arg)
{
    const struct answers *answers = arg;
    db_answer answer = {.http_status = 201, .request = "order"};
    memset(answer.body, 'b', DB_BODY_MAX);
    for (int i = 0; i < answers->n; i++) {
        snprintf(answer.key, sizeof answer.key, "%s-%d", answers->key, i);
        db_status status = db_tx_insert_answer(tx, &answer);
        if (status != DB_OK)
            return status;
    }
    return answers->undone ? DB_DUPLICATE : DB_OK;
}

static db_status run(struct fixture *fixture, struct answers answers)
{
    return db_run(fixture->store, work_answers, &answers, NULL);
}

static off_t log_size(const struct fixture *fixture)
{
    char path[100];
    struct stat file;
    snprintf(path, sizeof path, "%s-wal", fixture->file);
    assert_int_equal(0, stat(path, &file));
    return file.st_size;
}

static void expect_answers(struct fixture *fixture, int n)
{
    assert_int_equal(n, fixture_sql_int(fixture, "SELECT count(*) FROM idempotency"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
}

TEST_FIXTURE(fixture_setup, fixture_teardown);

TEST_THAT(others_see_a_large_commit_whole)
{
    struct fixture *fixture = *state;
    db_answer answer;
    for (int i = 0; i < 5; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(DB_OK, run(fixture, (struct answers){.key = key, .n = MANY}));
        snprintf(key, sizeof key, "k%d-%d", i, MANY - 1);
        assert_int_equal(DB_OK, db_read_answer(fixture->reader, key, &answer));
        expect_answers(fixture, (i + 1) * MANY); /* from another connection and file handle */
    }
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    expect_answers(fixture, 5 * MANY);
}

/* synchronous=NORMAL: no flush after a commit. */
TEST_THAT(without_a_flush_they_see_it_too)
{
    fixture_close(*state);
    fixture_open(*state, &(db_options){.sync = DB_SYNC_NORMAL});
    others_see_a_large_commit_whole(state);
}

/* Otherwise its frames might be written later, over those of another commit. */
TEST_THAT(what_is_undone_never_reaches_the_log)
{
    struct fixture *fixture = *state;
    assert_int_equal(DB_OK, run(fixture, (struct answers){.key = "a", .n = 1}));
    off_t size = log_size(fixture);
    assert_int_equal(DB_DUPLICATE,
                     run(fixture, (struct answers){.key = "b", .n = TOO_MANY, .undone = true}));
    assert_int_equal(size, log_size(fixture));
    assert_int_equal(DB_OK, run(fixture, (struct answers){.key = "c", .n = 1}));
    assert_true(log_size(fixture) - size < 64 * 1024);
    expect_answers(fixture, 2);
}

/* -- starting over ---------------------------------------------------------------------------- */

struct writer {
    pthread_t thread;
    struct fixture *fixture;
    char name;
    int commits;
    db_status status;
};

static void *write_much(void *arg)
{
    struct writer *writer = arg;
    for (int i = 0; i < writer->commits; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c%d", writer->name, i);
        db_status status = run(writer->fixture, (struct answers){.key = key, .n = 100});
        if (status != DB_OK)
            writer->status = status;
    }
    return NULL;
}

/* All their frames together would be twice a long log. */
enum { COMMITS = 2 * LONG / COMMIT / WRITERS };

TEST_THAT(the_log_starts_over_beneath_writers_who_never_pause)
{
    struct fixture *fixture = *state;
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] =
            (struct writer){.fixture = fixture, .name = (char)('a' + i), .commits = COMMITS};
        assert_int_equal(0, pthread_create(&writers[i].thread, NULL, write_much, &writers[i]));
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(DB_OK, writers[i].status);
    assert_true(log_size(fixture) < (off_t)(LONG + SLACK) * FRAME);
    expect_answers(fixture, WRITERS * COMMITS * 100);
}

TEST_THAT(the_log_starts_over_once_a_long_reading_has_ended)
{
    struct fixture *fixture = *state;
    struct writer during = {.fixture = fixture, .name = 'a', .commits = (LONG + SLACK) / COMMIT},
                  after = {.fixture = fixture, .name = 'b', .commits = LONG / 2 / COMMIT};
    db_answer answer;
    assert_int_equal(DB_OK, run(fixture, (struct answers){.key = "k", .n = 1}));
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "k-0", &answer));
    write_much(&during);
    off_t grown = log_size(fixture);
    assert_true(grown > (off_t)(LONG + SLACK / 2) * FRAME); /* it could not start over */
    db_reader_end(fixture->reader);
    write_much(&after);
    assert_true(log_size(fixture) - grown < (off_t)SLACK * FRAME);
    assert_true(during.status == DB_OK && after.status == DB_OK);
    expect_answers(fixture, 1 + (during.commits + after.commits) * 100);
}

/* -- copying in parts ------------------------------------------------------------------------- */

/* Of the database file: writes since the last flush began, and all flushes. */
static atomic_int unflushed, flushes;
static atomic_int starts, bad_starts; /* of the log; bad: while a page was not flushed */

static void watch_starts(enum fault_event event, int flags, sqlite3_int64 at)
{
    static _Thread_local int before;
    if (flags & SQLITE_OPEN_WAL) {
        if (event == FAULT_WRITES && at == 0) {
            atomic_fetch_add(&starts, 1);
            atomic_fetch_add(&bad_starts, atomic_load(&unflushed) > 0);
        }
        return;
    }
    if (event == FAULT_WRITES)
        atomic_fetch_add(&unflushed, 1);
    else if (event == FAULT_FLUSHES)
        before = atomic_load(&unflushed);
    else {
        atomic_fetch_sub(&unflushed, before);
        atomic_fetch_add(&flushes, 1);
    }
}

/* Otherwise a power cut could lose both the page and its frame. */
TEST_THAT(the_log_starts_over_only_when_all_of_it_is_flushed)
{
    struct fixture *fixture = *state;
    struct writer writer = {
        .fixture = fixture, .name = 'a', .commits = 2 * (LONG + SLACK) / COMMIT};
    atomic_store(&fault_watch, watch_starts);
    write_much(&writer);
    atomic_store(&fault_watch, NULL);
    assert_int_equal(DB_OK, writer.status);
    assert_true(atomic_load(&starts) >= 1);
    assert_true(atomic_load(&flushes) > 3 * atomic_load(&starts)); /* in parts */
    assert_int_equal(0, atomic_load(&bad_starts));
}

static sem_t flush_begins, flush_may_end;
static atomic_bool held, waited_in_vain;

/* Holds the first flush of the database file. */
static void hold_flush(enum fault_event event, int flags, sqlite3_int64 at)
{
    (void)at;
    if (event != FAULT_FLUSHES || !(flags & SQLITE_OPEN_MAIN_DB) || atomic_exchange(&held, true))
        return;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += HELD_MAX_S;
    sem_post(&flush_begins);
    atomic_store(&waited_in_vain, sem_timedwait(&flush_may_end, &end) != 0);
}

TEST_THAT(commits_go_on_while_a_part_is_flushed)
{
    struct fixture *fixture = *state;
    struct writer during = {.fixture = fixture, .name = 'b', .commits = LONG / COMMIT};
    int n = 0;
    sem_init(&flush_begins, 0, 0);
    sem_init(&flush_may_end, 0, 0);
    atomic_store(&fault_watch, hold_flush);
    for (; n < LONG / COMMIT && sem_trywait(&flush_begins) != 0; n++) {
        char key[16];
        snprintf(key, sizeof key, "first%d", n);
        assert_int_equal(DB_OK, run(fixture, (struct answers){.key = key, .n = 100}));
    }
    assert_true(atomic_load(&held));
    write_much(&during);
    sem_post(&flush_may_end);
    fixture_close(fixture); /* waits for the flush */
    atomic_store(&fault_watch, NULL);
    assert_false(atomic_load(&waited_in_vain));
    fixture_open(fixture, NULL);
    expect_answers(fixture, (n + during.commits) * 100);
    sem_destroy(&flush_begins);
    sem_destroy(&flush_may_end);
}

int main(void)
{
    if (fault_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
