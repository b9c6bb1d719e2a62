/* A shop whose old month is archived, for the programs about the archive. */
#ifndef ARCHIVE_RIG_H
#define ARCHIVE_RIG_H

#include "archive.h"
#include "db_archive.h"
#include "fixture.h"

#include <time.h>

static const db_put anyhow = {.expected_version = -1, .item_guard = ""};

static char archive[128]; /* the file of the present test */

static inline int set_up(void **state)
{
    const int result = fixture_setup(state);
    const struct fixture *fixture = *state;
    snprintf(archive, sizeof archive, "%s/archive.db", fixture->folder);
    return result;
}

/* -- a shop ----------------------------------------------------------------------------------- */

struct sale {
    const char *order_id, *txn_id;
    db_kind kind;
};

static inline db_ledger_row row_of(db_tx *tx, const struct sale *sale, const char *resource)
{
    db_ledger_row row = {.kind = sale->kind, .at_us = db_tx_now_us(tx), .instance = "test"};
    snprintf(row.resource, sizeof row.resource, "%s", resource);
    snprintf(row.txn_id, sizeof row.txn_id, "%s", sale->txn_id);
    snprintf(row.order_id, sizeof row.order_id, "%s", sale->order_id);
    return row;
}

/* A piece of item "1" for account "a". */
static inline db_status work_order(db_tx *tx, void *arg)
{
    const struct sale *sale = arg;
    db_item item;
    db_order order = {.item_id = "1", .user_id = "a", .quantity = 1, .amount = 30, .version = 1};
    db_ledger_row row = row_of(tx, sale, "item:1");
    db_status status = db_tx_read_item(tx, "1", true, &item);
    if (status != DB_OK)
        return status;
    snprintf(order.id, sizeof order.id, "%s", sale->order_id);
    order.item_epoch = row.epoch = item.epoch;
    row.delta = -1;
    row.before = item.stock;
    row.after = --item.stock;
    row.version_before = item.version++;
    db_ledger_seal(&row, item.chain);
    if ((status = db_tx_put_item(tx, &item, &anyhow)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &row)) != DB_OK)
        return status;
    return db_tx_insert_order(tx, &order);
}

/* Its payment or refund. */
static inline db_status work_money(db_tx *tx, void *arg)
{
    const struct sale *sale = arg;
    const bool pays = sale->kind == DB_KIND_PAYMENT;
    db_account account;
    db_order order;
    db_ledger_row row = row_of(tx, sale, "account:a"), leg;
    db_status status = db_tx_read_account(tx, "a", true, &account);
    if (status != DB_OK || (status = db_tx_read_order(tx, sale->order_id, true, &order)) != DB_OK)
        return status;
    snprintf(row.counterpart, sizeof row.counterpart, "%s", DB_SHOP_REVENUE);
    row.epoch = account.epoch;
    row.delta = pays ? -30 : 30;
    row.before = account.balance;
    row.after = account.balance += row.delta;
    row.version_before = account.version++;
    db_ledger_seal(&row, account.chain);
    db_ledger_shop_leg(&row, &leg);
    order.state = pays ? DB_PAID : DB_REFUNDED;
    order.version++;
    if ((status = db_tx_put_account(tx, &account, &anyhow)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &row)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &leg)) != DB_OK)
        return status;
    return db_tx_put_order(tx, &order,
                           &(const db_put){.expected_version = -1, .former_sale = true});
}

static inline void run(struct fixture *fixture, db_work *work, const char *order, const char *key,
                       db_kind kind)
{
    struct sale sale = {order, key, kind};
    db_error error = {.message = ""};
    if (db_run(fixture->store, work, &sale, &error) != DB_OK)
        fail_msg("%s: %s", key, error.message);
}

static inline void order_and_pay(struct fixture *fixture, const char *order)
{
    char key[16], payment[16];
    snprintf(key, sizeof key, "%s-k", order);
    snprintf(payment, sizeof payment, "%s-p", order);
    run(fixture, work_order, order, key, DB_KIND_ORDER);
    run(fixture, work_money, order, payment, DB_KIND_PAYMENT);
}

/* A moment later than all rows that are there. */
static inline int64_t cut_now(struct fixture *fixture)
{
    int64_t newest = fixture_sql_int(fixture, "SELECT max(at_us) FROM ledger"), now;
    do {
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        now = time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
    } while (now <= newest);
    return now;
}

