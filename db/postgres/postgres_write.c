/* Changing rows: absolute values under a condition, conditional additions, resets, new rows. */
#include "postgres.h"

/* Reads the first n_ret columns, numbers, of the single row that a statement returns. */
static db_status ask_numbers(db_tx *tx, enum postgres_sql sql, const struct value *values, size_t n,
                             int64_t *ret, int n_ret)
{
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, sql, values, n, &result);
    for (int i = 0; i < n_ret && status == DB_OK; i++) {
        ret[i] = cell_int(session, result, 0, i);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

/* Reads the single row that a statement returns. */
static db_status ask_row(db_tx *tx, enum postgres_sql sql, const struct value *values, size_t n,
                         const struct row_type *type, void *ret)
{
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, sql, values, n, &result);
    if (status == DB_OK)
        status = session_row(session, result, 0, type, ret);
    PQclear(result);
    return status;
}

/* Tells why a statement changed no row. guard: that an item or account was read under; NULL for an
 * order. */
static db_status why_refused(db_tx *tx, enum db_table table, const char *id, const char *guard,
                             int64_t epoch, int64_t fence, db_status otherwise)
{
    static const enum postgres_sql why[] = {
        [TABLE_ITEMS] = SQL_WHY_ITEM,
        [TABLE_ACCOUNTS] = SQL_WHY_ACCOUNT,
        [TABLE_ORDERS] = SQL_WHY_ORDER,
    };
    const struct value values[] = {VALUE_TEXT(id), VALUE_TEXT(guard)};
    int64_t row[2]; /* epoch, last_fence */
    db_status status = ask_numbers(tx, why[table], values, guard ? 2 : 1, row, 2);
    return status == DB_OK ? db_why_refused(row[0], row[1], epoch, fence, otherwise) : status;
}

db_status pg_put(db_tx *tx, enum db_table table, const struct new_value *row, const db_put *how)
{
    static const enum postgres_sql puts[] = {
        [TABLE_ITEMS] = SQL_PUT_ITEM,
        [TABLE_ACCOUNTS] = SQL_PUT_ACCOUNT,
        [TABLE_ORDERS] = SQL_PUT_ORDER,
    };
    const struct value values[] = {
        VALUE_TEXT(row->id),    VALUE_INT(row->value),  VALUE_INT(row->version),
        VALUE_INT(row->epoch),  VALUE_INT(how->fence),  VALUE_INT(how->expected_version),
        VALUE_TEXT(row->chain), VALUE_TEXT(row->guard), VALUE_INT(row->fenced)};
    db_status status = tx_write(tx, puts[table], values, row->chain ? 9 : 6, true);
    return status == DB_REFUSED
               ? why_refused(tx, table, row->id, row->guard, row->epoch, how->fence, DB_CONFLICT)
               : status;
}

db_status pg_hold_epoch(db_tx *tx, const char *order_id, int64_t item_epoch, const char *item_guard)
{
    const struct value values[] = {VALUE_TEXT(order_id), VALUE_INT(item_epoch),
                                   VALUE_TEXT(item_guard)};
    db_status status = tx_write(tx, SQL_HOLD_EPOCH, values, VALUE_COUNT(values), true);
    return status == DB_REFUSED
               ? why_refused(tx, TABLE_ORDERS, order_id, NULL, item_epoch, 0, DB_CONFLICT)
               : status;
}

db_status pg_add(db_tx *tx, enum db_table table, const struct addition *what, struct added *ret)
{
    const struct value values[] = {VALUE_TEXT(what->id),   VALUE_INT(what->delta),
                                   VALUE_INT(what->epoch), VALUE_INT(what->least),
                                   VALUE_INT(what->most),  VALUE_TEXT(what->guard)};
    db_status status = ask_row(tx, table == TABLE_ITEMS ? SQL_ADD_ITEM : SQL_ADD_ACCOUNT, values,
                               VALUE_COUNT(values), &added_type, ret);
    return status == DB_NOT_FOUND
               ? why_refused(tx, table, what->id, what->guard, what->epoch, 0, DB_REFUSED)
               : status;
}

db_status pg_chain(db_tx *tx, enum db_table table, const char *id, const char *chain)
{
    const struct value values[] = {VALUE_TEXT(id), VALUE_TEXT(chain)};
    return tx_write(tx, table == TABLE_ITEMS ? SQL_CHAIN_ITEM : SQL_CHAIN_ACCOUNT, values,
                    VALUE_COUNT(values), true);
}

db_status pg_move_order(db_tx *tx, const db_order *row, db_order_state from, db_order_state to,
                        int64_t *ret_version)
{
    const struct value values[] = {VALUE_TEXT(row->id), VALUE_INT(from), VALUE_INT(to)};
    db_status status = ask_numbers(tx, SQL_MOVE_ORDER, values, VALUE_COUNT(values), ret_version, 1);
    return status == DB_NOT_FOUND
               ? why_refused(tx, TABLE_ORDERS, row->id, NULL, row->item_epoch, 0, DB_REFUSED)
               : status;
}

