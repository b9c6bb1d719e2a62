/* New rows, and resets. */
#include "sqlite.h"

static db_status insert(db_tx *tx, enum new_kind kind, const struct cell *cells, size_t n,
                        db_status when_taken)
{
    struct conn *conn = ((struct sqlite_tx *)tx)->conn;
    db_status status = conn->trouble.status;
    if (status == DB_OK)
        status = new_rows_add(conn, kind, cells, n);
    if (status != DB_OK || !conn->new_rows->one_by_one)
        return status;
    status = tx_insert_new_rows(tx);
    if (status == DB_OK && conn->new_rows->missed) {
        conn->new_rows->missed = false;
        status = when_taken;
    }
    return status;
}

db_status sqlite_insert_order(db_tx *tx, const db_order *row)
{
    const struct cell cells[] = {CELL_TEXT(row->id),
                                 CELL_TEXT(row->item_id),
                                 CELL_TEXT(row->user_id),
                                 CELL_INT(row->quantity),
                                 CELL_INT(row->amount),
                                 CELL_INT(row->state),
                                 CELL_INT(row->version),
                                 CELL_INT(row->item_epoch),
                                 CELL_INT(row->created_us),
                                 CELL_INT(row->expires_us),
                                 CELL_TEXT(row->limited ? row->user_id : "")};
    return insert(tx, NEW_ORDERS, cells, CELL_COUNT(cells), DB_INVALID);
}

db_status sqlite_append_ledger(db_tx *tx, const db_ledger_row *row)
{
    const struct cell cells[] = {
        CELL_TEXT(row->resource),      CELL_INT(row->epoch),  CELL_TEXT(row->txn_id),
        CELL_INT(row->delta),          CELL_INT(row->before), CELL_INT(row->after),
        CELL_INT(row->version_before), CELL_INT(row->fence),  CELL_TEXT(row->guard),
        CELL_TEXT(row->instance),      CELL_INT(row->at_us)};
    return insert(tx, NEW_LEDGER_ROWS, cells, CELL_COUNT(cells), DB_FAILED);
}

db_status sqlite_insert_answer(db_tx *tx, const db_answer *row)
{
    const struct cell cells[] = {CELL_TEXT(row->key), CELL_TEXT(row->request),
                                 CELL_INT(row->http_status), CELL_TEXT(row->body),
                                 CELL_INT(row->at_us)};
    return insert(tx, NEW_ANSWERS, cells, CELL_COUNT(cells), DB_DUPLICATE);
}

db_status sqlite_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                          int64_t done)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_PUT_TASK];
    bind_text(statement, 1, name);
    bind_text(statement, 2, instance);
    bind_int(statement, 3, at_us);
    bind_int(statement, 4, done);
    return conn_run(conn, statement);
}

db_status sqlite_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_NEXT_FENCE];
    bind_text(statement, 1, resource);
    bind_int(statement, 2, seen);
    status = conn_step(conn, statement);
    if (status == DB_OK) {
        *ret = sqlite3_column_int64(statement, 0);
        conn_done(statement);
    }
    return status;
}

/* -- resets ----------------------------------------------------------------------------------- */

/* Runs a bound reset; it returns version and epoch of the row. */
static db_status run_reset(struct conn *conn, sqlite3_stmt *statement, int64_t *ret_version,
                           int64_t *ret_epoch)
{
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        *ret_version = sqlite3_column_int64(statement, 0);
        *ret_epoch = sqlite3_column_int64(statement, 1);
        conn_done(statement);
    }
    return status;
}

db_status sqlite_reset_item(db_tx *tx, db_item *row, const char *guard, const char *instance)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_RESET_ITEM];
    bind_text(statement, 1, row->id);
    bind_text(statement, 2, row->guard);
    bind_int(statement, 3, row->initial_stock);
    bind_int(statement, 4, row->price);
    bind_int(statement, 5, row->per_user_limit);
    bind_int(statement, 6, row->reserve_s);
    bind_int(statement, 7, row->fence);
    int64_t version, epoch;
    if ((status = run_reset(conn, statement, &version, &epoch)) != DB_OK ||
        (status = db_book_reset(tx, "item", row->id, row->initial_stock, version, epoch, guard,
                                instance)) != DB_OK)
        return status;
    return conn_read_item(conn, row->id, row);
}

db_status sqlite_reset_account(db_tx *tx, db_account *row, const char *guard, const char *instance)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_RESET_ACCOUNT];
    bind_text(statement, 1, row->id);
    bind_text(statement, 2, row->guard);
    bind_int(statement, 3, row->initial_balance);
    bind_int(statement, 4, row->fence);
    int64_t version, epoch;
    if ((status = run_reset(conn, statement, &version, &epoch)) != DB_OK ||
        (status = db_book_reset(tx, "account", row->id, row->initial_balance, version, epoch, guard,
                                instance)) != DB_OK)
        return status;
    return conn_read_account(conn, row->id, row);
}
