/* For the tests of the audit: business without a guard, and damage made without the store. */
#ifndef TESTS_DB_DAMAGE_H
#define TESTS_DB_DAMAGE_H

#include "fixture.h"

static const db_put any = {.expected_version = -1};

static inline db_status work_sell(db_tx *tx, void *arg)
{
    db_item *item = arg;
    db_ledger_row row = {.resource = "item:1",
                         .delta = -1,
                         .before = item->stock,
                         .after = item->stock - 1,
                         .version_before = item->version,
                         .epoch = item->epoch};
    db_order order = {.item_id = "1", .user_id = "u", .quantity = 1, .item_epoch = item->epoch};
    snprintf(row.txn_id, sizeof row.txn_id, "sale-%ld", (long)item->version);
    snprintf(order.id, sizeof order.id, "o-%ld", (long)item->version);
    item->stock--;
    item->version++;
    db_ledger_seal(&row, item->chain);
    db_status status = db_tx_put_item(tx, item, &any);
    if (status == DB_OK)
        status = db_tx_append_ledger(tx, &row);
    return status == DB_OK ? db_tx_insert_order(tx, &order) : status;
}

static inline db_item sale(struct fixture *fixture, int64_t stock, int sold)
{
    db_item item = fixture_item(fixture, "1", stock);
    for (int i = 0; i < sold; i++)
        assert_int_equal(DB_OK, db_run(fixture->store, work_sell, &item, NULL));
    return item;
}

/* Plants damage; drops what protects the ledger first. */
static inline void plant(struct fixture *fixture, const char *sql)
{
    char text[2048];
    const char *on_ledger = pg_server ? " ON ledger" : "";
    const char *checks = pg_server ? "ALTER TABLE ledger DROP CONSTRAINT ledger_adds"
                                   : "PRAGMA ignore_check_constraints = ON";
    snprintf(text, sizeof text,
             "DROP TRIGGER ledger_keeps_rows%s; DROP TRIGGER ledger_keeps_values%s; %s; %s",
             on_ledger, on_ledger, checks, sql);
    fixture_sql(fixture, text);
}

#endif
