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

enum {
    MANY = 400,     /* answers of 1 KB: beyond what is gathered at once */
    TOO_MANY = 9000 /* beyond the writer's cache of 8 MB */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_see_a_large_commit_whole, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(what_is_undone_never_reaches_the_log, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
