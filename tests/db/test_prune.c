/* Old answers of idempotency keys: the sweep meets each key once, and what it prunes can never act
 * twice. On both engines. */
#include "fixture.h"
#include "upkeep.h"

enum { KEYS = 200, OLD_US = 1000, NOW_US = 2000 };

struct stored {
    const char *key;
    int32_t http_status;
    int64_t at_us;
};

static db_status work_answer(db_tx *tx, void *arg)
{
    const struct stored *stored = arg;
    db_answer row = {.request = "order item=1",
                     .http_status = stored->http_status,
                     .body = "{}",
                     .at_us = stored->at_us};
    snprintf(row.key, sizeof row.key, "%s", stored->key);
    return db_tx_insert_answer(tx, &row);
}

static db_status store(struct fixture *fixture, const char *key, int32_t status, int64_t at_us)
{
    return db_run(fixture->store, work_answer, &(struct stored){key, status, at_us}, NULL);
}

struct range {
    const char *after, *last;
};

static db_status work_prune(db_tx *tx, void *arg)
{
    const struct range *range = arg;
    return db_tx_prune_bite(tx, range->after, range->last, NOW_US);
}

/* Returns how many bites there were. */
static int sweep(struct fixture *fixture, int64_t *ret_n, int64_t *ret_old)
{
    char after[DB_KEY_MAX + 1] = "";
    db_bite bite = {.n = DB_BITE};
    int bites = 0;
    for (*ret_n = *ret_old = 0; bite.n == DB_BITE; bites++) {
        assert_int_equal(DB_OK, db_read_bite(fixture->reader, after, NOW_US, &bite));
        *ret_n += bite.n;
        *ret_old += bite.old;
        struct range range = {after, bite.last};
        if (bite.old > 0)
            assert_int_equal(DB_OK, db_run(fixture->store, work_prune, &range, NULL));
        assert_true(bite.n < DB_BITE || strcmp(after, bite.last) < 0);
        strcpy(after, bite.last);
    }
    return bites;
}

static void a_sweep_meets_each_key_once(void **state)
{
    struct fixture *fixture = *state;
    char key[DB_KEY_MAX + 1];
    int64_t n, old;
    sweep(fixture, &n, &old);
    assert_int_equal(0, n);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "%d\tkey", i * 7919 % KEYS);
        assert_int_equal(DB_OK, store(fixture, key, 201, i % 2 ? OLD_US : NOW_US));
    }
    assert_int_equal(KEYS / DB_BITE + 1, sweep(fixture, &n, &old));
    assert_int_equal(KEYS, n);
    assert_int_equal(KEYS / 2, old);
    sweep(fixture, &n, &old);
    assert_int_equal(KEYS, n);
    assert_int_equal(0, old);
}

static void a_key_that_moved_something_stays_without_its_answer(void **state)
{
    struct fixture *fixture = *state;
    db_answer answer;
    int64_t n, old;
    bool found;
    assert_int_equal(DB_OK, store(fixture, "done", 201, OLD_US));
    sweep(fixture, &n, &old);
    assert_int_equal(1, old);
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "done", &answer));
    assert_int_equal(201, answer.http_status);
    assert_int_equal(OLD_US, answer.at_us);
    assert_string_equal("", answer.body);
    assert_string_equal("", answer.request);
    assert_int_equal(DB_OK, db_find_answers(fixture->reader, (const char *[]){"done"}, 1, &found));
    assert_true(found);
    assert_int_equal(DB_DUPLICATE, store(fixture, "done", 201, NOW_US));
}

static void an_old_refusal_goes_with_its_key(void **state)
{
    struct fixture *fixture = *state;
    db_answer answer;
    int64_t n, old;
    assert_int_equal(DB_OK, store(fixture, "refused", 409, OLD_US));
    sweep(fixture, &n, &old);
    assert_int_equal(1, old);
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, "refused", &answer));
    assert_int_equal(DB_OK, store(fixture, "refused", 201, NOW_US));
}

static void a_young_answer_stays_whole(void **state)
{
    struct fixture *fixture = *state;
    db_answer answer;
    int64_t n, old;
    static const char *const keys[] = {"done", "refused"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(DB_OK, store(fixture, keys[i], i ? 409 : 201, NOW_US));
    assert_int_equal(DB_OK, store(fixture, "elder", 201, OLD_US)); /* prunes their bite */
    sweep(fixture, &n, &old);
    assert_int_equal(1, old);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(DB_OK, db_read_answer(fixture->reader, keys[i], &answer));
        assert_string_equal("{}", answer.body);
        assert_string_equal("order item=1", answer.request);
    }
}

static void a_bite_leaves_the_keys_outside_it(void **state)
{
    struct fixture *fixture = *state;
    db_answer answer;
    static const char *const keys[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(DB_OK, store(fixture, keys[i], i % 2 ? 409 : 201, OLD_US));
    struct range range = {"a", "c"};
    assert_int_equal(DB_OK, db_run(fixture->store, work_prune, &range, NULL));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "a", &answer));
    assert_string_equal("{}", answer.body);
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, "b", &answer));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "c", &answer));
    assert_string_equal("", answer.body);
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "d", &answer));
    char endless[DB_KEY_MAX + 2];
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    range = (struct range){"", endless};
    assert_int_equal(DB_INVALID, db_run(fixture->store, work_prune, &range, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sweep_meets_each_key_once),
        TEST(a_key_that_moved_something_stays_without_its_answer),
        TEST(an_old_refusal_goes_with_its_key),
        TEST(a_young_answer_stays_whole),
        TEST(a_bite_leaves_the_keys_outside_it),
    };
    return RUN_ON_BOTH_ENGINES(tests);
}
