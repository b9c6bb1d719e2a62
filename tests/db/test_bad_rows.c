/* Rows with a bad name, text, state, fence or version: each function of a transaction refuses them,
 * and does so before it writes anything. */
#include "fixture.h"

#include <limits.h>

enum { CALLS_MAX = 64 };

/* What each bad call returned, beside what it must return. */
struct calls {
    size_t n;
    db_status returned[CALLS_MAX], expected[CALLS_MAX];
};

static void expect(struct calls *calls, db_status expected, db_status returned)
{
    assert_true(calls->n < CALLS_MAX);
    calls->expected[calls->n] = expected;
    calls->returned[calls->n++] = returned;
}

/* A text without an end. */
#define FILL(text) memset(text, 'x', sizeof(text))

static const db_put any = {.expected_version = -1, .item_guard = ""};

static db_status bad_items(db_tx *tx, void *arg)
{
    struct calls *calls = arg;
    const db_item good = {.id = "1", .initial_stock = 9, .stock = 9, .version = 2, .epoch = 1};
    db_item nameless = good, long_name = good, long_guard = good, row = good;
    char long_text[DB_INSTANCE_MAX + 1];
    int64_t bought = 0;
    nameless.id[0] = '\0';
    FILL(long_name.id);
    FILL(long_guard.guard);
    FILL(long_text);
    db_item *bad[] = {&nameless, &long_name, &long_guard};
    for (size_t i = 0; i < 3; i++) {
        expect(calls, DB_INVALID, db_tx_put_item(tx, bad[i], &any));
        expect(calls, DB_INVALID, db_tx_add_item(tx, bad[i], 1));
        expect(calls, DB_INVALID, db_tx_reset_item(tx, bad[i], "none", "test"));
    }
    expect(calls, DB_NOT_FOUND, db_tx_read_item(tx, "", false, &row));
    expect(calls, DB_NOT_FOUND, db_tx_read_bought(tx, &nameless, "u", &bought));
    expect(calls, DB_NOT_FOUND, db_tx_read_bought(tx, &good, "", &bought));
    expect(calls, DB_INVALID, db_tx_put_item(tx, &good, &(db_put){.fence = -1}));
    expect(calls, DB_INVALID, db_tx_put_item(tx, &good, &(db_put){.expected_version = -2}));
    expect(calls, DB_INVALID,
           db_tx_put_item(tx, &good, &(db_put){.fence = 1, .expected_version = -1}));
    expect(calls, DB_INVALID, db_tx_reset_item(tx, &row, long_text, "test"));
    expect(calls, DB_INVALID, db_tx_reset_item(tx, &row, "", long_text));
    expect(calls, DB_REFUSED, db_tx_add_item(tx, &row, INT64_MIN));
    return DB_OK;
}

static db_status bad_accounts(db_tx *tx, void *arg)
{
    struct calls *calls = arg;
    const db_account good = {
        .id = "a", .initial_balance = 9, .balance = 9, .version = 2, .epoch = 1};
    db_account nameless = good, long_name = good, long_guard = good, row = good;
    char long_text[DB_INSTANCE_MAX + 1];
    nameless.id[0] = '\0';
    FILL(long_name.id);
    FILL(long_guard.guard);
    FILL(long_text);
    db_account *bad[] = {&nameless, &long_name, &long_guard};
    for (size_t i = 0; i < 3; i++) {
        expect(calls, DB_INVALID, db_tx_put_account(tx, bad[i], &any));
        expect(calls, DB_INVALID, db_tx_add_account(tx, bad[i], 1));
        expect(calls, DB_INVALID, db_tx_reset_account(tx, bad[i], "none", "test"));
    }
    expect(calls, DB_NOT_FOUND, db_tx_read_account(tx, "", false, &row));
    expect(calls, DB_INVALID, db_tx_put_account(tx, &good, &(db_put){.fence = -1}));
    expect(calls, DB_INVALID, db_tx_reset_account(tx, &row, long_text, "test"));
    expect(calls, DB_INVALID, db_tx_reset_account(tx, &row, "", long_text));
    expect(calls, DB_REFUSED, db_tx_add_account(tx, &row, INT64_MIN));
    return DB_OK;
}

