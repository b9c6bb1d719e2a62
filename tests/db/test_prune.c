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

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(a_sweep_meets_each_key_once)
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

TEST_THAT(a_key_that_moved_something_stays_without_its_answer)
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

TEST_THAT(an_old_refusal_goes_with_its_key)
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

TEST_THAT(a_young_answer_stays_whole)
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

TEST_THAT(a_bite_leaves_the_keys_outside_it)
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

/* -- refusals beyond a number ------------------------------------------------------------------ */

static int64_t gone; /* in the last bite */

static db_status work_refusals(db_tx *tx, void *arg)
{
    return db_tx_prune_refusals(tx, *(const int64_t *)arg, &gone);
}

/* Keeps so many, and returns how many bites that took. */
static int keep_refusals(struct fixture *fixture, int64_t keep, int64_t *ret_n)
{
    int bites = 0;
    db_refusals beyond;
    assert_int_equal(DB_OK, db_read_refusals(fixture->reader, keep, &beyond));
    *ret_n = beyond.n;
    for (int64_t n = beyond.n; n > 0; n -= DB_BITE, bites++) {
        assert_int_equal(DB_OK, db_run(fixture->store, work_refusals, &beyond.before_us, NULL));
        assert_int_equal(n < DB_BITE ? n : DB_BITE, gone);
    }
    if (beyond.n > 0) { /* another instance was here */
        assert_int_equal(DB_OK, db_run(fixture->store, work_refusals, &beyond.before_us, NULL));
        assert_int_equal(0, gone);
    }
    return bites;
}

static int64_t count_answers(struct fixture *fixture, const char *where)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM idempotency WHERE %s", where);
    return fixture_sql_int(fixture, sql);
}

/* In an order that is neither that of keys nor of times. */
static void store_both(struct fixture *fixture, int n)
{
    char key[16];
    for (int i = 0; i < n; i++) {
        const int at = i * 7919 % n;
        snprintf(key, sizeof key, "r%d", at);
        assert_int_equal(DB_OK, store(fixture, key, at % 2 ? 409 : 422, 1000 + at));
        snprintf(key, sizeof key, "o%d", at);
        assert_int_equal(DB_OK, store(fixture, key, 201, 1000 + at));
    }
}

TEST_THAT(the_oldest_refusals_beyond_a_number_go)
{
    struct fixture *fixture = *state;
    int64_t n;
    assert_int_equal(0, keep_refusals(fixture, 1, &n));
    store_both(fixture, KEYS);
    assert_int_equal(0, keep_refusals(fixture, KEYS, &n));
    assert_int_equal(KEYS / 2 / DB_BITE + 1, keep_refusals(fixture, KEYS / 2, &n));
    assert_int_equal(KEYS / 2, n);
    assert_int_equal(KEYS / 2, count_answers(fixture, "http_status >= 400"));
    assert_int_equal(0, count_answers(fixture, "http_status >= 400 AND at_us < 1100"));
    assert_int_equal(KEYS, count_answers(fixture, "http_status < 400 AND body <> ''"));
    keep_refusals(fixture, KEYS / 2, &n);
    assert_int_equal(0, n);
    keep_refusals(fixture, 1, &n);
    assert_int_equal(1, count_answers(fixture, "http_status >= 400"));
    assert_int_equal(DB_OK, store(fixture, "r0", 201, NOW_US)); /* it is decided anew */
    assert_int_equal(DB_DUPLICATE, store(fixture, "o0", 201, NOW_US));
}

/* The answers of a batch have one time. */
TEST_THAT(refusals_of_one_time_stay_together)
{
    struct fixture *fixture = *state;
    char key[16];
    int64_t n;
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "r%d", i);
        assert_int_equal(DB_OK, store(fixture, key, 409, i < 4 ? OLD_US : NOW_US));
    }
    keep_refusals(fixture, 3, &n);
    assert_int_equal(4, n);
    assert_int_equal(6, count_answers(fixture, "at_us = 2000"));
    assert_int_equal(6, count_answers(fixture, "http_status = 409"));
    keep_refusals(fixture, 3, &n);
    assert_int_equal(0, n);
}

TEST_THAT(a_count_and_a_bite_have_an_end)
{
    struct fixture *fixture = *state;
    db_refusals beyond;
    fixture_sql(fixture, "INSERT INTO idempotency (key, request, http_status, body, at_us)"
                         " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                         " WHERE i < 5000) SELECT 'k' || i, 'r', 409, '{}', i FROM n");
    assert_int_equal(DB_OK, db_read_refusals(fixture->reader, 100, &beyond));
    assert_int_equal(DB_REFUSALS_MAX, beyond.n);
    assert_int_equal(4901, beyond.before_us);
    assert_int_equal(DB_OK, db_run(fixture->store, work_refusals, &beyond.before_us, NULL));
    assert_int_equal(5000 - DB_BITE, count_answers(fixture, "http_status = 409"));
    assert_int_equal(DB_BITE + 1, fixture_sql_int(fixture, "SELECT min(at_us) FROM idempotency"));
}

/* It was made by an earlier program of this version. A store is opened without the index, however
 * large it is and whoever opens it. */
TEST_THAT(only_a_migration_makes_the_index_of_refusals)
{
    struct fixture *fixture = *state;
    db_versions versions;
    db_refusals beyond;
    for (int i = 0; i < 2 * DB_BITE; i++) {
        char key[16];
        snprintf(key, sizeof key, "r%d", i);
        assert_int_equal(DB_OK, store(fixture, key, 409, 1000 + i));
    }
    fixture_close(fixture);
    fixture_sql(fixture, "DROP INDEX idempotency_refusals");
    for (int i = 0; i < 2; i++) {
        fixture_open(fixture, NULL);
        assert_int_equal(DB_NOT_FOUND, db_read_refusals(fixture->reader, 1, &beyond));
        assert_int_equal(DB_UNAVAILABLE, db_migrate(fixture->url, &versions, NULL));
        fixture_close(fixture);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(DB_OK, db_migrate(fixture->url, &versions, NULL));
        assert_int_equal(versions.from, versions.to);
        assert_int_equal(i == 0, versions.index_made);
    }
    fixture_open(fixture, NULL);
    assert_int_equal(DB_OK, db_read_refusals(fixture->reader, 1, &beyond));
    assert_int_equal(2 * DB_BITE - 1, beyond.n);
}
