#include "audit.h"
#include "sqlite.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static db_status column_ledger_row(struct conn *conn, sqlite3_stmt *statement, db_ledger_row *ret)
{
    db_status status;
    if ((status = column_text(conn, statement, 1, ret->resource, sizeof ret->resource)) != DB_OK ||
        (status = column_text(conn, statement, 2, ret->txn_id, sizeof ret->txn_id)) != DB_OK ||
        (status = column_text(conn, statement, 9, ret->guard, sizeof ret->guard)) != DB_OK ||
        (status = column_text(conn, statement, 10, ret->instance, sizeof ret->instance)) != DB_OK)
        return status;
    ret->id = sqlite3_column_int64(statement, 0);
    ret->delta = sqlite3_column_int64(statement, 3);
    ret->before = sqlite3_column_int64(statement, 4);
    ret->after = sqlite3_column_int64(statement, 5);
    ret->version_before = sqlite3_column_int64(statement, 6);
    ret->fence = sqlite3_column_int64(statement, 7);
    ret->epoch = sqlite3_column_int64(statement, 8);
    ret->at_us = sqlite3_column_int64(statement, 11);
    return DB_OK;
}

/* Feeds all rows of the epoch; *ret_first_id is the reset's row. */
static db_status feed_ledger(struct conn *conn, const struct audit_head *head, struct audit *audit,
                             int64_t *ret_first_id)
{
    sqlite3_stmt *statement = conn->statements[SQL_EACH_LEDGER_ROW];
    bind_text(statement, 1, head->resource);
    bind_int(statement, 2, head->epoch);
    db_ledger_row row;
    db_status status;
    *ret_first_id = 0;
    while ((status = conn_step(conn, statement)) == DB_OK) {
        if ((status = column_ledger_row(conn, statement, &row)) != DB_OK) {
            conn_done(statement);
            return status;
        }
        if (*ret_first_id == 0)
            *ret_first_id = row.id;
        audit_add(audit, &row);
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* The reset's row does not count: a client may name its transaction like it. */
static db_status count_duplicates(struct conn *conn, const struct audit_head *head,
                                  int64_t reset_id, int64_t *ret)
{
    sqlite3_stmt *statement = conn->statements[SQL_COUNT_DUPLICATES];
    bind_text(statement, 1, head->resource);
    bind_int(statement, 2, head->epoch);
    bind_int(statement, 3, reset_id);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK) {
        *ret = sqlite3_column_int64(statement, 0);
        conn_done(statement);
    }
    return status;
}

struct visit {
    int (*each)(void *arg, const db_audit_row *row);
    void *arg;
    bool stopped;
};

static db_status judge(struct conn *conn, const struct audit_head *head, struct visit *visit)
{
    struct audit audit;
    int64_t reset_id, duplicates;
    audit_start(&audit, head);
    db_status status = feed_ledger(conn, head, &audit, &reset_id);
    if (status == DB_OK)
        status = count_duplicates(conn, head, reset_id, &duplicates);
    if (status == DB_OK) {
        audit_finish(&audit, duplicates);
        visit->stopped = visit->each(visit->arg, &audit.row) != 0;
    }
    return status;
}

static db_status judge_item(struct conn *conn, const db_item *item, struct visit *visit)
{
    struct audit_head head = {.is_item = true,
                              .initial = item->initial_stock,
                              .current = item->stock,
                              .version = item->version,
                              .epoch = item->epoch};
    snprintf(head.resource, sizeof head.resource, "item:%s", item->id);
    memcpy(head.guard, item->guard, sizeof head.guard);
    db_status status = conn_read_sold(conn, item, &head.sold);
    return status == DB_OK ? judge(conn, &head, visit) : status;
}

static db_status judge_account(struct conn *conn, const db_account *account, struct visit *visit)
{
    struct audit_head head = {.initial = account->initial_balance,
                              .current = account->balance,
                              .version = account->version,
                              .epoch = account->epoch};
    snprintf(head.resource, sizeof head.resource, "account:%s", account->id);
    memcpy(head.guard, account->guard, sizeof head.guard);
    return judge(conn, &head, visit);
}

static db_status judge_named(struct conn *conn, const char *resource, struct visit *visit)
{
    db_status status = DB_NOT_FOUND;
    if (strncmp(resource, "item:", 5) == 0) {
        db_item item;
        status = conn_read_item(conn, resource + 5, &item);
        if (status == DB_OK)
            status = judge_item(conn, &item, visit);
    } else if (strncmp(resource, "account:", 8) == 0) {
        db_account account;
        status = conn_read_account(conn, resource + 8, &account);
        if (status == DB_OK)
            status = judge_account(conn, &account, visit);
    }
    return status;
}

static db_status judge_accounts(struct conn *conn, struct visit *visit)
{
    sqlite3_stmt *statement = conn->statements[SQL_EACH_ACCOUNT];
    db_account account;
    db_status status = DB_OK;
    while (!visit->stopped && (status = conn_step(conn, statement)) == DB_OK)
        if ((status = column_account(conn, statement, &account)) != DB_OK ||
            (status = judge_account(conn, &account, visit)) != DB_OK)
            break;
    conn_done(statement);
    return visit->stopped || status == DB_NOT_FOUND ? DB_OK : status;
}

static db_status judge_items(struct conn *conn, struct visit *visit)
{
    sqlite3_stmt *statement = conn->statements[SQL_EACH_ITEM];
    db_item item;
    db_status status = DB_OK;
    while (!visit->stopped && (status = conn_step(conn, statement)) == DB_OK)
        if ((status = column_item(conn, statement, &item)) != DB_OK ||
            (status = judge_item(conn, &item, visit)) != DB_OK)
            break;
    conn_done(statement);
    return visit->stopped || status == DB_NOT_FOUND ? DB_OK : status;
}

/* Ascending: "account:..." stands before "item:...". */
db_status conn_audit(struct conn *conn, const char *resource,
                     int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    assert(!sqlite3_get_autocommit(conn->handle));
    struct visit visit = {each, arg, false};
    if (resource)
        return judge_named(conn, resource, &visit);
    db_status status = judge_accounts(conn, &visit);
    return status == DB_OK ? judge_items(conn, &visit) : status;
}
