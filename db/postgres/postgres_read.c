#include "postgres.h"

#include <assert.h>

/* Columns as in ITEM_COLUMNS. */
static db_status row_item(struct session *session, const PGresult *result, int at, db_item *ret)
{
    db_item row;
    db_status status = cell_text(session, result, at, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = cell_text(session, result, at, 1, row.guard, sizeof row.guard);
    if (status != DB_OK)
        return status;
    row.initial_stock = cell_int(session, result, at, 2);
    row.stock = cell_int(session, result, at, 3);
    row.price = cell_int(session, result, at, 4);
    row.per_user_limit = cell_int(session, result, at, 5);
    row.reserve_s = cell_int(session, result, at, 6);
    row.fence = cell_int(session, result, at, 7) != 0;
    row.version = cell_int(session, result, at, 8);
    row.last_fence = cell_int(session, result, at, 9);
    row.epoch = cell_int(session, result, at, 10);
    *ret = row;
    return session->trouble.status;
}

/* Columns as in ACCOUNT_COLUMNS. */
static db_status row_account(struct session *session, const PGresult *result, int at,
                             db_account *ret)
{
    db_account row;
    db_status status = cell_text(session, result, at, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = cell_text(session, result, at, 1, row.guard, sizeof row.guard);
    if (status != DB_OK)
        return status;
    row.initial_balance = cell_int(session, result, at, 2);
    row.balance = cell_int(session, result, at, 3);
    row.fence = cell_int(session, result, at, 4) != 0;
    row.version = cell_int(session, result, at, 5);
    row.last_fence = cell_int(session, result, at, 6);
    row.epoch = cell_int(session, result, at, 7);
    *ret = row;
    return session->trouble.status;
}

/* Columns as in ORDER_COLUMNS. */
static db_status row_order(struct session *session, const PGresult *result, db_order *ret)
{
    db_order row;
    db_status status = cell_text(session, result, 0, 0, row.id, sizeof row.id);
    if (status == DB_OK)
        status = cell_text(session, result, 0, 1, row.item_id, sizeof row.item_id);
    if (status == DB_OK)
        status = cell_text(session, result, 0, 2, row.user_id, sizeof row.user_id);
    if (status != DB_OK)
        return status;
    row.quantity = cell_int(session, result, 0, 3);
    row.amount = cell_int(session, result, 0, 4);
    int64_t state = cell_int(session, result, 0, 5);
    if (state < DB_RESERVED || state > DB_CLOSED)
        return session_nonsense(session, "an order in no known state");
    row.state = (db_order_state)state;
    row.version = cell_int(session, result, 0, 6);
    row.item_epoch = cell_int(session, result, 0, 7);
    row.created_us = cell_int(session, result, 0, 8);
    row.expires_us = cell_int(session, result, 0, 9);
    row.limited = PQgetlength(result, 0, 10) > 0;
    row.last_fence = cell_int(session, result, 0, 11);
    *ret = row;
    return session->trouble.status;
}

static db_status ask_by_id(struct session *session, enum postgres_sql sql, const char *id,
                           PGresult **ret)
{
    const struct arg args[] = {ARG_TEXT(id)};
    return session_ask(session, sql, args, ARG_COUNT(args), ret);
}

db_status session_read_item(struct session *session, const char *id, bool for_update, db_item *ret)
{
    PGresult *result = NULL;
    db_status status = ask_by_id(session, for_update ? SQL_LOCK_ITEM : SQL_READ_ITEM, id, &result);
    if (status == DB_OK)
        status = row_item(session, result, 0, ret);
    PQclear(result);
    return status;
}

db_status session_read_account(struct session *session, const char *id, bool for_update,
                               db_account *ret)
{
    PGresult *result = NULL;
    db_status status =
        ask_by_id(session, for_update ? SQL_LOCK_ACCOUNT : SQL_READ_ACCOUNT, id, &result);
    if (status == DB_OK)
        status = row_account(session, result, 0, ret);
    PQclear(result);
    return status;
}

db_status session_read_order(struct session *session, const char *id, bool for_update,
                             db_order *ret)
{
    PGresult *result = NULL;
    db_status status =
        ask_by_id(session, for_update ? SQL_LOCK_ORDER : SQL_READ_ORDER, id, &result);
    if (status == DB_OK)
        status = row_order(session, result, ret);
    PQclear(result);
    return status;
}

/* Most keys are new: the large answer is filled only when there is one. */
db_status session_read_answer(struct session *session, const char *key, db_answer *ret)
{
    PGresult *result = NULL;
    db_status status = ask_by_id(session, SQL_READ_ANSWER, key, &result);
    if (status != DB_OK)
        return status;
    db_answer row;
    status = cell_text(session, result, 0, 0, row.key, sizeof row.key);
    if (status == DB_OK)
        status = cell_text(session, result, 0, 1, row.request, sizeof row.request);
    if (status == DB_OK)
        status = cell_text(session, result, 0, 3, row.body, sizeof row.body);
    if (status == DB_OK) {
        row.http_status = http_status_of(cell_int(session, result, 0, 2));
        row.at_us = cell_int(session, result, 0, 4);
        *ret = row;
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status session_find_answers(struct session *session, const char *const *keys, size_t n,
                               bool *ret_found)
{
    static_assert((int)DB_KEYS_MAX <= (int)PG_GATHER_MAX, "one statement");
    PGresult *result = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct arg args[] = {ARG_TEXT(keys[i])};
        session_queue(session, SQL_FIND_ANSWER, args, ARG_COUNT(args), false);
    }
    db_status status = session_read(session, &result);
    if (status == DB_NOT_FOUND)
        status = DB_OK;
    for (int i = 0; i < PQntuples(result) && status == DB_OK; i++) {
        int64_t at = cell_int(session, result, i, 0);
        if (at >= 1 && at <= (int64_t)n)
            ret_found[at - 1] = true;
        else
            status = session_nonsense(session, "an answer to a key that was not asked for");
    }
    PQclear(result);
    return status;
}

db_status session_read_bought(struct session *session, const db_item *item,
                              const char *const *user_ids, size_t n, int64_t *ret_quantities)
{
    PGresult *result = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct arg args[] = {ARG_TEXT(item->id), ARG_INT(item->epoch), ARG_TEXT(user_ids[i])};
        session_queue(session, SQL_READ_BOUGHT, args, ARG_COUNT(args), false);
    }
    db_status status = session_read(session, &result);
    if (status == DB_OK && (size_t)PQntuples(result) != n)
        status = session_nonsense(session, "not one row for each buyer");
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
    const struct arg args[] = {ARG_TEXT(item->id), ARG_INT(item->epoch)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_READ_SOLD, args, ARG_COUNT(args), &result);
    if (status == DB_OK) {
        *ret_quantity = cell_int(session, result, 0, 0);
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status session_read_expired(struct session *session, int64_t now_us, const db_expired *after,
                               db_expired *ret, size_t max, size_t *ret_n)
{
    const struct arg args[] = {ARG_INT(now_us), ARG_INT(after->expires_us), ARG_TEXT(after->id),
                               ARG_INT((int64_t)max)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_READ_EXPIRED, args, ARG_COUNT(args), &result);
    if (status == DB_NOT_FOUND)
        status = DB_OK; /* an empty list */
    size_t n = (size_t)PQntuples(result);
    if (n > max)
        status = session_nonsense(session, "more rows than were asked for");
    for (size_t i = 0; i < n && status == DB_OK; i++) {
        ret[i].expires_us = cell_int(session, result, (int)i, 0);
        status = session->trouble.status;
        if (status == DB_OK)
            status = cell_text(session, result, (int)i, 1, ret[i].id, sizeof ret[i].id);
        if (status == DB_OK)
            status = cell_text(session, result, (int)i, 2, ret[i].item_id, sizeof ret[i].item_id);
    }
    if (status == DB_OK)
        *ret_n = n;
    PQclear(result);
    return status;
}
