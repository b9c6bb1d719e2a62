/* New rows, and resets. */
#include "postgres.h"

/* Inserts ON CONFLICT DO NOTHING: no row changed means that the key is taken. */
static db_status insert(db_tx *tx, enum postgres_sql sql, const struct arg *args, size_t n,
                        db_status when_taken)
{
    db_status status = tx_write(tx, sql, args, n, true);
    return status == DB_REFUSED ? when_taken : status;
}

db_status pg_insert_order(db_tx *tx, const db_order *row)
{
    const struct arg args[] = {ARG_TEXT(row->id),
                               ARG_TEXT(row->item_id),
                               ARG_TEXT(row->user_id),
                               ARG_INT(row->quantity),
                               ARG_INT(row->amount),
                               ARG_INT(row->state),
                               ARG_INT(row->version),
                               ARG_INT(row->item_epoch),
                               ARG_INT(row->created_us),
                               ARG_INT(row->expires_us),
                               ARG_TEXT(row->limited ? row->user_id : "")};
    return insert(tx, SQL_INSERT_ORDER, args, ARG_COUNT(args), DB_INVALID);
}

db_status pg_append_ledger(db_tx *tx, const db_ledger_row *row)
{
    const struct arg args[] = {
        ARG_TEXT(row->resource), ARG_TEXT(row->txn_id), ARG_INT(row->delta),
        ARG_INT(row->before),    ARG_INT(row->after),   ARG_INT(row->version_before),
        ARG_INT(row->fence),     ARG_INT(row->epoch),   ARG_TEXT(row->guard),
        ARG_TEXT(row->instance), ARG_INT(row->at_us)};
    return tx_write(tx, SQL_APPEND_LEDGER, args, ARG_COUNT(args), true);
}

db_status pg_insert_answer(db_tx *tx, const db_answer *row)
{
    const struct arg args[] = {ARG_TEXT(row->key), ARG_TEXT(row->request),
                               ARG_INT(row->http_status), ARG_TEXT(row->body), ARG_INT(row->at_us)};
    return insert(tx, SQL_INSERT_ANSWER, args, ARG_COUNT(args), DB_DUPLICATE);
}

db_status pg_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                      int64_t done)
{
    const struct arg args[] = {ARG_TEXT(name), ARG_TEXT(instance), ARG_INT(at_us), ARG_INT(done)};
    return tx_write(tx, SQL_PUT_TASK, args, ARG_COUNT(args), false);
}

db_status pg_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret)
{
    const struct arg args[] = {ARG_TEXT(resource), ARG_INT(seen)};
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, SQL_NEXT_FENCE, args, ARG_COUNT(args), &result);
    if (status == DB_OK) {
        *ret = cell_int(session, result, 0, 0);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

/* -- resets ----------------------------------------------------------------------------------- */

/* Runs a reset; it returns version and epoch of the row. */
static db_status ask_reset(db_tx *tx, enum postgres_sql sql, const struct arg *args, size_t n,
                           int64_t *ret_version, int64_t *ret_epoch)
{
    struct session *session;
    PGresult *result = NULL;
    db_status status = tx_session(tx, &session);
    if (status == DB_OK)
        status = session_ask(session, sql, args, n, &result);
    if (status == DB_OK) {
        *ret_version = cell_int(session, result, 0, 0);
        *ret_epoch = cell_int(session, result, 0, 1);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status pg_reset_item(db_tx *tx, db_item *row, const char *guard, const char *instance)
{
    const struct arg args[] = {
        ARG_TEXT(row->id),   ARG_TEXT(row->guard),         ARG_INT(row->initial_stock),
        ARG_INT(row->price), ARG_INT(row->per_user_limit), ARG_INT(row->reserve_s),
        ARG_INT(row->fence)};
    int64_t version, epoch;
    db_status status = ask_reset(tx, SQL_RESET_ITEM, args, ARG_COUNT(args), &version, &epoch);
    if (status == DB_OK)
        status =
            db_book_reset(tx, "item", row->id, row->initial_stock, version, epoch, guard, instance);
    return status == DB_OK ? pg_tx_read_item(tx, row->id, false, row) : status;
}

db_status pg_reset_account(db_tx *tx, db_account *row, const char *guard, const char *instance)
{
    const struct arg args[] = {ARG_TEXT(row->id), ARG_TEXT(row->guard),
                               ARG_INT(row->initial_balance), ARG_INT(row->fence)};
    int64_t version, epoch;
    db_status status = ask_reset(tx, SQL_RESET_ACCOUNT, args, ARG_COUNT(args), &version, &epoch);
    if (status == DB_OK)
        status = db_book_reset(tx, "account", row->id, row->initial_balance, version, epoch, guard,
                               instance);
    return status == DB_OK ? pg_tx_read_account(tx, row->id, false, row) : status;
}
