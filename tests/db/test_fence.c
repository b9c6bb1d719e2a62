/* Fences from the store rise in all circumstances. */
#include "fixture.h"

#include <pthread.h>

enum { THREADS = 8 };

static int64_t next_fence(struct fixture *fixture, const char *resource, int64_t seen)
{
    int64_t fence = -1;
    db_error error = {.message = ""};
    if (db_next_fence(fixture->store, resource, seen, &fence, &error) != DB_OK)
        fail_msg("%s: %s", resource, error.message);
    return fence;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(each_resource_counts_from_one)
{
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(next_fence(*state, "item:1", 0), i);
        assert_int_equal(next_fence(*state, "account:1", 0), i);
    }
}

/* Another source has given greater fences before. */
TEST_THAT(fence_is_above_what_was_seen_and_stays_there)
{
    assert_int_equal(next_fence(*state, "item:1", 41), 42);
    assert_int_equal(next_fence(*state, "item:1", 0), 43);
    assert_int_equal(next_fence(*state, "item:1", 7), 44);
    assert_int_equal(next_fence(*state, "item:1", INT64_C(1) << 40), (INT64_C(1) << 40) + 1);
    assert_int_equal(next_fence(*state, "item:1", 0), (INT64_C(1) << 40) + 2);
}

TEST_THAT(reset_of_the_resource_sets_nothing_back)
{
    fixture_item(*state, "1", 100);
    assert_int_equal(next_fence(*state, "item:1", 0), 1);
    fixture_item(*state, "1", 50);
    assert_int_equal(next_fence(*state, "item:1", 0), 2);
}

TEST_THAT(counter_outlives_the_process)
{
    struct fixture *fixture = *state;
    assert_int_equal(next_fence(fixture, "item:1", 8), 9);
    fixture_close(fixture);
    fixture_open(fixture, NULL);
    assert_int_equal(next_fence(fixture, "item:1", 0), 10);
}

static db_status fail_after_all(db_tx *tx, void *arg)
{
    db_item *item = arg;
    db_status status = db_tx_reset_item(tx, item, "none", "test");
    return status == DB_OK ? DB_REFUSED : status;
}

TEST_THAT(business_that_is_undone_takes_no_fence_back)
{
    struct fixture *fixture = *state;
    db_item item = {.initial_stock = 5, .id = "2"};
    assert_int_equal(next_fence(fixture, "item:2", 0), 1);
    assert_int_equal(db_run(fixture->store, fail_after_all, &item, NULL), DB_REFUSED);
    assert_int_equal(next_fence(fixture, "item:2", 0), 2);
}

TEST_THAT(bad_arguments_are_refused)
{
    struct fixture *fixture = *state;
    char name[DB_RESOURCE_MAX + 2];
    int64_t fence = -1;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(db_next_fence(fixture->store, name, 0, &fence, NULL), DB_INVALID);
    assert_int_equal(db_next_fence(fixture->store, "", 0, &fence, NULL), DB_INVALID);
    assert_int_equal(db_next_fence(fixture->store, "item:1", -1, &fence, NULL), DB_INVALID);
    assert_int_equal(db_next_fence(fixture->store, "item:1", INT64_MAX, &fence, NULL), DB_INVALID);
    assert_int_equal(fence, -1);
}

struct taker {
    pthread_t thread;
    db *store;
    int64_t n, last, sum;
    bool rose;
};

static void *take_main(void *arg)
{
    struct taker *taker = arg;
    taker->rose = true;
    for (int64_t i = 0; i < taker->n; i++) {
        int64_t fence = 0;
        db_next_fence(taker->store, "item:1", 0, &fence, NULL);
        taker->rose = taker->rose && fence > taker->last;
        taker->last = fence;
        taker->sum += fence;
    }
    return NULL;
}

/* No fence is given twice: the sum is that of 1 to N. */
TEST_THAT(concurrent_callers_get_different_rising_fences)
{
    struct fixture *fixture = *state;
    struct taker takers[THREADS];
    int64_t each = full_or(2000, 50), all = each * THREADS, sum = 0;
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.store = fixture->store, .n = each};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_main, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        sum += takers[i].sum;
    }
    for (int i = 0; i < THREADS; i++)
        assert_true(takers[i].rose);
    assert_int_equal(sum, all * (all + 1) / 2);
    assert_int_equal(next_fence(fixture, "item:1", 0), all + 1);
}
