/* New rows, and resets. */
#include "sqlite.h"

/* Inserts ON CONFLICT DO NOTHING: no row changed means that the key is taken. */
static db_status insert(struct conn *conn, sqlite3_stmt *statement, db_status when_taken)
{
    db_status status = conn_run(conn, statement);
    if (status == DB_OK && sqlite3_changes(conn->handle) == 0)
        status = when_taken;
    return status;
}

db_status sqlite_insert_order(db_tx *tx, const db_order *row)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_INSERT_ORDER];
    bind_text(statement, 1, row->id);
    bind_text(statement, 2, row->item_id);
    bind_text(statement, 3, row->user_id);
    bind_int(statement, 4, row->quantity);
    bind_int(statement, 5, row->amount);
    bind_int(statement, 6, row->state);
    bind_int(statement, 7, row->version);
    bind_int(statement, 8, row->item_epoch);
    bind_int(statement, 9, row->created_us);
    bind_int(statement, 10, row->expires_us);
    bind_text(statement, 11, row->limited ? row->user_id : "");
    return insert(conn, statement, DB_INVALID);
}

db_status sqlite_append_ledger(db_tx *tx, const db_ledger_row *row)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_APPEND_LEDGER];
    bind_text(statement, 1, row->resource);
    bind_int(statement, 2, row->epoch);
    bind_text(statement, 3, row->txn_id);
    bind_int(statement, 4, row->delta);
    bind_int(statement, 5, row->before);
    bind_int(statement, 6, row->after);
    bind_int(statement, 7, row->version_before);
    bind_int(statement, 8, row->fence);
    bind_text(statement, 9, row->guard);
    bind_text(statement, 10, row->instance);
    bind_int(statement, 11, row->at_us);
    return conn_run(conn, statement);
}

db_status sqlite_insert_answer(db_tx *tx, const db_answer *row)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_INSERT_ANSWER];
    bind_text(statement, 1, row->key);
    bind_text(statement, 2, row->request);
    bind_int(statement, 3, row->http_status);
    bind_text(statement, 4, row->body);
    bind_int(statement, 5, row->at_us);
    return insert(conn, statement, DB_DUPLICATE);
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
