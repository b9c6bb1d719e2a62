#include "sqlite.h"

/* Columns as in ITEM_COLUMNS. */
static db_status column_item(struct conn *conn, sqlite3_stmt *statement, db_item *ret)
{
    db_item row;
    db_status status = column_text(conn, statement, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = column_text(conn, statement, 1, row.guard, sizeof row.guard);
    if (status != DB_OK)
        return status;
    row.initial_stock = sqlite3_column_int64(statement, 2);
    row.stock = sqlite3_column_int64(statement, 3);
    row.price = sqlite3_column_int64(statement, 4);
    row.per_user_limit = sqlite3_column_int64(statement, 5);
    row.reserve_s = sqlite3_column_int64(statement, 6);
    row.fence = sqlite3_column_int(statement, 7) != 0;
    row.version = sqlite3_column_int64(statement, 8);
    row.last_fence = sqlite3_column_int64(statement, 9);
    row.epoch = sqlite3_column_int64(statement, 10);
    *ret = row;
    return DB_OK;
}

/* Columns as in ACCOUNT_COLUMNS. */
static db_status column_account(struct conn *conn, sqlite3_stmt *statement, db_account *ret)
{
    db_account row;
    db_status status = column_text(conn, statement, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = column_text(conn, statement, 1, row.guard, sizeof row.guard);
    if (status != DB_OK)
        return status;
    row.initial_balance = sqlite3_column_int64(statement, 2);
    row.balance = sqlite3_column_int64(statement, 3);
    row.fence = sqlite3_column_int(statement, 4) != 0;
    row.version = sqlite3_column_int64(statement, 5);
    row.last_fence = sqlite3_column_int64(statement, 6);
    row.epoch = sqlite3_column_int64(statement, 7);
    *ret = row;
    return DB_OK;
}

db_status conn_read_item(struct conn *conn, const char *id, db_item *ret)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_ITEM];
    bind_text(statement, 1, id);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        status = column_item(conn, statement, ret);
        conn_done(statement);
    }
    return status;
}

db_status conn_read_account(struct conn *conn, const char *id, db_account *ret)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_ACCOUNT];
    bind_text(statement, 1, id);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        status = column_account(conn, statement, ret);
        conn_done(statement);
    }
    return status;
}

static db_status column_order(struct conn *conn, sqlite3_stmt *statement, db_order *ret)
{
    db_order row;
    db_status status = column_text(conn, statement, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = column_text(conn, statement, 1, row.item_id, sizeof row.item_id);
    if (status == DB_OK)
        status = column_text(conn, statement, 2, row.user_id, sizeof row.user_id);
    if (status != DB_OK)
        return status;
    row.quantity = sqlite3_column_int64(statement, 3);
    row.amount = sqlite3_column_int64(statement, 4);
    row.state = (db_order_state)sqlite3_column_int(statement, 5);
    row.version = sqlite3_column_int64(statement, 6);
    row.item_epoch = sqlite3_column_int64(statement, 7);
    row.created_us = sqlite3_column_int64(statement, 8);
    row.expires_us = sqlite3_column_int64(statement, 9);
    row.last_fence = sqlite3_column_int64(statement, 10);
    row.limited = sqlite3_column_bytes(statement, 11) > 0;
    *ret = row;
    return DB_OK;
}

db_status conn_read_order(struct conn *conn, const char *id, db_order *ret)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_ORDER];
    bind_text(statement, 1, id);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        status = column_order(conn, statement, ret);
        conn_done(statement);
    }
    return status;
}

/* Most keys are new: the large answer is filled only when there is one. */
db_status conn_read_answer(struct conn *conn, const char *key, db_answer *ret)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_ANSWER];
    bind_text(statement, 1, key);
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status;
    db_answer row;
    status = column_text(conn, statement, 0, row.key, sizeof row.key);
    if (status == DB_OK)
        status = column_text(conn, statement, 1, row.request, sizeof row.request);
    if (status == DB_OK)
        status = column_text(conn, statement, 3, row.body, sizeof row.body);
    if (status == DB_OK) {
        row.http_status = http_status_of(sqlite3_column_int64(statement, 2));
        row.at_us = sqlite3_column_int64(statement, 4);
        *ret = row;
    }
    conn_done(statement);
    return status;
}

db_status conn_find_answers(struct conn *conn, const char *const *keys, size_t n, bool *ret_found)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_ANSWER];
    for (size_t i = 0; i < n; i++) {
        bind_text(statement, 1, keys[i]);
        db_status status = conn_step(conn, statement);
        if (status == DB_OK)
            conn_done(statement);
        else if (status != DB_NOT_FOUND)
            return status;
        ret_found[i] = status == DB_OK;
    }
    return DB_OK;
}

/* An aggregate: always one row. */
static db_status read_number(struct conn *conn, sqlite3_stmt *statement, int64_t *ret)
{
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        *ret = sqlite3_column_int64(statement, 0);
        conn_done(statement);
    }
    return status;
}

db_status conn_read_bought(struct conn *conn, const db_item *item, const char *user_id,
                           int64_t *ret_quantity)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_BOUGHT];
    bind_text(statement, 1, item->id);
    bind_int(statement, 2, item->epoch);
    bind_text(statement, 3, user_id);
    return read_number(conn, statement, ret_quantity);
}

db_status conn_read_sold(struct conn *conn, const db_item *item, int64_t *ret_quantity)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_SOLD];
    bind_text(statement, 1, item->id);
    bind_int(statement, 2, item->epoch);
    return read_number(conn, statement, ret_quantity);
}

db_status conn_read_expired(struct conn *conn, int64_t now_us, const db_expired *after,
                            db_expired *ret, size_t max, size_t *ret_n)
{
    sqlite3_stmt *statement = conn->statements[SQL_READ_EXPIRED];
    bind_int(statement, 1, now_us);
    bind_int(statement, 2, after->expires_us);
    bind_text(statement, 3, after->id);
    bind_int(statement, 4, (int64_t)max);
    size_t n = 0;
    db_status status;
    while ((status = conn_step(conn, statement)) == DB_OK && n < max) {
        ret[n].expires_us = sqlite3_column_int64(statement, 0);
        status = column_text(conn, statement, 1, ret[n].id, sizeof ret[n].id);
        if (status == DB_OK)
            status = column_text(conn, statement, 2, ret[n].item_id, sizeof ret[n].item_id);
        if (status != DB_OK)
            break;
        n++;
    }
    if (status != DB_NOT_FOUND) {
        conn_done(statement);
        return status;
    }
    *ret_n = n;
    return DB_OK;
}
