/* Many rows of a kind in one transaction. An error of one row must be reported for that row, and
 * the others must be stored as if each had been written alone. */
#include "batch.h"

enum { ROWS_MAX = 300 };

TEST_FIXTURE(batch_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(a_batch_of_any_size_is_written_whole_and_in_order)
{
    static const int sizes[] = {1, 2, 127, 128, 129, 256, 257, ROWS_MAX};
    struct fixture *fixture = *state;
    int sold = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", sizes[i]);
        struct batch batch = make_batch(fixture, name, sizes[i]);
        assert_int_equal(DB_OK, batch_run(&batch));
        assert_int_equal(1, batch.runs);
        sold += sizes[i];
        expect_sold(fixture, sold);
        assert_int_equal(sold + 1, count_rows(fixture, "idempotency"));
    }
}

TEST_THAT(a_key_that_is_taken_is_told_by_its_place_and_nothing_is_written)
{
    static const int places[] = {0, 1, 63, 127, 128, ROWS_MAX - 1};
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct batch batch = make_batch(fixture, "b", ROWS_MAX);
        batch.taken = places[i];
        assert_int_equal(DB_DUPLICATE, batch_run(&batch));
        assert_int_equal(places[i], batch.told);
        batch.taken = NOBODY;
        batch.twice = places[i];
        batch.runs = 0;
        if (places[i] > 0) {
            assert_int_equal(DB_DUPLICATE, batch_run(&batch));
            assert_int_equal(places[i], batch.told);
        }
    }
    expect_sold(fixture, 0);
    assert_int_equal(1, count_rows(fixture, "idempotency"));
    struct batch batch = make_batch(fixture, "b", ROWS_MAX);
    assert_int_equal(DB_OK, batch_run(&batch));
    expect_sold(fixture, ROWS_MAX);
}

TEST_THAT(an_order_id_that_is_taken_undoes_the_batch)
{
    struct fixture *fixture = *state;
    struct batch batch = make_batch(fixture, "b", 64);
    batch.order_taken = 31;
    assert_int_equal(DB_INVALID, batch_run(&batch));
    assert_int_equal(1, count_rows(fixture, "idempotency"));
    expect_sold(fixture, 0);
}

TEST_THAT(a_stale_fence_or_version_refuses_the_rows_around_it_too)
{
    struct fixture *fixture = *state;
    struct batch batch = make_batch(fixture, "newer", 3);
    batch.how = (db_put){.fence = 7, .expected_version = batch.item.version};
    assert_int_equal(DB_OK, batch_run(&batch));
    batch = make_batch(fixture, "late", 64);
    batch.how = (db_put){.fence = 6, .expected_version = batch.item.version};
    assert_int_equal(DB_STALE_FENCE, batch_run(&batch));
    batch = make_batch(fixture, "other", 64);
    batch.how.expected_version = batch.item.version - 1;
    assert_int_equal(DB_CONFLICT, batch_run(&batch));
    /* Two errors: either may be reported. */
    batch.taken = 40;
    db_status status = batch_run(&batch);
    assert_true(status == DB_CONFLICT || (status == DB_DUPLICATE && batch.told == 40));
    batch.taken = NOBODY;
    batch.order_taken = 40;
    assert_int_equal(DB_CONFLICT, batch_run(&batch));
    expect_sold(fixture, 3);
    assert_int_equal(4, count_rows(fixture, "idempotency"));
}

/* Texts that need quoting in SQL or in an array's text form; numbers at their limits. */
static const char *const odd_texts[] = {
    "", "NULL", "{a,b}", "\"", "\\", "'; DROP TABLE orders; --", "\t\n ", "\xc3\xa4\xe2\x82\xac"};
static const int64_t odd_numbers[] = {INT64_MIN, INT64_MAX, -1, 0, 1, INT64_C(1) << 32};
enum { ODD_TEXTS = sizeof odd_texts / sizeof *odd_texts };

