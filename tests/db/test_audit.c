/* The audit must find every kind of damage. Each kind is planted in a clean file. */
#include "damage.h"

/* Creates account "a" with 1000 and a clean chain of n changes of -10. */
static db_account chain(struct fixture *fixture, int n)
{
    db_account account = fixture_account(fixture, "a", 1000);
    for (int i = 0; i < n; i++) {
        char txn_id[16];
        snprintf(txn_id, sizeof txn_id, "t%d", i);
        struct change change = {.account = account, .delta = -10, .txn_id = txn_id, .how = any};
        assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
        assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &account));
    }
    return account;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(an_unharmed_store_is_clean)
{
    struct fixture *fixture = *state;
    chain(fixture, 5);
    sale(fixture, 10, 3);
    db_audit_row account = fixture_audit(fixture, "account:a");
    assert_true(account.ok);
    assert_int_equal(1000, account.initial);
    assert_int_equal(950, account.current);
    assert_int_equal(-50, account.ledger_sum);
    db_audit_row item = fixture_audit(fixture, "item:1");
    assert_true(item.ok);
    assert_int_equal(3, item.sold);
    assert_int_equal(-3, item.ledger_sum);
    assert_int_equal(7, item.current);
}

TEST_THAT(two_changes_of_one_version_are_a_fork_and_lose_an_update)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 2), .delta = -200, .how = any};
    change.txn_id = "A";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    change.txn_id = "B";
    change.delta = -300;
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_false(row.ok);
    assert_int_equal(1, row.lost_updates);
    assert_int_equal(200, row.lost_amount);
    assert_int_equal(0, row.broken);
    assert_int_equal(0, row.duplicates);
    assert_int_equal(1, row.n_forks);
    assert_string_equal("A", row.forks[0][0].txn_id);
    assert_string_equal("B", row.forks[0][1].txn_id);
    assert_int_equal(row.forks[0][0].version_before, row.forks[0][1].version_before);
    assert_int_equal(980, row.forks[0][1].before);
    assert_int_equal(680, row.forks[0][1].after);
}

TEST_THAT(the_chain_goes_on_from_either_side_of_a_fork)
{
    struct fixture *fixture = *state;
    struct change late = {.account = chain(fixture, 1), .delta = -1, .txn_id = "late", .how = any};
    struct change next = {.account = late.account, .delta = -2, .txn_id = "n1", .how = any};
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &next, NULL));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &next.account));
    next.txn_id = "n2";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &next, NULL));
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &late, NULL)); /* version falls */
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &next.account));
    next.txn_id = "n3";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &next, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(2, row.lost_updates);
    assert_int_equal(4, row.lost_amount);
    assert_int_equal(0, row.broken);
}

TEST_THAT(every_fork_is_counted_and_the_first_ones_shown)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 0), .delta = -1, .how = any};
    for (int i = 0; i < 101; i++) { /* more than AUDIT_FORK_WIDTH_MAX */
        char txn_id[16];
        snprintf(txn_id, sizeof txn_id, "f%d", i);
        change.txn_id = txn_id;
        if (i == 100) /* its result differs from the remembered ones */
            change.delta = -2;
        assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    }
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    change.txn_id = "next";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(100, row.lost_updates);
    assert_int_equal(100, row.lost_amount);
    assert_int_equal(DB_FORKS_MAX, row.n_forks);
    assert_int_equal(0, row.broken);
}

TEST_THAT(a_value_that_the_ledger_does_not_explain_is_a_lost_amount)
{
    struct fixture *fixture = *state;
    chain(fixture, 3);
    fixture_sql(fixture, "UPDATE accounts SET balance = balance + 7");
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(7, row.lost_amount);
    assert_false(row.ok);
}

TEST_THAT(more_sold_than_there_was_is_oversold)
{
    struct fixture *fixture = *state;
    sale(fixture, 2, 5);
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_int_equal(3, row.oversold);
    assert_int_equal(5, row.sold);
    assert_int_equal(1, row.negative);
    assert_int_equal(0, row.lost_amount);
    assert_false(row.ok);
}

static void expect_broken(struct fixture *fixture, const char *resource, int64_t broken)
{
    db_audit_row row = fixture_audit(fixture, resource);
    assert_int_equal(broken, row.broken);
    assert_false(row.ok);
}