/* An old month: created, sold, paid, and reset in between; one order is refunded later. Returns its
 * end. */
static inline int64_t old_month(struct fixture *fixture)
{
    fixture_item(fixture, "1", 10);
    fixture_account(fixture, "a", 1000);
    fixture_account(fixture, "b", 5);
    order_and_pay(fixture, "o1");
    order_and_pay(fixture, "o2");
    fixture_item(fixture, "1", 20); /* epoch 2 */
    order_and_pay(fixture, "o3");
    return cut_now(fixture);
}

static inline void new_month(struct fixture *fixture)
{
    order_and_pay(fixture, "o4");
    run(fixture, work_money, "o1", "o1-r",
        DB_KIND_REFUND); /* its sale was reset: no piece returns */
}

/* -- archive and audit --------------------------------------------------------------------------
 */

static inline db_status move(struct fixture *fixture, int64_t before_us, archive_moved *ret,
                             db_error *error)
{
    const db_options options = {.url = fixture->url};
    if (fixture->store != NULL)
        fixture_close(fixture);
    return archive_move(&options, before_us, archive, ret, error);
}

static inline int64_t moved_rows(struct fixture *fixture, int64_t before_us)
{
    archive_moved moved;
    db_error error = {.message = ""};
    if (move(fixture, before_us, &moved, &error) != DB_OK)
        fail_msg("archive_move: %s", error.message);
    fixture_open(fixture, NULL);
    return moved.rows;
}

static inline void expect_refused(struct fixture *fixture, int64_t before_us, const char *says)
{
    archive_moved moved;
    db_error error = {.message = ""};
    assert_int_not_equal(DB_OK, move(fixture, before_us, &moved, &error));
    if (strstr(error.message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
    fixture_open(fixture, NULL);
}

static inline int note_bad(void *arg, const db_audit_row *row)
{
    if (!row->ok)
        snprintf(arg, DB_RESOURCE_MAX + 1, "%s", row->resource);
    return 0;
}

/* "": the store is sound by itself. */
static inline const char *bad_resource(struct fixture *fixture)
{
    static char bad[DB_RESOURCE_MAX + 1];
    bad[0] = '\0';
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, note_bad, bad, NULL));
    return bad;
}

static inline db_books books_of(struct fixture *fixture)
{
    db_books books;
    assert_int_equal(DB_OK, db_audit_books(fixture->reader, &books, NULL));
    return books;
}

static inline archive_proof prove(struct fixture *fixture)
{
    archive_proof proof;
    db_error error = {.message = ""};
    assert_int_equal(DB_OK, db_reader_begin(fixture->reader));
    if (archive_prove(fixture->reader, archive, &proof, &error) != DB_OK)
        fail_msg("archive_prove: %s", error.message);
    db_reader_end(fixture->reader);
    return proof;
}

static inline void expect_sound(struct fixture *fixture)
{
    assert_string_equal("", bad_resource(fixture));
    const char *const resources[] = {"item:1", "account:a", "account:b"};
    for (size_t i = 0; i < 3; i++)
        assert_true(fixture_audit(fixture, resources[i]).ok);
    assert_true(books_of(fixture).ok);
    const archive_proof proof = prove(fixture);
    if (proof.faults != 0)
        fail_msg("%s", proof.first);
}

/* As a kill between the two steps leaves it: a part is in the file, and its rows are in the store.
 */
static inline void stop_between_steps(struct fixture *fixture, int64_t before_us)
{
    archive_moved moved;
    db_error error = {.message = ""};
    fixture_sql(fixture, pg_server
                             ? "ALTER TABLE carried_orders ADD CONSTRAINT full_up CHECK (delta = 0)"
                             : "CREATE TRIGGER full_up BEFORE INSERT ON carried_orders BEGIN"
                               " SELECT RAISE(ABORT, 'full'); END");
    assert_int_not_equal(DB_OK, move(fixture, before_us, &moved, &error));
    assert_non_null(strstr(error.message, "is in the archive, and not yet out of the store"));
    assert_int_equal(0, moved.rows);
    fixture_sql(fixture, pg_server ? "ALTER TABLE carried_orders DROP CONSTRAINT full_up"
                                   : "DROP TRIGGER full_up");
    fixture_open(fixture, NULL);
}

static inline int64_t rows_in(struct fixture *fixture)
{
    return fixture_sql_int(fixture, "SELECT count(*) FROM ledger");
}

#endif