static db_answer odd_answer(int i)
{
    db_answer answer = {.http_status = 100 + i, .at_us = odd_numbers[i % 6]};
    snprintf(answer.key, sizeof answer.key, "%d%s", i, odd_texts[i % ODD_TEXTS]);
    snprintf(answer.request, sizeof answer.request, "%s", odd_texts[i % ODD_TEXTS]);
    memset(answer.body, 'b', DB_BODY_MAX); /* longest and short bodies alternate */
    if (i % 2 == 0)
        strcpy(answer.body, odd_texts[i / 2 % ODD_TEXTS]);
    return answer;
}

static db_status work_odd_answers(db_tx *tx, void *arg)
{
    const int *from_to = arg;
    db_status status = DB_OK;
    for (int i = from_to[0]; i < from_to[1] && status == DB_OK; i++) {
        db_answer answer = odd_answer(i);
        status = db_tx_insert_answer(tx, &answer);
    }
    return status;
}

TEST_THAT(each_row_is_stored_as_if_it_came_alone)
{
    struct fixture *fixture = *state;
    int alone[] = {0, 1}, together[] = {1, 100};
    assert_int_equal(DB_OK, db_run(fixture->store, work_odd_answers, alone, NULL));
    assert_int_equal(DB_OK, db_run(fixture->store, work_odd_answers, together, NULL));
    for (int i = 0; i < 100; i++) {
        db_answer expected = odd_answer(i), stored;
        assert_int_equal(DB_OK, db_read_answer(fixture->reader, expected.key, &stored));
        assert_string_equal(expected.request, stored.request);
        assert_string_equal(expected.body, stored.body);
        assert_int_equal(expected.http_status, stored.http_status);
        assert_int_equal(expected.at_us, stored.at_us);
    }
}

/* Every third key has an answer. */
TEST_THAT(keys_that_have_an_answer_are_found_by_their_place)
{
    struct fixture *fixture = *state;
    static char texts[DB_KEYS_MAX][DB_KEY_MAX + 1];
    const char *keys[DB_KEYS_MAX];
    bool found[DB_KEYS_MAX];
    int numbers[] = {0, 100};
    assert_int_equal(DB_OK, db_run(fixture->store, work_odd_answers, numbers, NULL));
    for (int i = 0; i < DB_KEYS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "%s", i % 3 ? "new" : odd_answer(i / 3).key);
        keys[i] = texts[i];
    }
    for (size_t n = 1; n <= DB_KEYS_MAX; n = n < 4 ? n + 1 : n * 2) {
        assert_int_equal(DB_OK, db_find_answers(fixture->reader, keys, n, found));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(i % 3 == 0, found[i]);
        assert_int_equal(DB_OK, db_find_answers(fixture->reader, keys + 1, 1, found));
        assert_false(found[0]);
    }
}

TEST_THAT(what_each_of_many_buyers_has_is_read_by_place)
{
    struct fixture *fixture = *state;
    static char names[DB_KEYS_MAX][8];
    const char *buyers[DB_KEYS_MAX];
    int64_t bought[DB_KEYS_MAX];
    for (int i = 0; i < DB_KEYS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "u%d", DB_KEYS_MAX - 1 - i);
        buyers[i] = names[i];
    }
    struct batch some = make_batch(fixture, "some", 50);
    assert_int_equal(DB_OK, batch_run(&some));
    struct batch more = make_batch(fixture, "more", 100);
    assert_int_equal(DB_OK, batch_run(&more));
    for (size_t n = 1; n <= DB_KEYS_MAX; n = n < 4 ? n + 1 : n * 2) {
        assert_int_equal(DB_OK, db_read_bought(fixture->reader, &more.item, buyers, n, bought));
        for (int i = 0; i < (int)n; i++) {
            int user = DB_KEYS_MAX - 1 - i;
            assert_int_equal((user < 50) + (user < 100), bought[i]);
        }
    }
}
