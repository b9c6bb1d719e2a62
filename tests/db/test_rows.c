/* Items and accounts: resets, conditional writes of absolute values, conditional changes. */
#include "fixture.h"

struct put_item {
    db_item row;
    db_put how;
};

static db_status work_put_item(db_tx *tx, void *arg)
{
    const struct put_item *put = arg;
    return db_tx_put_item(tx, &put->row, &put->how);
}

static db_status put_item(struct fixture *fixture, const db_item *row, int64_t stock,
                          int64_t version, db_put how)
{
    struct put_item put = {*row, how};
    put.row.stock = stock;
    put.row.version = version;
    return db_run(fixture->store, work_put_item, &put, NULL);
}

static db_item read_item(struct fixture *fixture, const char *id)
{
    db_item item;
    assert_int_equal(DB_OK, db_read_item(fixture->reader, id, &item));
    return item;
}

static const db_put any = {.expected_version = -1};

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(reset_creates_with_version_and_epoch_one)
{
    db_item item = fixture_item(*state, "1", 100);
    assert_int_equal(100, item.stock);
    assert_int_equal(1, item.version);
    assert_int_equal(1, item.epoch);
    db_account account = fixture_account(*state, "a", 5000);
    assert_int_equal(5000, account.balance);
    assert_int_equal(1, account.version);
    assert_int_equal(1, account.epoch);
}

TEST_THAT(reset_raises_version_and_epoch_and_forgets_the_fence)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 100);
    assert_int_equal(DB_OK,
                     put_item(fixture, &item, 7, 40, (db_put){.fence = 9, .expected_version = 1}));
    db_item again = fixture_item(fixture, "1", 30);
    assert_int_equal(30, again.stock);
    assert_int_equal(41, again.version);
    assert_int_equal(2, again.epoch);
    assert_int_equal(0, again.last_fence);
}

TEST_THAT(every_column_comes_back_as_stored)
{
    struct fixture *fixture = *state;
    db_item item = {.guard = "redis-token-24-bytes-max",
                    .initial_stock = INT64_MAX,
                    .price = INT64_MIN,
                    .per_user_limit = 3,
                    .reserve_s = 900,
                    .fence = true};
    memset(item.id, 'i', DB_ID_MAX);
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_item, &item, NULL));
    db_item item_back = read_item(fixture, item.id);
    assert_string_equal(item.guard, item_back.guard);
    assert_true(item_back.initial_stock == INT64_MAX && item_back.stock == INT64_MAX);
    assert_true(item_back.price == INT64_MIN);
    assert_int_equal(3, item_back.per_user_limit);
    assert_int_equal(900, item_back.reserve_s);
    assert_true(item_back.fence);

    db_account account = {.guard = "mutex", .initial_balance = -INT64_MAX, .fence = true}, back;
    memset(account.id, 'a', DB_ID_MAX);
    assert_int_equal(DB_OK, db_run(fixture->store, work_reset_account, &account, NULL));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, account.id, &back));
    assert_string_equal("mutex", back.guard);
    assert_true(back.initial_balance == -INT64_MAX && back.balance == -INT64_MAX && back.fence);
}

TEST_THAT(put_stores_the_value_whatever_stands_there)
{
    struct fixture *fixture = *state;
    db_item stale = fixture_item(fixture, "1", 100);
    assert_int_equal(DB_OK, put_item(fixture, &stale, 99, 2, any));
    assert_int_equal(DB_OK, put_item(fixture, &stale, 98, 2, any)); /* from the same reading */
    db_item item = read_item(fixture, "1");
    assert_int_equal(98, item.stock);
    assert_int_equal(2, item.version);
    assert_int_equal(DB_OK, put_item(fixture, &stale, -5, 3, any)); /* nothing hides an oversell */
    assert_int_equal(-5, read_item(fixture, "1").stock);
}

TEST_THAT(put_with_an_older_fence_writes_nothing)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 100);
    db_put fenced = {.fence = 7, .expected_version = 1};
    assert_int_equal(DB_OK, put_item(fixture, &item, 90, 2, fenced));
    assert_int_equal(7, read_item(fixture, "1").last_fence);
    fenced.fence = 6;
    assert_int_equal(DB_STALE_FENCE, put_item(fixture, &item, 50, 3, fenced));
    item = read_item(fixture, "1");
    assert_true(item.stock == 90 && item.version == 2 && item.last_fence == 7);
    fenced.expected_version = 2; /* nor when it has just been read */
    assert_int_equal(DB_STALE_FENCE, put_item(fixture, &item, 50, 3, fenced));
    fenced.fence = 7; /* the same hold may write again */
    assert_int_equal(DB_OK, put_item(fixture, &item, 80, 3, fenced));
    assert_int_equal(DB_OK, put_item(fixture, &item, 70, 4, any)); /* no fence: not checked */
    assert_int_equal(7, read_item(fixture, "1").last_fence);
}

/* A late writer writes between the newer holder's read and write. Its fence is the newest that the
 * store has seen, so it passes. The newer holder's reading is then out of date. */
TEST_THAT(newer_fence_that_read_before_an_older_one_wrote_conflicts)
{
    struct fixture *fixture = *state;
    db_item late = fixture_item(fixture, "1", 100);
    db_item early = read_item(fixture, "1");
    db_put fence_7 = {.fence = 7, .expected_version = 1};
    db_put fence_8 = {.fence = 8, .expected_version = 1};
    assert_int_equal(DB_OK, put_item(fixture, &late, 90, 2, fence_7));
    assert_int_equal(DB_CONFLICT, put_item(fixture, &early, 80, 2, fence_8));
    assert_int_equal(90, read_item(fixture, "1").stock);
    fence_8.expected_version = 2;
    assert_int_equal(DB_OK, put_item(fixture, &early, 80, 3, fence_8));
    assert_int_equal(8, read_item(fixture, "1").last_fence);
}

