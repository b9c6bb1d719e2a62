/* Pieces that come while a sale goes on: the audit counts them apart, and what is called so and is
 * not hides nothing. */
#include "damage.h"

static db_status work_restock(db_tx *tx, void *arg)
{
    db_item *item = arg;
    db_ledger_row row = {.resource = "item:1",
                         .txn_id = "delivery",
                         .kind = DB_KIND_RESTOCK,
                         .delta = 5,
                         .before = item->stock,
                         .after = item->stock + 5,
                         .version_before = item->version,
                         .epoch = item->epoch};
    item->stock += row.delta;
    item->version++;
    db_ledger_seal(&row, item->chain);
    db_status status = db_tx_put_item(tx, item, &any);
    return status == DB_OK ? db_tx_append_ledger(tx, &row) : status;
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(pieces_that_came_may_be_sold)
{
    struct fixture *fixture = *state;
    db_item item = sale(fixture, 3, 2);
    assert_int_equal(DB_OK, db_run(fixture->store, work_restock, &item, NULL));
    for (int i = 0; i < 4; i++)
        assert_int_equal(DB_OK, db_run(fixture->store, work_sell, &item, NULL));
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_true(row.ok);
    assert_int_equal(3, row.initial);
    assert_int_equal(2, row.current);
    assert_int_equal(6, row.sold);
    assert_int_equal(5, row.restocked);
    assert_int_equal(0, row.oversold);
    assert_int_equal(-1, row.ledger_sum);
    fixture_item(fixture, "1", 4); /* an audit of all reads the rows of before, too */
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, keep_audit_row, &row, NULL));
    assert_true(row.ok);
    assert_int_equal(0, row.restocked);
}

TEST_THAT(a_restock_that_the_stock_does_not_have_is_a_lost_amount)
{
    struct fixture *fixture = *state;
    db_item item = sale(fixture, 3, 2);
    assert_int_equal(DB_OK, db_run(fixture->store, work_restock, &item, NULL));
    fixture_sql(fixture, "UPDATE items SET stock = stock - 5");
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_int_equal(5, row.lost_amount);
    assert_int_equal(0, row.broken);
    assert_false(row.ok);
}

/* Two buyers read the last piece; then five pieces come. Enough are there by now, so none is
 * oversold. The stock still has one too many, and the fork stands. */
TEST_THAT(what_a_restock_covers_is_a_lost_update_for_ever)
{
    struct fixture *fixture = *state;
    db_item item = sale(fixture, 2, 1), late = item;
    assert_int_equal(DB_OK, db_run(fixture->store, work_sell, &item, NULL));
    plant(fixture, "UPDATE orders SET id = 'other' WHERE id = 'o-2';"
                   " UPDATE ledger SET txn_id = 'other' WHERE txn_id = 'sale-2'");
    assert_int_equal(DB_OK, db_run(fixture->store, work_sell, &late, NULL));
    assert_int_equal(1, fixture_audit(fixture, "item:1").oversold);
    assert_int_equal(DB_OK, db_run(fixture->store, work_restock, &late, NULL));
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_int_equal(0, row.oversold);
    assert_int_equal(5, row.restocked);
    assert_int_equal(1, row.lost_updates);
    assert_int_equal(1, row.lost_amount);
    assert_false(row.ok);
}

/* A row that is called a restock, over three pieces too many sold: it hides them from oversold, and
 * is found by the stock, the chain and the version. */
TEST_THAT(a_forged_restock_hides_nothing)
{
    struct fixture *fixture = *state;
    sale(fixture, 2, 5);
    fixture_sql(fixture,
                "INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before,"
                " after, fence, guard, instance, kind, at_us)"
                " VALUES ('item:1', 1, 6, 'forged', 3, -3, 0, 0, '', '', 'restock', 1)");
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_int_equal(0, row.oversold);
    assert_int_equal(3, row.lost_amount);
    assert_int_equal(1, row.broken); /* the version */
    assert_true(row.unchained > 0);
    assert_false(row.ok);
}

/* An order that is called a restock makes orders and ledger differ. */
TEST_THAT(a_sale_that_is_called_a_restock_is_broken)
{
    sale(*state, 10, 3);
    plant(*state, "UPDATE ledger SET kind = 'restock' WHERE txn_id = 'sale-2'");
    db_audit_row row = fixture_audit(*state, "item:1");
    assert_int_equal(1, row.broken);
    assert_false(row.ok);
}
