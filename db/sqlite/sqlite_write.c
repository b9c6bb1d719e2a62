/* Changing rows: absolute values under a condition, conditional additions, resets, counters. */
#include "sqlite.h"

#include <time.h>

/* Tells why a statement changed no row. guard: that an item or account was read under; NULL for an
 * order. */
static db_status why_refused(struct conn *conn, enum db_table table, const char *id,
                             const char *guard, int64_t epoch, int64_t fence, db_status otherwise)
{
    static const enum sqlite_sql why[] = {
        [TABLE_ITEMS] = SQL_WHY_ITEM,
        [TABLE_ACCOUNTS] = SQL_WHY_ACCOUNT,
        [TABLE_ORDERS] = SQL_WHY_ORDER,
    };
    const struct value values[] = {VALUE_TEXT(id), VALUE_TEXT(guard)};
    sqlite3_stmt *statement = conn_bind(conn, why[table], values, guard ? 2 : 1);
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status; /* DB_NOT_FOUND, or trouble */
    status = db_why_refused(sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
                            epoch, fence, otherwise);
    conn_done(statement);
    return status;
}

/* An order that this transaction added may not be in its table yet. */
static db_status begin_write(db_tx *tx, enum db_table table, struct conn **ret_conn)
{
    db_status status = table == TABLE_ORDERS ? tx_insert_new_rows(tx) : DB_OK;
    return status == DB_OK ? tx_begin_write(tx, ret_conn) : status;
}

db_status sqlite_put(db_tx *tx, enum db_table table, const struct new_value *row, const db_put *how)
{
    static const enum sqlite_sql puts[] = {
        [TABLE_ITEMS] = SQL_PUT_ITEM,
        [TABLE_ACCOUNTS] = SQL_PUT_ACCOUNT,
        [TABLE_ORDERS] = SQL_PUT_ORDER,
    };
    const struct value values[] = {
        VALUE_TEXT(row->id),    VALUE_INT(row->value),  VALUE_INT(row->version),
        VALUE_INT(row->epoch),  VALUE_INT(how->fence),  VALUE_INT(how->expected_version),
        VALUE_TEXT(row->chain), VALUE_TEXT(row->guard), VALUE_INT(row->fenced)};
    struct conn *conn;
    db_status status = begin_write(tx, table, &conn);
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, puts[table], values, row->chain ? 9 : 6));
    if (status != DB_OK || sqlite3_changes(conn->handle) == 1)
        return status;
    return why_refused(conn, table, row->id, row->guard, row->epoch, how->fence, DB_CONFLICT);
}

