/* The log of the writing connection, whose frames are gathered (db/sqlite_log.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fixture.h"

#include <pthread.h>

enum {
    MANY = 400,      /* answers of 1 KB: beyond what is gathered at once */
    TOO_MANY = 9000, /* beyond the writer's cache of 8 MB */
    WRITERS = 4,
    FRAME = 4096 + 24, /* bytes, as SQLite writes a page to the log */
    CHECKPOINT = 1000, /* frames that call for a checkpoint (db/sqlite.h) */
    SLACK = 600        /* what a few commits may add until it comes */
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

static void others_see_a_large_commit_whole(void **state)
{
    struct fixture *fixture = *state;
    db_answer answer;
    for (int i = 0; i < 5; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(DB_OK, run(fixture, (struct answers){.key = key, .n = MANY}));
        snprintf(key, sizeof key, "k%d-%d", i, MANY - 1);
        assert_int_equal(DB_OK, db_read_answer(fixture->reader, key, &answer));
        expect_answers(fixture, (i + 1) * MANY); /* from another connection, with its own file */
    }
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    expect_answers(fixture, 5 * MANY);
}

/* synchronous=NORMAL: nothing is flushed after a commit. */
static void without_a_flush_they_see_it_too(void **state)
{
    fixture_close(*state);
    fixture_open(*state, &(db_options){.sync = DB_SYNC_NORMAL});
    others_see_a_large_commit_whole(state);
}

/* Or frames of it might be written later, over those of somebody else's commit. */
static void what_is_undone_never_reaches_the_log(void **state)
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
    db_status status;
};

/* Some 1700 frames of new rows, in forty commits. */
static void *write_much(void *arg)
{
    struct writer *writer = arg;
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c%d", writer->name, i);
        db_status status = run(writer->fixture, (struct answers){.key = key, .n = 100});
        if (status != DB_OK)
            writer->status = status;
    }
    return NULL;
}

static void the_log_starts_over_beneath_writers_who_never_pause(void **state)
{
    struct fixture *fixture = *state;
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.fixture = fixture, .name = (char)('a' + i)};
        assert_int_equal(0, pthread_create(&writers[i].thread, NULL, write_much, &writers[i]));
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(DB_OK, writers[i].status);
    assert_true(log_size(fixture) < (off_t)(CHECKPOINT + SLACK) * FRAME);
    expect_answers(fixture, WRITERS * 40 * 100);
}

static void the_log_starts_over_once_a_long_reading_has_ended(void **state)
{
    struct fixture *fixture = *state;
    struct writer during[] = {{.fixture = fixture, .name = 'a'}, {.fixture = fixture, .name = 'b'}};
    struct writer after[] = {{.fixture = fixture, .name = 'c'}, {.fixture = fixture, .name = 'd'}};
    db_answer answer;
    assert_int_equal(DB_OK, run(fixture, (struct answers){.key = "k", .n = 1}));
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "k-0", &answer));
    for (int i = 0; i < 2; i++)
        write_much(&during[i]);
    off_t grown = log_size(fixture);
    assert_true(grown > (off_t)3 * CHECKPOINT * FRAME); /* it could not start over */
    db_reader_end(fixture->reader);
    for (int i = 0; i < 2; i++)
        write_much(&after[i]);
    assert_true(log_size(fixture) - grown < (off_t)(CHECKPOINT + SLACK) * FRAME);
    for (int i = 0; i < 2; i++)
        assert_true(during[i].status == DB_OK && after[i].status == DB_OK);
    expect_answers(fixture, 1 + 4 * 40 * 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(others_see_a_large_commit_whole),
        TEST(without_a_flush_they_see_it_too),
        TEST(what_is_undone_never_reaches_the_log),
        TEST(the_log_starts_over_beneath_writers_who_never_pause),
        TEST(the_log_starts_over_once_a_long_reading_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
