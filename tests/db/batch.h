/* Many rows of a kind in one transaction, as a lane writes them: answers, the item, orders, ledger.
 */
#ifndef TESTS_DB_BATCH_H
#define TESTS_DB_BATCH_H

#include "fixture.h"

enum { NOBODY = -1 };

struct batch {
    db_item item; /* as it was read */
    const char *name;
    int n;
    int taken, twice, order_taken, unreadable; /* number of the row with this defect, or NOBODY */
    db_put how;
    void (*meanwhile)(struct batch *batch); /* called in the first run, before any write */
    struct fixture *fixture;
    int runs, told; /* told: the row whose key was refused */
};

static inline struct batch make_batch(struct fixture *fixture, const char *name, int n)
{
    struct batch batch = {.fixture = fixture,
                          .name = name,
                          .n = n,
                          .taken = NOBODY,
                          .twice = NOBODY,
                          .order_taken = NOBODY,
                          .unreadable = NOBODY,
                          .how.expected_version = -1};
    assert_int_equal(DB_OK, db_read_item(fixture->reader, "1", &batch.item));
    return batch;
}

static inline db_status write_answers(db_tx *tx, struct batch *batch)
{
    db_status status = DB_OK;
    for (int i = 0; i < batch->n && status == DB_OK; i++) {
        db_answer answer = {.http_status = 201, .request = "order", .body = "{}"};
        snprintf(answer.key, sizeof answer.key, "%s-%d", batch->name,
                 i == batch->twice ? i - 1 : i);
        if (i == batch->taken)
            strcpy(answer.key, "taken");
        status = db_tx_insert_answer(tx, &answer);
        if (status == DB_DUPLICATE)
            batch->told = i;
    }
    return status;
}

/* The ledger row of the i-th piece, sealed. */
static inline db_ledger_row batch_row(const struct batch *batch, int i, char *chain)
{
    db_ledger_row row = {.resource = "item:1",
                         .delta = -1,
                         .before = batch->item.stock - i,
                         .after = batch->item.stock - i - 1,
                         .version_before = batch->item.version + i,
                         .fence = batch->how.fence,
                         .epoch = batch->item.epoch};
    snprintf(row.txn_id, sizeof row.txn_id, "%s-%d", batch->name, i);
    db_ledger_seal(&row, chain);
    return row;
}

static inline db_status write_item(db_tx *tx, const struct batch *batch)
{
    db_item item = batch->item;
    for (int i = 0; i < batch->n; i++)
        batch_row(batch, i, item.chain);
    item.stock -= batch->n;
    item.version += batch->n;
    return db_tx_put_item(tx, &item, &batch->how);
}

static inline db_status write_orders(db_tx *tx, const struct batch *batch)
{
    db_status status = DB_OK;
    for (int i = 0; i < batch->n && status == DB_OK; i++) {
        db_order order = {.item_id = "1",
                          .quantity = 1,
                          .version = 1,
                          .item_epoch = batch->item.epoch,
                          .limited = true};
        snprintf(order.id, sizeof order.id, "%s-%d", batch->name, i);
        if (i == batch->order_taken)
            strcpy(order.id, "taken");
        snprintf(order.user_id, sizeof order.user_id, i == batch->unreadable ? "\xff" : "u%d", i);
        status = db_tx_insert_order(tx, &order);
    }
    return status;
}

static inline db_status write_ledger(db_tx *tx, const struct batch *batch)
{
    char chain[DB_HASH_LENGTH + 1];
    db_status status = DB_OK;
    memcpy(chain, batch->item.chain, sizeof chain);
    for (int i = 0; i < batch->n && status == DB_OK; i++) {
        db_ledger_row row = batch_row(batch, i, chain);
        status = db_tx_append_ledger(tx, &row);
    }
    return status;
}

static inline db_status work_batch(db_tx *tx, void *arg)
{
    struct batch *batch = arg;
    batch->told = NOBODY;
    if (batch->runs++ == 0 && batch->meanwhile) {
        db_item item; /* this read takes the snapshot, if the isolation level has one */
        db_status read = db_tx_read_item(tx, "1", false, &item);
        if (read != DB_OK)
            return read;
        batch->meanwhile(batch);
    }
    db_status status = write_answers(tx, batch);
    if (status == DB_OK)
        status = write_item(tx, batch);
    if (status == DB_OK)
        status = write_orders(tx, batch);
    return status == DB_OK ? write_ledger(tx, batch) : status;
}

static inline db_status batch_run(struct batch *batch)
{
    return db_run(batch->fixture->store, work_batch, batch, NULL);
}

static inline int64_t count_rows(struct fixture *fixture, const char *table)
{
    char sql[64];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    return fixture_sql_int(fixture, sql);
}

static inline void expect_sold(struct fixture *fixture, int sold)
{
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_true(row.ok);
    assert_int_equal(sold, row.sold);
    assert_int_equal(row.initial - sold, row.current);
    assert_int_equal(sold + 1, count_rows(fixture, "ledger")); /* one row is the reset's */
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT count(*) FROM ledger a, ledger b WHERE"
                                                 " a.id < b.id AND"
                                                 " a.version_before >= b.version_before"));
}

static inline db_status work_take_names(db_tx *tx, void *arg)
{
    const db_answer answer = {.key = "taken", .http_status = 409};
    const db_order order = {
        .id = "taken", .item_id = "2", .user_id = "u", .quantity = 1, .item_epoch = 1};
    (void)arg;
    db_status status = db_tx_insert_answer(tx, &answer);
    return status == DB_OK ? db_tx_insert_order(tx, &order) : status;
}

static inline int batch_setup(void **state)
{
    fixture_setup(state);
    struct fixture *fixture = *state;
    fixture_item(fixture, "1", 10000);
    assert_int_equal(DB_OK, db_run(fixture->store, work_take_names, NULL, NULL));
    return 0;
}

#endif
