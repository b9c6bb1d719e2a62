#include "audit.h"
#include "sqlite.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Each of the two walks sees the ledger (of one resource or of all) once, ascending by resource and
 * epoch, its first two columns. The resources are judged in the same order, so they meet their rows
 * as they come. */
struct walk {
    sqlite3_stmt *statement;
    db_status at; /* DB_OK: a row */
    bool taken;   /* it was given out, or there was none yet */
};

struct visit {
    struct walk chain, txns;
    int (*each)(void *arg, const db_audit_row *row);
    void *arg;
    bool stopped;
};

/* resource: NULL for all. */
static void walk_start(struct conn *conn, struct walk *walk, enum sqlite_sql sql,
                       const char *resource)
{
    *walk = (struct walk){.statement = conn->statements[sql], .at = DB_OK, .taken = true};
    bind_text(walk->statement, 1, resource);
}

/* The next row of this resource and epoch. DB_NOT_FOUND: what stands behind them is not taken. */
static db_status walk_next(struct conn *conn, struct walk *walk, const struct audit_head *head)
{
    while (walk->at == DB_OK) {
        if (walk->taken && (walk->at = conn_step(conn, walk->statement)) != DB_OK)
            break;
        const char *resource = (const char *)sqlite3_column_text(walk->statement, 0);
        if (!resource)
            return walk->at = conn_trouble(conn, SQLITE_NOMEM);
        int64_t epoch = sqlite3_column_int64(walk->statement, 1);
        int order = strcmp(resource, head->resource);
        if (order == 0)
            order = (epoch > head->epoch) - (epoch < head->epoch);
        walk->taken = order <= 0;
        if (order == 0)
            return DB_OK;
        if (order > 0)
            return DB_NOT_FOUND;
    }
    return walk->at;
}

static db_status column_ledger_row(struct conn *conn, sqlite3_stmt *statement, db_ledger_row *ret)
{
    db_status status;
    if ((status = column_text(conn, statement, 0, ret->resource, sizeof ret->resource)) != DB_OK ||
        (status = column_text(conn, statement, 2, ret->txn_id, sizeof ret->txn_id)) != DB_OK ||
        (status = column_text(conn, statement, 8, ret->guard, sizeof ret->guard)) != DB_OK ||
        (status = column_text(conn, statement, 9, ret->instance, sizeof ret->instance)) != DB_OK)
        return status;
    ret->epoch = sqlite3_column_int64(statement, 1);
    ret->delta = sqlite3_column_int64(statement, 3);
    ret->before = sqlite3_column_int64(statement, 4);
    ret->after = sqlite3_column_int64(statement, 5);
    ret->version_before = sqlite3_column_int64(statement, 6);
    ret->fence = sqlite3_column_int64(statement, 7);
    ret->at_us = sqlite3_column_int64(statement, 10);
    ret->id = sqlite3_column_int64(statement, 11);
    return DB_OK;
}

/* Feeds all rows of the epoch; *ret_first_id is the reset's row. */
static db_status feed_ledger(struct conn *conn, struct walk *chain, const struct audit_head *head,
                             struct audit *audit, int64_t *ret_first_id)
{
    db_ledger_row row;
    db_status status;
    *ret_first_id = 0;
    while ((status = walk_next(conn, chain, head)) == DB_OK) {
        if ((status = column_ledger_row(conn, chain->statement, &row)) != DB_OK)
            return status;
        if (*ret_first_id == 0)
            *ret_first_id = row.id;
        audit_add(audit, &row);
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* The reset's row does not count: a client may name its transaction like it. */
static db_status count_duplicates(struct conn *conn, struct walk *txns,
                                  const struct audit_head *head, int64_t reset_id, int64_t *ret)
{
    char txn_id[DB_KEY_MAX + 1], last[DB_KEY_MAX + 1] = "";
    bool any = false;
    db_status status;
    *ret = 0;
    while ((status = walk_next(conn, txns, head)) == DB_OK) {
        if (sqlite3_column_int64(txns->statement, 3) == reset_id)
            continue;
        if ((status = column_text(conn, txns->statement, 2, txn_id, sizeof txn_id)) != DB_OK)
            return status;
        *ret += any && strcmp(txn_id, last) == 0;
        memcpy(last, txn_id, sizeof last);
        any = true;
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

static db_status judge(struct conn *conn, const struct audit_head *head, struct visit *visit)
{
    struct audit audit;
    int64_t reset_id, duplicates;
    audit_start(&audit, head);
    db_status status = feed_ledger(conn, &visit->chain, head, &audit, &reset_id);
    if (status == DB_OK)
        status = count_duplicates(conn, &visit->txns, head, reset_id, &duplicates);
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
static db_status judge_all(struct conn *conn, struct visit *visit)
{
    db_status status = judge_accounts(conn, visit);
    return status == DB_OK ? judge_items(conn, visit) : status;
}

db_status conn_audit(struct conn *conn, const char *resource,
                     int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    assert(!sqlite3_get_autocommit(conn->handle));
    struct visit visit = {.each = each, .arg = arg};
    walk_start(conn, &visit.chain, SQL_EACH_LEDGER_ROW, resource);
    walk_start(conn, &visit.txns, SQL_EACH_TXN, resource);
    db_status status = resource ? judge_named(conn, resource, &visit) : judge_all(conn, &visit);
    conn_done(visit.chain.statement);
    conn_done(visit.txns.statement);
    return status;
}