/* No other connection writes until the transaction ends, so epoch and guard stay. */
db_status sqlite_hold_epoch(db_tx *tx, const char *order_id, int64_t item_epoch,
                            const char *item_guard)
{
    const struct value values[] = {VALUE_TEXT(order_id), VALUE_INT(item_epoch),
                                   VALUE_TEXT(item_guard)};
    struct conn *conn;
    db_status status = begin_write(tx, TABLE_ORDERS, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn_bind(conn, SQL_HOLD_EPOCH, values, VALUE_COUNT(values));
    status = conn_step(conn, statement);
    if (status == DB_OK)
        conn_done(statement);
    return status == DB_NOT_FOUND
               ? why_refused(conn, TABLE_ORDERS, order_id, NULL, item_epoch, 0, DB_CONFLICT)
               : status;
}

/* Reads the numbers that RETURNING gives, or DB_NOT_FOUND when no row was changed. */
static db_status run_returning(struct conn *conn, sqlite3_stmt *statement, int64_t *ret, int n_ret)
{
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status;
    for (int i = 0; i < n_ret; i++)
        ret[i] = sqlite3_column_int64(statement, i);
    conn_done(statement);
    return DB_OK;
}

db_status sqlite_add(db_tx *tx, enum db_table table, const struct addition *what, struct added *ret)
{
    const enum sqlite_sql sql = table == TABLE_ITEMS ? SQL_ADD_ITEM : SQL_ADD_ACCOUNT;
    const struct value values[] = {VALUE_TEXT(what->id),   VALUE_INT(what->delta),
                                   VALUE_INT(what->epoch), VALUE_INT(what->least),
                                   VALUE_INT(what->most),  VALUE_TEXT(what->guard)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status != DB_OK)
        return status;
    sqlite3_stmt *statement = conn_bind(conn, sql, values, VALUE_COUNT(values));
    status = conn_step(conn, statement);
    if (status == DB_NOT_FOUND)
        return why_refused(conn, table, what->id, what->guard, what->epoch, 0, DB_REFUSED);
    if (status == DB_OK) {
        status = conn_row(conn, statement, &added_type, ret);
        conn_done(statement);
    }
    return status;
}

db_status sqlite_chain(db_tx *tx, enum db_table table, const char *id, const char *chain)
{
    const enum sqlite_sql sql = table == TABLE_ITEMS ? SQL_CHAIN_ITEM : SQL_CHAIN_ACCOUNT;
    const struct value values[] = {VALUE_TEXT(id), VALUE_TEXT(chain)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    return status == DB_OK ? conn_run(conn, conn_bind(conn, sql, values, VALUE_COUNT(values)))
                           : status;
}

db_status sqlite_move_order(db_tx *tx, const db_order *row, db_order_state from, db_order_state to,
                            int64_t *ret_version)
{
    const struct value values[] = {VALUE_TEXT(row->id), VALUE_INT(from), VALUE_INT(to)};
    struct conn *conn;
    db_status status = begin_write(tx, TABLE_ORDERS, &conn);
    if (status == DB_OK)
        status = run_returning(conn, conn_bind(conn, SQL_MOVE_ORDER, values, VALUE_COUNT(values)),
                               ret_version, 1);
    return status == DB_NOT_FOUND
               ? why_refused(conn, TABLE_ORDERS, row->id, NULL, row->item_epoch, 0, DB_REFUSED)
               : status;
}

db_status sqlite_reset(db_tx *tx, enum db_table table, const void *fresh, void *ret_old, void *ret)
{
    const enum sqlite_sql sql = table == TABLE_ITEMS ? SQL_RESET_ITEM : SQL_RESET_ACCOUNT;
    struct value values[ROW_COLUMNS_MAX];
    size_t n = row_values(&row_types[table], fresh, values);
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status = conn_read_row(conn, table, values[0].text, ret_old); /* the id */
    if (status != DB_OK && status != DB_NOT_FOUND)
        return status;
    sqlite3_stmt *statement = conn_bind(conn, sql, values, n);
    status = conn_step(conn, statement);
    if (status == DB_OK) {
        status = conn_row(conn, statement, &row_types[table], ret);
        conn_done(statement);
    }
    return status;
}

db_status sqlite_hold_item(db_tx *tx, const char *id, db_item *ret)
{
    return sqlite_tx_read_row(tx, TABLE_ITEMS, id, true, ret);
}

db_status sqlite_set_item(db_tx *tx, const db_item *row)
{
    const struct value values[] = {VALUE_TEXT(row->id),       VALUE_TEXT(row->guard),
                                   VALUE_INT(row->price),     VALUE_INT(row->per_user_limit),
                                   VALUE_INT(row->reserve_s), VALUE_INT(row->fence),
                                   VALUE_INT(row->version),   VALUE_INT(row->last_fence),
                                   VALUE_TEXT(row->chain)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    return status == DB_OK
               ? conn_run(conn, conn_bind(conn, SQL_SET_ITEM, values, VALUE_COUNT(values)))
               : status;
}

db_status sqlite_set_account(db_tx *tx, const db_account *row)
{
    const struct value values[] = {VALUE_TEXT(row->id),        VALUE_TEXT(row->guard),
                                   VALUE_INT(row->fence),      VALUE_INT(row->version),
                                   VALUE_INT(row->last_fence), VALUE_TEXT(row->chain)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    return status == DB_OK
               ? conn_run(conn, conn_bind(conn, SQL_SET_ACCOUNT, values, VALUE_COUNT(values)))
               : status;
}

db_status sqlite_clear_fences(db_tx *tx, const char *item_id)
{
    const struct value values[] = {VALUE_TEXT(item_id)};
    struct conn *conn;
    db_status status = begin_write(tx, TABLE_ORDERS, &conn);
    return status == DB_OK
               ? conn_run(conn, conn_bind(conn, SQL_CLEAR_FENCES, values, VALUE_COUNT(values)))
               : status;
}

db_status sqlite_most_bought(db_tx *tx, const db_item *item, int64_t *ret_quantity)
{
    const struct value values[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch)};
    struct conn *conn;
    db_status status = begin_write(tx, TABLE_ORDERS, &conn);
    return status == DB_OK
               ? run_returning(conn, conn_bind(conn, SQL_MOST_BOUGHT, values, VALUE_COUNT(values)),
                               ret_quantity, 1)
               : status;
}

db_status sqlite_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                          int64_t done)
{
    const struct value values[] = {VALUE_TEXT(name), VALUE_TEXT(instance), VALUE_INT(at_us),
                                   VALUE_INT(done)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    return status == DB_OK
               ? conn_run(conn, conn_bind(conn, SQL_PUT_TASK, values, VALUE_COUNT(values)))
               : status;
}

db_status sqlite_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us)
{
    const struct value values[] = {VALUE_TEXT(after), VALUE_TEXT(last), VALUE_INT(before_us)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_PRUNE_REFUSALS, values, VALUE_COUNT(values)));
    if (status == DB_OK)
        status = conn_run(conn, conn_bind(conn, SQL_PRUNE_ANSWERS, values, VALUE_COUNT(values)));
    return status;
}

db_status sqlite_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n)
{
    const struct value values[] = {VALUE_INT(before_us)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status =
            conn_run(conn, conn_bind(conn, SQL_PRUNE_OLDEST_REFUSALS, values, VALUE_COUNT(values)));
    *ret_n = status == DB_OK ? sqlite3_changes(conn->handle) : 0;
    return status;
}

db_status sqlite_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret)
{
    const struct value values[] = {VALUE_TEXT(resource), VALUE_INT(seen)};
    struct conn *conn;
    db_status status = tx_begin_write(tx, &conn);
    if (status == DB_OK)
        status = run_returning(conn, conn_bind(conn, SQL_NEXT_FENCE, values, VALUE_COUNT(values)),
                               ret, 1);
    return status;
}

int64_t sqlite_now_us(const db_tx *tx)
{
    struct timespec now;
    (void)tx;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}