/* A ledger of sales to two users: three pieces for one, two for the other. */
TEST_THAT(pieces_beyond_the_limit_per_user_are_counted)
{
    struct fixture *fixture = *state;
    sale(fixture, 10, 5);
    fixture_sql(fixture,
                "UPDATE orders SET counted_user = CASE WHEN id < 'o-4' THEN 'u' ELSE 'v' END");
    assert_true(fixture_audit(fixture, "item:1").ok);
    fixture_sql(fixture, "UPDATE items SET per_user_limit = 3");
    assert_true(fixture_audit(fixture, "item:1").ok);
    fixture_sql(fixture, "UPDATE items SET per_user_limit = 1");
    assert_int_equal(3, fixture_audit(fixture, "item:1").over_limit);
    fixture_sql(fixture, "UPDATE items SET per_user_limit = 2");
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_int_equal(1, row.over_limit);
    assert_int_equal(0, row.broken);
    assert_false(row.ok);
    fixture_sql(fixture, "UPDATE orders SET state = 2 WHERE id = 'o-1'");
    assert_int_equal(0, fixture_audit(fixture, "item:1").over_limit);
}

TEST_THAT(a_value_below_zero_is_found_even_when_it_rose_again)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 0), .delta = -1500, .how = any};
    change.txn_id = "down";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_int_equal(DB_OK, db_read_account(fixture->reader, "a", &change.account));
    change.txn_id = "up";
    change.delta = 1500;
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(1, row.negative);
    assert_false(row.ok);
}

TEST_THAT(a_present_value_below_zero_is_negative)
{
    struct fixture *fixture = *state;
    chain(fixture, 1);
    fixture_sql(fixture, "UPDATE accounts SET balance = -1");
    assert_int_equal(1, fixture_audit(fixture, "account:a").negative);
}

TEST_THAT(one_transaction_booked_twice_is_a_duplicate)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 1), .delta = -10, .how = any};
    change.txn_id = "t0"; /* chain() has used it */
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(1, row.duplicates);
    assert_int_equal(0, row.lost_updates);
    assert_int_equal(0, row.broken);
    assert_false(row.ok);
}

TEST_THAT(a_key_that_looks_like_a_reset_is_no_duplicate)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 0), .delta = -10, .how = any};
    change.txn_id = "reset:account:a:1";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_true(fixture_audit(fixture, "account:a").ok);
}

/* A change of 0 with a reset's name replaces the deleted reset. */
TEST_THAT(a_key_that_looks_like_a_reset_is_none)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 0), .delta = 0, .how = any};
    change.txn_id = "reset:account:a:1";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    plant(fixture, "DELETE FROM ledger WHERE version_before = 0");
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(1, row.broken);
    assert_false(row.ok);
}

TEST_THAT(a_reset_booked_twice_is_a_duplicate)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 0), .delta = 0, .how = any};
    change.txn_id = "reset\taccount:a:1";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_int_equal(1, fixture_audit(fixture, "account:a").duplicates);
}

TEST_THAT(a_row_that_does_not_add_up_breaks_the_chain)
{
    chain(*state, 3);
    plant(*state, "UPDATE ledger SET delta = -11 WHERE txn_id = 't2'");
    expect_broken(*state, "account:a", 1);
}

TEST_THAT(a_missing_row_breaks_the_chain)
{
    chain(*state, 3);
    plant(*state, "DELETE FROM ledger WHERE txn_id = 't1'");
    expect_broken(*state, "account:a", 1);
}

TEST_THAT(a_missing_last_row_breaks_the_chain)
{
    chain(*state, 3);
    plant(*state, "DELETE FROM ledger WHERE txn_id = 't2'");
    expect_broken(*state, "account:a", 1);
}

TEST_THAT(a_missing_reset_breaks_the_chain)
{
    chain(*state, 1);
    plant(*state, "DELETE FROM ledger WHERE txn_id LIKE 'reset%'");
    expect_broken(*state, "account:a", 1);
}

TEST_THAT(an_empty_ledger_breaks_the_chain)
{
    chain(*state, 0);
    plant(*state, "DELETE FROM ledger");
    expect_broken(*state, "account:a", 1);
}

