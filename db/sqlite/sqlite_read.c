/* Reading rows, by a connection of any kind. */
#include "sqlite.h"

#include <stdio.h>
#include <string.h>

db_status conn_row(struct conn *conn, sqlite3_stmt *at, const struct row_type *type, void *ret)
{
    struct any_row row;
    for (size_t i = 0; i < type->n; i++) {
        const struct column *column = &type->columns[i];
        bool fits;
        if (column_is_text(column)) {
            const char *text = (const char *)sqlite3_column_text(at, (int)i);
            if (!text)
                return conn_trouble(conn, SQLITE_NOMEM);
            fits = row_take_text(column, &row, text, (size_t)sqlite3_column_bytes(at, (int)i));
        } else {
            fits = row_take_number(column, &row, sqlite3_column_int64(at, (int)i));
        }
        if (!fits)
            return conn_trouble(conn, SQLITE_CORRUPT);
    }
    memcpy(ret, row.bytes, type->size);
    return DB_OK;
}

db_status conn_read_row(struct conn *conn, enum db_table table, const char *key, void *ret)
{
    static const enum sqlite_sql by_key[TABLES] = {
        [TABLE_ITEMS] = SQL_READ_ITEM,
        [TABLE_ACCOUNTS] = SQL_READ_ACCOUNT,
        [TABLE_ORDERS] = SQL_READ_ORDER,
        [TABLE_ANSWERS] = SQL_READ_ANSWER,
    };
    sqlite3_stmt *statement = conn_bind(conn, by_key[table], &VALUE_TEXT(key), 1);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        status = conn_row(conn, statement, &row_types[table], ret);
        conn_done(statement);
    }
    return status;
}

db_status conn_find_answers(struct conn *conn, const char *const *keys, size_t n, bool *ret_found)
{
    for (size_t i = 0; i < n; i++) {
        sqlite3_stmt *statement = conn_bind(conn, SQL_READ_ANSWER, &VALUE_TEXT(keys[i]), 1);
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
static db_status read_number(struct conn *conn, enum sqlite_sql sql, const struct value *values,
                             size_t n, int64_t *ret)
{
    sqlite3_stmt *statement = conn_bind(conn, sql, values, n);
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
    const struct value values[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch),
                                   VALUE_TEXT(user_id)};
    return read_number(conn, SQL_READ_BOUGHT, values, VALUE_COUNT(values), ret_quantity);
}

db_status conn_read_sold(struct conn *conn, const db_item *item, int64_t *ret_quantity)
{
    const struct value values[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch)};
    return read_number(conn, SQL_READ_SOLD, values, VALUE_COUNT(values), ret_quantity);
}

db_status conn_read_bite(struct conn *conn, const char *after, int64_t before_us, db_bite *ret)
{
    const struct value values[] = {VALUE_TEXT(after), VALUE_INT(before_us)};
    sqlite3_stmt *statement = conn_bind(conn, SQL_READ_BITE, values, VALUE_COUNT(values));
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status;
    ret->n = sqlite3_column_int64(statement, 0);
    ret->old = sqlite3_column_int64(statement, 1);
    snprintf(ret->last, sizeof ret->last, "%s", (const char *)sqlite3_column_text(statement, 2));
    conn_done(statement);
    return DB_OK;
}

db_status conn_read_refusals(struct conn *conn, int64_t keep, db_refusals *ret)
{
    const struct value values[] = {VALUE_INT(keep)};
    sqlite3_stmt *statement = conn_bind(conn, SQL_READ_REFUSALS, values, VALUE_COUNT(values));
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        return status;
    ret->n = sqlite3_column_int64(statement, 0);
    ret->before_us = sqlite3_column_int64(statement, 1);
    conn_done(statement);
    return DB_OK;
}

db_status conn_read_expired(struct conn *conn, int64_t now_us, const db_expired *after,
                            db_expired *ret, size_t max, size_t *ret_n)
{
    const struct value values[] = {VALUE_INT(now_us), VALUE_INT(after->expires_us),
                                   VALUE_TEXT(after->id), VALUE_INT((int64_t)max)};
    sqlite3_stmt *statement = conn_bind(conn, SQL_READ_EXPIRED, values, VALUE_COUNT(values));
    size_t n = 0;
    db_status status;
    while ((status = conn_step(conn, statement)) == DB_OK && n < max &&
           (status = conn_row(conn, statement, &expired_type, &ret[n])) == DB_OK)
        n++;
    if (status != DB_NOT_FOUND) {
        conn_done(statement);
        return status;
    }
    *ret_n = n;
    return DB_OK;
}
