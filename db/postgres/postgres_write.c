/* Changing rows: absolute values under a condition, and the conditional changes of sql-atomic. */
#include "postgres.h"

struct value {
    const char *id;
    int64_t value, version, epoch; /* an order has its item's */
};

/* A statement that should have changed one row changed none: tells why. */
static db_status why_refused(db_tx *tx, enum postgres_sql why, const struct value *row,
                             int64_t fence, db_status otherwise)
{
    const struct arg args[] = {ARG_TEXT(row->id)};
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, why, args, ARG_COUNT(args), &result);
    if (status != DB_OK)
        return status; /* DB_NOT_FOUND, or trouble */
    int64_t epoch = cell_int(session, result, 0, 0), last_fence = cell_int(session, result, 0, 1);
    PQclear(result);
    if (session->trouble.status != DB_OK)
        return session->trouble.status;
    if (epoch != row->epoch)
        return DB_CONFLICT;
    return fence != 0 && last_fence > fence ? DB_STALE_FENCE : otherwise;
}

static db_status put(db_tx *tx, enum postgres_sql sql, enum postgres_sql why,
                     const struct value *row, const db_put *how)
{
    const struct arg args[] = {ARG_TEXT(row->id),     ARG_INT(row->value),
                               ARG_INT(row->version), ARG_INT(row->epoch),
                               ARG_INT(how->fence),   ARG_INT(how->expected_version)};
    db_status status = tx_write(tx, sql, args, ARG_COUNT(args), true);
    return status == DB_REFUSED ? why_refused(tx, why, row, how->fence, DB_CONFLICT) : status;
}

db_status pg_put_item(db_tx *tx, const db_item *row, const db_put *how)
{
    const struct value value = {row->id, row->stock, row->version, row->epoch};
    return put(tx, SQL_PUT_ITEM, SQL_WHY_ITEM, &value, how);
}

db_status pg_put_account(db_tx *tx, const db_account *row, const db_put *how)
{
    const struct value value = {row->id, row->balance, row->version, row->epoch};
    return put(tx, SQL_PUT_ACCOUNT, SQL_WHY_ACCOUNT, &value, how);
}

/* The order's item is of this epoch, and stays so until the transaction ends. */
static db_status hold_epoch(db_tx *tx, const db_order *row)
{
    const struct arg args[] = {ARG_TEXT(row->id), ARG_INT(row->item_epoch)};
    const struct value value = {.id = row->id, .epoch = row->item_epoch};
    db_status status = tx_write(tx, SQL_HOLD_EPOCH, args, ARG_COUNT(args), true);
    return status == DB_REFUSED ? why_refused(tx, SQL_WHY_ORDER, &value, 0, DB_CONFLICT) : status;
}

db_status pg_put_order(db_tx *tx, const db_order *row, const db_put *how)
{
    const struct value value = {row->id, row->state, row->version, row->item_epoch};
    db_status status = how->former_sale ? DB_OK : hold_epoch(tx, row);
    if (status != DB_OK)
        return status;
    return put(tx, SQL_PUT_ORDER, SQL_WHY_ORDER, &value, how);
}

/* Reads the two columns that RETURNING gives, or DB_NOT_FOUND when no row was changed. */
static db_status ask_returning(db_tx *tx, enum postgres_sql sql, const struct arg *args, size_t n,
                               int64_t *ret_first, int64_t *ret_second)
{
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, sql, args, n, &result);
    if (status == DB_OK) {
        *ret_first = cell_int(session, result, 0, 0);
        *ret_second = cell_int(session, result, 0, 1);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

static db_status add(db_tx *tx, enum postgres_sql sql, enum postgres_sql why, const char *id,
                     int64_t epoch, int64_t delta, int64_t *ret_value, int64_t *ret_version)
{
    if (delta == INT64_MIN) /* no value is large enough */
        return DB_REFUSED;
    const struct arg args[] = {ARG_TEXT(id), ARG_INT(delta), ARG_INT(epoch), ARG_INT(-delta),
                               ARG_INT(delta > 0 ? INT64_MAX - delta : INT64_MAX)};
    const struct value row = {.id = id, .epoch = epoch};
    db_status status = ask_returning(tx, sql, args, ARG_COUNT(args), ret_value, ret_version);
    return status == DB_NOT_FOUND ? why_refused(tx, why, &row, 0, DB_REFUSED) : status;
}

db_status pg_add_item(db_tx *tx, db_item *row, int64_t delta)
{
    return add(tx, SQL_ADD_ITEM, SQL_WHY_ITEM, row->id, row->epoch, delta, &row->stock,
               &row->version);
}

db_status pg_add_account(db_tx *tx, db_account *row, int64_t delta)
{
    return add(tx, SQL_ADD_ACCOUNT, SQL_WHY_ACCOUNT, row->id, row->epoch, delta, &row->balance,
               &row->version);
}

db_status pg_move_order(db_tx *tx, db_order *row, db_order_state from, db_order_state to)
{
    const struct arg args[] = {ARG_TEXT(row->id), ARG_INT(from), ARG_INT(to)};
    int64_t state, version;
    db_status status = hold_epoch(tx, row);
    if (status == DB_OK)
        status = ask_returning(tx, SQL_MOVE_ORDER, args, ARG_COUNT(args), &state, &version);
    if (status == DB_NOT_FOUND)
        return why_refused(tx, SQL_WHY_ORDER,
                           &(struct value){.id = row->id, .epoch = row->item_epoch}, 0, DB_REFUSED);
    if (status == DB_OK) {
        row->state = (db_order_state)state;
        row->version = version;
    }
    return status;
}