static db_status bad_orders(db_tx *tx, void *arg)
{
    struct calls *calls = arg;
    const db_order good = {
        .id = "o", .item_id = "1", .user_id = "u", .quantity = 1, .version = 1, .item_epoch = 1};
    const db_order_state no_state = (db_order_state)(DB_REFUNDED + 1);
    db_order nameless = good, of_nothing = good, of_nobody = good, stateless = good, row = good;
    nameless.id[0] = '\0';
    FILL(of_nothing.item_id);
    of_nobody.user_id[0] = '\0';
    stateless.state = no_state;
    expect(calls, DB_INVALID, db_tx_insert_order(tx, &nameless));
    expect(calls, DB_INVALID, db_tx_insert_order(tx, &of_nothing));
    expect(calls, DB_INVALID, db_tx_insert_order(tx, &of_nobody));
    expect(calls, DB_INVALID, db_tx_insert_order(tx, &stateless));
    expect(calls, DB_INVALID, db_tx_put_order(tx, &nameless, &any));
    expect(calls, DB_INVALID, db_tx_put_order(tx, &stateless, &any));
    expect(calls, DB_INVALID, db_tx_put_order(tx, &good, &(db_put){.fence = -1}));
    expect(calls, DB_INVALID, db_tx_move_order(tx, &nameless, "", DB_RESERVED, DB_PAID));
    expect(calls, DB_INVALID, db_tx_move_order(tx, &row, "", no_state, DB_PAID));
    expect(calls, DB_INVALID, db_tx_move_order(tx, &row, "", DB_RESERVED, no_state));
    expect(calls, DB_NOT_FOUND, db_tx_read_order(tx, "", false, &row));
    return DB_OK;
}

static db_status bad_books(db_tx *tx, void *arg)
{
    struct calls *calls = arg;
    const db_ledger_row good = {.resource = "item:1", .txn_id = "t", .guard = "none"};
    const db_answer good_answer = {.key = "k", .http_status = 201, .request = "r", .body = "{}"};
    db_ledger_row nameless = good, long_txn = good, long_guard = good, long_instance = good,
                  negative = good;
    db_answer keyless = good_answer, long_request = good_answer, long_body = good_answer;
    char long_text[DB_INSTANCE_MAX + 1];
    nameless.resource[0] = '\0';
    FILL(long_txn.txn_id);
    FILL(long_guard.guard);
    FILL(long_instance.instance);
    negative.fence = -1;
    keyless.key[0] = '\0';
    FILL(long_request.request);
    FILL(long_body.body);
    FILL(long_text);
    expect(calls, DB_INVALID, db_tx_append_ledger(tx, &nameless));
    expect(calls, DB_INVALID, db_tx_append_ledger(tx, &long_txn));
    expect(calls, DB_INVALID, db_tx_append_ledger(tx, &long_guard));
    expect(calls, DB_INVALID, db_tx_append_ledger(tx, &long_instance));
    expect(calls, DB_INVALID, db_tx_append_ledger(tx, &negative));
    expect(calls, DB_INVALID, db_tx_insert_answer(tx, &keyless));
    expect(calls, DB_INVALID, db_tx_insert_answer(tx, &long_request));
    expect(calls, DB_INVALID, db_tx_insert_answer(tx, &long_body));
    expect(calls, DB_INVALID, db_tx_put_task(tx, "", "test", 1, 1));
    expect(calls, DB_INVALID, db_tx_put_task(tx, "close", long_text, 1, 1));
    return DB_OK;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

/* The transaction itself commits: a bad call leaves nothing in it. */
TEST_THAT(bad_rows_are_refused_and_nothing_is_written)
{
    struct fixture *fixture = *state;
    static db_work *const works[] = {bad_items, bad_accounts, bad_orders, bad_books};
    fixture_item(fixture, "1", 9);
    fixture_account(fixture, "a", 9);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        struct calls calls = {0};
        assert_int_equal(DB_OK, db_run(fixture->store, works[i], &calls, NULL));
        for (size_t k = 0; k < calls.n; k++)
            if (calls.returned[k] != calls.expected[k])
                fail_msg("work %zu, call %zu: %d", i, k, (int)calls.returned[k]);
        assert_true(calls.n >= 10);
    }
    assert_int_equal(3, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM items"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT version FROM items"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM accounts"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT version FROM accounts"));
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT count(*) FROM orders"));
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT count(*) FROM idempotency"));
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT count(*) FROM tasks"));
}

TEST_THAT(no_fence_is_drawn_for_a_bad_name_or_above_the_last_number)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *resource;
        int64_t seen;
    } bad[] = {{"", 0}, {"item:1", -1}, {"item:1", INT64_MAX}};
    char long_name[DB_RESOURCE_MAX + 1];
    int64_t fence = 77;
    db_error error = {0};
    FILL(long_name);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(DB_INVALID, db_next_fence(fixture->store, bad[i].resource, bad[i].seen,
                                                   &fence, &error));
        assert_non_null(strstr(error.message, "no fence is above"));
    }
    assert_int_equal(DB_INVALID, db_next_fence(fixture->store, long_name, 0, &fence, NULL));
    assert_int_equal(77, fence);
    assert_int_equal(DB_OK, db_next_fence(fixture->store, "item:1", INT64_MAX - 1, &fence, NULL));
    assert_true(fence == INT64_MAX);
}
