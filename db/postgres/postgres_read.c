/* Reading rows, by a connection that a reader or a transaction has. */
#include "postgres.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

db_status session_row(struct session *session, const PGresult *result, int at,
                      const struct row_type *type, void *ret)
{
    struct any_row row;
    for (size_t i = 0; i < type->n; i++) {
        const struct column *column = &type->columns[i];
        if (column_is_text(column)) {
            const char *text = PQgetvalue(result, at, (int)i);
            size_t length = (size_t)PQgetlength(result, at, (int)i);
            if (!text || !row_take_text(column, &row, text, length))
                return session_damage(session, column);
        } else if (!row_take_number(column, &row, cell_int(session, result, at, (int)i))) {
            return session_damage(session, column);
        }
    }
    if (session->trouble.status == DB_OK)
        memcpy(ret, row.bytes, type->size);
    return session->trouble.status;
}

db_status session_read_row(struct session *session, enum db_table table, const char *key,
                           bool for_update, void *ret)
{
    static const enum postgres_sql by_key[TABLES][2] = {
        [TABLE_ITEMS] = {SQL_READ_ITEM, SQL_LOCK_ITEM},
        [TABLE_ACCOUNTS] = {SQL_READ_ACCOUNT, SQL_LOCK_ACCOUNT},
        [TABLE_ORDERS] = {SQL_READ_ORDER, SQL_LOCK_ORDER},
        [TABLE_ANSWERS] = {SQL_READ_ANSWER, SQL_READ_ANSWER},
    };
    PGresult *result = NULL;
    db_status status =
        session_ask(session, by_key[table][for_update], &VALUE_TEXT(key), 1, &result);
    if (status == DB_OK)
        status = session_row(session, result, 0, &row_types[table], ret);
    PQclear(result);
    return status;
}

db_status session_find_answers(struct session *session, const char *const *keys, size_t n,
                               bool *ret_found)
{
    static_assert((int)DB_KEYS_MAX <= (int)PG_GATHER_MAX, "one statement");
    PGresult *result = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct value args[] = {VALUE_TEXT(keys[i])};
        session_queue(session, SQL_FIND_ANSWER, args, VALUE_COUNT(args), false);
    }
    db_status status = session_read(session, &result);
    if (status == DB_NOT_FOUND)
        status = DB_OK;
    for (int i = 0; i < PQntuples(result) && status == DB_OK; i++) {
        int64_t at = cell_int(session, result, i, 0);
        if (at >= 1 && at <= (int64_t)n)
            ret_found[at - 1] = true;
        else
            status = session_bad_answer(session, "an answer to a key that was not asked for");
    }
    PQclear(result);
    return status;
}

db_status session_read_bought(struct session *session, const db_item *item,
                              const char *const *user_ids, size_t n, int64_t *ret_quantities)
{
    PGresult *result = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct value args[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch),
                                     VALUE_TEXT(user_ids[i])};
        session_queue(session, SQL_READ_BOUGHT, args, VALUE_COUNT(args), false);
    }
    db_status status = session_read(session, &result);
    if (status == DB_OK && (size_t)PQntuples(result) != n)
        status = session_bad_answer(session, "not one row for each buyer");
    for (size_t i = 0; i < n && status == DB_OK; i++) {
        ret_quantities[i] = cell_int(session, result, (int)i, 0);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

/* An aggregate: always one row. */
db_status session_read_sold(struct session *session, const db_item *item, int64_t *ret_quantity)
{
    const struct value args[] = {VALUE_TEXT(item->id), VALUE_INT(item->epoch)};
    return session_read_number(session, SQL_READ_SOLD, args, VALUE_COUNT(args), ret_quantity);
}

db_status session_read_bite(struct session *session, const char *after, int64_t before_us,
                            db_bite *ret)
{
    const struct value args[] = {VALUE_TEXT(after), VALUE_INT(before_us)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_READ_BITE, args, VALUE_COUNT(args), &result);
    if (status == DB_OK) {
        ret->n = cell_int(session, result, 0, 0);
        ret->old = cell_int(session, result, 0, 1);
        const char *last = PQnfields(result) == 3 ? PQgetvalue(result, 0, 2) : NULL;
        if (last == NULL)
            session_bad_answer(session, "no bite of keys");
        else
            snprintf(ret->last, sizeof ret->last, "%s", last);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status session_read_refusals(struct session *session, int64_t keep, db_refusals *ret)
{
    const struct value args[] = {VALUE_INT(keep)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_READ_REFUSALS, args, VALUE_COUNT(args), &result);
    if (status == DB_OK) {
        ret->n = cell_int(session, result, 0, 0);
        ret->before_us = cell_int(session, result, 0, 1);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status session_read_expired(struct session *session, int64_t now_us, const db_expired *after,
                               db_expired *ret, size_t max, size_t *ret_n)
{
    const struct value args[] = {VALUE_INT(now_us), VALUE_INT(after->expires_us),
                                 VALUE_TEXT(after->id), VALUE_INT((int64_t)max)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_READ_EXPIRED, args, VALUE_COUNT(args), &result);
    if (status == DB_NOT_FOUND)
        status = DB_OK; /* an empty list */
    size_t n = (size_t)PQntuples(result);
    if (n > max)
        status = session_bad_answer(session, "more rows than were asked for");
    for (size_t i = 0; i < n && status == DB_OK; i++)
        status = session_row(session, result, (int)i, &expired_type, &ret[i]);
    if (status == DB_OK)
        *ret_n = n;
    PQclear(result);
    return status;
}