/* Orders and answers: ON CONFLICT DO NOTHING, so no row changed means that the key is taken. */
db_status pg_insert(db_tx *tx, enum db_table table, const void *row)
{
    static const enum postgres_sql inserts[TABLES] = {
        [TABLE_ORDERS] = SQL_INSERT_ORDER,
        [TABLE_ANSWERS] = SQL_INSERT_ANSWER,
        [TABLE_LEDGER] = SQL_APPEND_LEDGER,
    };
    const struct row_type *type = table == TABLE_LEDGER ? &new_ledger_type : &row_types[table];
    struct value values[ROW_COLUMNS_MAX];
    return tx_write(tx, inserts[table], values, row_values(type, row, values), true);
}

/* The old row is read under the lock that the reset takes: no lock is made stronger later, so two
 * transactions cannot wait for each other here. A row that another transaction creates in between
 * was not read: all runs again. */
db_status pg_reset(db_tx *tx, enum db_table table, const void *fresh, void *ret_old, void *ret)
{
    const bool is_item = table == TABLE_ITEMS;
    struct value values[ROW_COLUMNS_MAX];
    size_t n = row_values(&row_types[table], fresh, values);
    struct session *session;
    db_status status = tx_session_to_hold(tx, &session);
    if (status == DB_OK)
        status = ask_row(tx, is_item ? SQL_HOLD_ITEM : SQL_LOCK_ACCOUNT, values, 1,
                         &row_types[table], ret_old);
    const bool was_there = status == DB_OK;
    if (was_there || status == DB_NOT_FOUND)
        status = ask_row(tx, is_item ? SQL_RESET_ITEM : SQL_RESET_ACCOUNT, values, n,
                         &row_types[table], ret);
    int64_t epoch = is_item ? ((db_item *)ret)->epoch : ((db_account *)ret)->epoch;
    if (status == DB_OK && !was_there && epoch != 1)
        status = session_run_again(session, "the row was created meanwhile");
    return after_writes(session, status);
}

db_status pg_hold_item(db_tx *tx, const char *id, db_item *ret)
{
    struct session *session;
    db_status status = tx_session_to_hold(tx, &session);
    return status == DB_OK
               ? ask_row(tx, SQL_HOLD_ITEM, &VALUE_TEXT(id), 1, &row_types[TABLE_ITEMS], ret)
               : status;
}

db_status pg_set_item(db_tx *tx, const db_item *row)
{
    const struct value values[] = {VALUE_TEXT(row->id),       VALUE_TEXT(row->guard),
                                   VALUE_INT(row->price),     VALUE_INT(row->per_user_limit),
                                   VALUE_INT(row->reserve_s), VALUE_INT(row->fence),
                                   VALUE_INT(row->version),   VALUE_INT(row->last_fence),
                                   VALUE_TEXT(row->chain)};
    return tx_write(tx, SQL_SET_ITEM, values, VALUE_COUNT(values), false);
}

db_status pg_set_account(db_tx *tx, const db_account *row)
{
    const struct value values[] = {VALUE_TEXT(row->id),        VALUE_TEXT(row->guard),
                                   VALUE_INT(row->fence),      VALUE_INT(row->version),
                                   VALUE_INT(row->last_fence), VALUE_TEXT(row->chain)};
    return tx_write(tx, SQL_SET_ACCOUNT, values, VALUE_COUNT(values), false);
}

db_status pg_clear_fences(db_tx *tx, const char *item_id)
{
    const struct value values[] = {VALUE_TEXT(item_id)};
    return tx_write(tx, SQL_CLEAR_FENCES, values, VALUE_COUNT(values), false);
}

db_status pg_most_bought(db_tx *tx, const db_item *item, int64_t *ret_quantity)
{
    const struct value values[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch)};
    return ask_numbers(tx, SQL_MOST_BOUGHT, values, VALUE_COUNT(values), ret_quantity, 1);
}

db_status pg_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                      int64_t done)
{
    const struct value values[] = {VALUE_TEXT(name), VALUE_TEXT(instance), VALUE_INT(at_us),
                                   VALUE_INT(done)};
    return tx_write(tx, SQL_PUT_TASK, values, VALUE_COUNT(values), false);
}

db_status pg_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us)
{
    const struct value values[] = {VALUE_TEXT(after), VALUE_TEXT(last), VALUE_INT(before_us)};
    db_status status = tx_write(tx, SQL_PRUNE_REFUSALS, values, VALUE_COUNT(values), false);
    if (status == DB_OK)
        status = tx_write(tx, SQL_PRUNE_ANSWERS, values, VALUE_COUNT(values), false);
    return status;
}

db_status pg_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n)
{
    const struct value values[] = {VALUE_INT(before_us)};
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status =
            session_ask(session, SQL_PRUNE_OLDEST_REFUSALS, values, VALUE_COUNT(values), &result);
    *ret_n = status == DB_OK ? PQntuples(result) : 0;
    PQclear(result);
    return status == DB_NOT_FOUND ? DB_OK : status; /* none was left */
}

db_status pg_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret)
{
    const struct value values[] = {VALUE_TEXT(resource), VALUE_INT(seen)};
    return ask_numbers(tx, SQL_NEXT_FENCE, values, VALUE_COUNT(values), ret, 1);
}

int64_t pg_now_us(const db_tx *tx)
{
    return db_now_us() + ((const struct pg_tx *)tx)->session->clock_us;
}