TEST_THAT(a_step_between_two_values_breaks_the_chain)
{
    chain(*state, 3);
    plant(*state, "UPDATE ledger SET before = before - 1, after = after - 1 WHERE txn_id = 't1'");
    expect_broken(*state, "account:a", 2); /* the links before and after the row */
}

TEST_THAT(an_order_without_its_ledger_row_is_broken)
{
    sale(*state, 10, 3);
    fixture_sql(*state, "DELETE FROM orders WHERE id = 'o-2'");
    expect_broken(*state, "item:1", 1);
}

/* The audit's last row, which must be about this resource. */
static db_audit_row last_row(struct fixture *fixture, const char *resource)
{
    db_audit_row row;
    memset(&row, 0, sizeof row);
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, keep_audit_row, &row, NULL));
    assert_string_equal(resource, row.resource);
    assert_false(row.ok);
    return row;
}

TEST_THAT(a_vanished_account_is_missing)
{
    chain(*state, 3);
    fixture_sql(*state, "DELETE FROM accounts");
    db_audit_row row = last_row(*state, "account:a");
    assert_int_equal(1, row.missing);
    assert_int_equal(-30, row.ledger_sum);
    assert_true(row.broken >= 4);
    assert_false(fixture_audit(*state, "account:a").ok);
}

TEST_THAT(a_vanished_item_is_missing)
{
    sale(*state, 10, 3);
    fixture_sql(*state, "DELETE FROM items");
    db_audit_row row = last_row(*state, "item:1");
    assert_int_equal(1, row.missing);
    assert_int_equal(3, row.sold);
    assert_int_equal(-3, row.ledger_sum);
    assert_int_equal(3, fixture_audit(*state, "item:1").sold);
}

TEST_THAT(orders_of_an_item_that_never_was_are_seen)
{
    sale(*state, 10, 3);
    plant(*state, "INSERT INTO orders (id, item_id, user_id, quantity, amount, state, version,"
                  " item_epoch, created_us, expires_us, counted_user)"
                  " VALUES ('o', 'none', 'u', 2, 1, 1, 1, 1, 1, 1, '')");
    db_audit_row row = last_row(*state, "item:none");
    assert_int_equal(1, row.missing);
    assert_int_equal(2, row.sold);
    assert_int_equal(2, fixture_audit(*state, "item:none").sold);
    assert_true(fixture_audit(*state, "item:1").ok);
}

TEST_THAT(a_row_of_an_epoch_to_come_is_broken)
{
    chain(*state, 3);
    fixture_sql(*state,
                "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before,"
                " after, fence, guard, instance, kind, at_us)"
                " VALUES ('account:a', 2, 4, 'x', -5, 970, 965, 0, '', '', 'change', 1)");
    expect_broken(*state, "account:a", 1);
    assert_int_equal(5, last_row(*state, "account:a").lost_amount);
}

TEST_THAT(an_order_of_an_epoch_to_come_is_broken)
{
    sale(*state, 10, 3);
    fixture_sql(*state, "INSERT INTO orders (id, item_id, user_id, quantity, amount, state,"
                        " version, item_epoch, created_us, expires_us, counted_user)"
                        " VALUES ('o', '1', 'u', 2, 1, 0, 1, 2, 1, 1, '')");
    expect_broken(*state, "item:1", 1);
}

TEST_THAT(sums_beyond_64_bits_do_not_wrap)
{
    chain(*state, 3);
    plant(*state, "UPDATE ledger SET delta = 9223372036854775807 WHERE txn_id LIKE 't%'");
    db_audit_row row = fixture_audit(*state, "account:a");
    assert_true(row.ledger_sum == INT64_MAX && row.lost_amount == INT64_MAX);
    assert_int_equal(3, row.broken);
}

TEST_THAT(a_reset_begins_anew_and_keeps_the_history)
{
    struct fixture *fixture = *state;
    struct change change = {.account = chain(fixture, 2), .delta = -1, .how = any};
    change.txn_id = "A";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    change.txn_id = "B";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    assert_false(fixture_audit(fixture, "account:a").ok);
    chain(fixture, 2);
    assert_true(fixture_audit(fixture, "account:a").ok);
    assert_int_equal(5, fixture_sql_int(fixture, "SELECT count(*) FROM ledger WHERE epoch = 1"));
}