/* A fence without a version does not show which version was read, so it could cause a fork. */
TEST_THAT(fence_without_the_version_that_was_read_is_invalid)
{
    db_item item = fixture_item(*state, "1", 100);
    assert_int_equal(DB_INVALID,
                     put_item(*state, &item, 90, 2, (db_put){.fence = 7, .expected_version = -1}));
}

TEST_THAT(put_with_another_version_conflicts)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 100);
    db_put expecting = {.expected_version = 1};
    assert_int_equal(DB_OK, put_item(fixture, &item, 99, 2, expecting));
    assert_int_equal(DB_CONFLICT, put_item(fixture, &item, 98, 2, expecting));
    assert_int_equal(99, read_item(fixture, "1").stock);
}

TEST_THAT(put_decided_before_a_reset_conflicts)
{
    struct fixture *fixture = *state;
    db_item before = fixture_item(fixture, "1", 100);
    fixture_item(fixture, "1", 10);
    assert_int_equal(DB_CONFLICT, put_item(fixture, &before, 99, 2, any));
    assert_int_equal(10, read_item(fixture, "1").stock);
}

TEST_THAT(put_to_a_missing_row_is_not_found)
{
    db_item ghost = {.id = "ghost", .epoch = 1};
    assert_int_equal(DB_NOT_FOUND, put_item(*state, &ghost, 1, 1, any));
}

TEST_THAT(accounts_obey_fence_version_and_epoch_too)
{
    struct fixture *fixture = *state;
    struct change change = {.account = fixture_account(fixture, "a", 1000),
                            .delta = -200,
                            .txn_id = "t",
                            .how = {.fence = 5, .expected_version = 1}};
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_change, &change, NULL));
    change.how.fence = 4;
    assert_int_equal(DB_STALE_FENCE, db_run(fixture->store, work_change, &change, NULL));
    fixture_account(fixture, "a", 10);
    change.how = any;
    assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_change, &change, NULL));
    db_account account;
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &account));
    assert_int_equal(10, account.balance);
}

/* -- sql-atomic ------------------------------------------------------------------------------- */

struct add {
    db_item item;
    db_account account;
    int64_t delta;
};

static db_status work_add_item(db_tx *tx, void *arg)
{
    struct add *add = arg;
    return db_tx_add_item(tx, &add->item, add->delta);
}

static db_status work_add_account(db_tx *tx, void *arg)
{
    struct add *add = arg;
    return db_tx_add_account(tx, &add->account, add->delta);
}

TEST_THAT(add_tells_what_the_row_has_now)
{
    struct fixture *fixture = *state;
    struct add add = {.item = fixture_item(fixture, "1", 3), .delta = -1};
    db_item stale = add.item;
    assert_int_equal(DB_OK, db_run(fixture->store, work_add_item, &add, NULL));
    add.item = stale; /* adds to the stored value, not to the read one */
    assert_int_equal(DB_OK, db_run(fixture->store, work_add_item, &add, NULL));
    assert_int_equal(1, add.item.stock);
    assert_int_equal(3, add.item.version);
}

TEST_THAT(add_never_goes_below_zero)
{
    struct fixture *fixture = *state;
    struct add add = {.item = fixture_item(fixture, "1", 3), .delta = -4};
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_add_item, &add, NULL));
    add.delta = INT64_MIN;
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_add_item, &add, NULL));
    db_item item = read_item(fixture, "1");
    assert_true(item.stock == 3 && item.version == 1);
    add.delta = -3;
    assert_int_equal(DB_OK, db_run(fixture->store, work_add_item, &add, NULL));
    assert_int_equal(0, add.item.stock);
}

TEST_THAT(add_beyond_64_bits_is_refused_and_stays_an_integer)
{
    struct fixture *fixture = *state;
    struct add add = {.account = fixture_account(fixture, "a", INT64_MAX - 1), .delta = 2};
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_add_account, &add, NULL));
    add.delta = 1;
    assert_int_equal(DB_OK, db_run(fixture->store, work_add_account, &add, NULL));
    assert_true(add.account.balance == INT64_MAX);
    assert_int_equal(1, fixture_sql_int(fixture, pg_server
                                                     ? "SELECT count(*) FROM accounts"
                                                       " WHERE pg_typeof(balance)::text = 'bigint'"
                                                     : "SELECT count(*) FROM accounts"
                                                       " WHERE typeof(balance) = 'integer'"));
    add.delta = INT64_MAX;
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_add_account, &add, NULL));
    add.delta = -INT64_MAX;
    assert_int_equal(DB_OK, db_run(fixture->store, work_add_account, &add, NULL));
    assert_int_equal(0, add.account.balance);
}

TEST_THAT(add_to_missing_or_reset_rows_is_told_apart)
{
    struct fixture *fixture = *state;
    struct add add = {.item = {.id = "ghost", .epoch = 1}, .delta = 1};
    assert_int_equal(DB_NOT_FOUND, db_run(fixture->store, work_add_item, &add, NULL));
    add.item = fixture_item(fixture, "1", 3);
    fixture_item(fixture, "1", 5);
    assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_add_item, &add, NULL));
}

TEST_THAT(a_reset_needs_one_initial_value)
{
    struct fixture *fixture = *state;
    db_item item = {.id = "1", .initial_stock = 100, .stock = 99};
    assert_int_equal(DB_INVALID, db_run(fixture->store, work_reset_item, &item, NULL));
    db_account account = {.id = "a", .balance = 5};
    assert_int_equal(DB_INVALID, db_run(fixture->store, work_reset_account, &account, NULL));
}
