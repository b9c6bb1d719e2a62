/* What SQLite's statements get for memory once db_keep_memory() has been called. */
#include "db.h"

#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sqlite3_mem_methods memory;

static void fill(unsigned char *at, int size)
{
    for (int i = 0; i < size; i++)
        at[i] = (unsigned char)(size + i);
}

static int count_wrong(const unsigned char *at, int size, int was)
{
    int wrong = 0;
    for (int i = 0; i < size; i++)
        wrong += at[i] != (unsigned char)(was + i);
    return wrong;
}

/* Every size around the bounds of those that are kept, all at once, twice. */
static void pieces_of_every_size_are_apart(void **state)
{
    (void)state;
    enum { N = 1300, STEP = 9 };
    static unsigned char *pieces[N];
    for (int round = 0; round < 2; round++) {
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            pieces[i] = memory.xMalloc(1 + i * STEP);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % 8, 0);
            assert_true(memory.xSize(pieces[i]) >= 1 + i * STEP);
            assert_true(memory.xRoundup(1 + i * STEP) >= 1 + i * STEP);
            fill(pieces[i], 1 + i * STEP);
        }
        for (int i = 0; i < N; i++)
            wrong += count_wrong(pieces[i], 1 + i * STEP, 1 + i * STEP);
        for (int i = 0; i < N; i++)
            memory.xFree(pieces[i]);
        assert_int_equal(wrong, 0);
    }
}

/* In a thread that has kept nothing yet. Returns how many pieces were not those given back, the
 * last first, which malloc() does not do for so many. */
static void *take_again(void *arg)
{
    static const int sizes[] = {1, 64, 65, 440, 512, 1024, 4104, 4368};
    enum { N = 8 };
    intptr_t others = 0;
    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *pieces[N];
        for (int k = 0; k < N; k++)
            pieces[k] = memory.xMalloc(sizes[i]);
        for (int k = 0; k < N; k++)
            memory.xFree(pieces[k]);
        for (int k = N - 1; k >= 0; k--) {
            void *again = memory.xMalloc(sizes[i]);
            others += again != pieces[k];
            pieces[k] = again;
        }
        for (int k = 0; k < N; k++)
            memory.xFree(pieces[k]);
    }
    return (void *)others;
}

static void what_was_given_back_serves_the_next(void **state)
{
    (void)state;
    pthread_t thread;
    void *others;
    assert_int_equal(pthread_create(&thread, NULL, take_again, NULL), 0);
    assert_int_equal(pthread_join(thread, &others), 0);
    assert_null(others);
}

static void growing_keeps_the_contents(void **state)
{
    (void)state;
    unsigned char *at = memory.xMalloc(10);
    fill(at, 10);
    for (int size = 20; size <= 20000; size += 700) {
        at = memory.xRealloc(at, size);
        assert_non_null(at);
        assert_true(memory.xSize(at) >= size);
        assert_int_equal(count_wrong(at, 10, 10), 0);
        memset(at + 10, 'x', (size_t)size - 10);
    }
    memory.xFree(at);
}

enum { MANY = 1000 };

/* Returns what serves the next. */
static void *give_back_many(void *arg)
{
    void **pieces = arg;
    for (int i = 0; i < MANY; i++)
        memory.xFree(pieces[i]);
    return memory.xMalloc(500);
}

/* More than a thread keeps: the rest goes back to malloc(), so the last is not the next. That all
 * are free in the end is seen by the sanitizers' leak check. */
static void another_thread_may_give_it_back_and_end(void **state)
{
    (void)state;
    static void *pieces[MANY];
    pthread_t thread;
    void *next;
    for (int i = 0; i < MANY; i++)
        pieces[i] = memory.xMalloc(500);
    assert_int_equal(pthread_create(&thread, NULL, give_back_many, pieces), 0);
    assert_int_equal(pthread_join(thread, &next), 0);
    assert_ptr_not_equal(next, pieces[MANY - 1]);
    memory.xFree(next);
}

static void it_is_set_up_before_the_first_use_only(void **state)
{
    (void)state;
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(":memory:", &handle), SQLITE_OK);
    assert_int_equal(db_keep_memory(), DB_INVALID);
    assert_int_equal(sqlite3_exec(handle,
                                  "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(9999))", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    assert_true(sqlite3_memory_used() == 0);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
}

static int set_up(void **state)
{
    (void)state;
    return db_keep_memory() == DB_OK &&
                   sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory) == SQLITE_OK
               ? 0
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_every_size_are_apart),
        cmocka_unit_test(what_was_given_back_serves_the_next),
        cmocka_unit_test(growing_keeps_the_contents),
        cmocka_unit_test(another_thread_may_give_it_back_and_end),
        cmocka_unit_test(it_is_set_up_before_the_first_use_only),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
