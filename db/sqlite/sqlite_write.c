/* Changing rows: absolute values under a condition, and the conditional changes of sql-atomic. */
#include "sqlite.h"

struct value {
    const char *id;
    int64_t value, version, epoch; /* an order has its item's */
};

/* A statement that should have changed one row changed none: tells why. */
static db_status why_refused(struct conn *conn, enum sqlite_sql why, const struct value *row,
                             int64_t fence, db_status otherwise)
{
    sqlite3_stmt *statement = conn->statements[why];
    bind_text(statement, 1, row->id);
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status; /* DB_NOT_FOUND, or trouble */
    if (sqlite3_column_int64(statement, 0) != row->epoch)
        status = DB_CONFLICT;
    else if (fence != 0 && sqlite3_column_int64(statement, 1) > fence)
        status = DB_STALE_FENCE;
    else
        status = otherwise;
    conn_done(statement);
    return status;
}

static db_status put(db_tx *tx, enum sqlite_sql sql, enum sqlite_sql why, const struct value *row,
                     const db_put *how)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[sql];
    bind_text(statement, 1, row->id);
    bind_int(statement, 2, row->value);
    bind_int(statement, 3, row->version);
    bind_int(statement, 4, row->epoch);
    bind_int(statement, 5, how->fence);
    bind_int(statement, 6, how->expected_version);
    status = conn_run(conn, statement);
    if (status != DB_OK || sqlite3_changes(conn->handle) == 1)
        return status;
    return why_refused(conn, why, row, how->fence, DB_CONFLICT);
}

db_status sqlite_put_item(db_tx *tx, const db_item *row, const db_put *how)
{
    struct value value = {row->id, row->stock, row->version, row->epoch};
    return put(tx, SQL_PUT_ITEM, SQL_WHY_ITEM, &value, how);
}

db_status sqlite_put_account(db_tx *tx, const db_account *row, const db_put *how)
{
    struct value value = {row->id, row->balance, row->version, row->epoch};
    return put(tx, SQL_PUT_ACCOUNT, SQL_WHY_ACCOUNT, &value, how);
}

/* The order's item is of this epoch: so it stays until the transaction ends, as nobody else writes.
 */
static db_status hold_epoch(db_tx *tx, const db_order *row)
{
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_HOLD_EPOCH];
    bind_text(statement, 1, row->id);
    bind_int(statement, 2, row->item_epoch);
    status = conn_step(conn, statement);
    if (status == DB_OK)
        conn_done(statement);
    const struct value value = {.id = row->id, .epoch = row->item_epoch};
    return status == DB_NOT_FOUND ? why_refused(conn, SQL_WHY_ORDER, &value, 0, DB_CONFLICT)
                                  : status;
}

db_status sqlite_put_order(db_tx *tx, const db_order *row, const db_put *how)
{
    struct value value = {row->id, row->state, row->version, row->item_epoch};
    db_status status = tx_insert_new_rows(tx);
    if (status == DB_OK && !how->former_sale)
        status = hold_epoch(tx, row);
    if (status != DB_OK)
        return status;
    return put(tx, SQL_PUT_ORDER, SQL_WHY_ORDER, &value, how);
}

/* Reads the two columns that RETURNING gives, or DB_NOT_FOUND when no row was changed. */
static db_status run_returning(struct conn *conn, sqlite3_stmt *statement, int64_t *ret_first,
                               int64_t *ret_second)
{
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        *ret_first = sqlite3_column_int64(statement, 0);
        *ret_second = sqlite3_column_int64(statement, 1);
        conn_done(statement);
    }
    return status;
}

static db_status add(db_tx *tx, enum sqlite_sql sql, enum sqlite_sql why, const char *id,
                     int64_t epoch, int64_t delta, int64_t *ret_value, int64_t *ret_version)
{
    struct conn *conn;
    if (delta == INT64_MIN) /* no value is large enough */
        return DB_REFUSED;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[sql];
    bind_text(statement, 1, id);
    bind_int(statement, 2, delta);
    bind_int(statement, 3, epoch);
    bind_int(statement, 4, -delta);
    bind_int(statement, 5, delta > 0 ? INT64_MAX - delta : INT64_MAX);
    status = run_returning(conn, statement, ret_value, ret_version);
    const struct value row = {.id = id, .epoch = epoch};
    return status == DB_NOT_FOUND ? why_refused(conn, why, &row, 0, DB_REFUSED) : status;
}

db_status sqlite_add_item(db_tx *tx, db_item *row, int64_t delta)
{
    return add(tx, SQL_ADD_ITEM, SQL_WHY_ITEM, row->id, row->epoch, delta, &row->stock,
               &row->version);
}

db_status sqlite_add_account(db_tx *tx, db_account *row, int64_t delta)
{
    return add(tx, SQL_ADD_ACCOUNT, SQL_WHY_ACCOUNT, row->id, row->epoch, delta, &row->balance,
               &row->version);
}

db_status sqlite_move_order(db_tx *tx, db_order *row, db_order_state from, db_order_state to)
{
    struct conn *conn;
    int64_t state, version;
    db_status status = tx_insert_new_rows(tx);
    if (status == DB_OK)
        status = hold_epoch(tx, row);
    if (status == DB_OK)
        status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn->statements[SQL_MOVE_ORDER];
    bind_text(statement, 1, row->id);
    bind_int(statement, 2, from);
    bind_int(statement, 3, to);
    status = run_returning(conn, statement, &state, &version);
    if (status == DB_NOT_FOUND)
        return why_refused(conn, SQL_WHY_ORDER,
                           &(struct value){.id = row->id, .epoch = row->item_epoch}, 0, DB_REFUSED);
    if (status == DB_OK) {
        row->state = (db_order_state)state;
        row->version = version;
    }
    return status;
}
