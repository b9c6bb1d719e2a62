/* The audit's lists. The ledger has no index: two of them sort it. */
#include "audit.h"
#include "sqlite.h"

struct feed {
    struct conn *conn;
    const char *resource; /* "" for all */
};

/* *ret: the list's statement, which stands on its next row. */
static db_status next(const struct feed *feed, enum sqlite_sql sql, sqlite3_stmt **ret)
{
    *ret = feed->conn->statements[sql];
    return conn_step(feed->conn, *ret);
}

static db_status next_head(void *arg, struct audit_head *ret)
{
    const struct feed *feed = arg;
    struct conn *conn = feed->conn;
    sqlite3_stmt *at;
    db_status status;
    if ((status = next(feed, SQL_AUDIT_HEADS, &at)) != DB_OK ||
        (status = column_text(conn, at, 0, ret->resource, sizeof ret->resource)) != DB_OK ||
        (status = column_text(conn, at, 1, ret->guard, sizeof ret->guard)) != DB_OK)
        return status;
    ret->initial = sqlite3_column_int64(at, 2);
    ret->current = sqlite3_column_int64(at, 3);
    ret->version = sqlite3_column_int64(at, 4);
    ret->epoch = sqlite3_column_int64(at, 5);
    ret->missing = sqlite3_column_int64(at, 6) != 0;
    ret->sold = sqlite3_column_int64(at, 7);
    ret->stray_orders = sqlite3_column_int64(at, 8);
    ret->over_limit = sqlite3_column_int64(at, 9);
    ret->former_paid = sqlite3_column_int64(at, 10);
    return DB_OK;
}

static void open_ledger(void *arg, int64_t epoch)
{
    const struct feed *feed = arg;
    static const enum sqlite_sql lists[] = {SQL_AUDIT_ROWS, SQL_AUDIT_REPEATS};
    for (int i = 0; i < 2; i++) {
        bind_text(feed->conn->statements[lists[i]], 1, feed->resource);
        bind_int(feed->conn->statements[lists[i]], 2, epoch);
    }
}

/* Columns as in AUDIT_ROW_COLUMNS. */
static db_status column_row(struct conn *conn, sqlite3_stmt *at, db_ledger_row *ret)
{
    db_status status;
    if ((status = column_text(conn, at, 1, ret->resource, sizeof ret->resource)) != DB_OK ||
        (status = column_text(conn, at, 2, ret->txn_id, sizeof ret->txn_id)) != DB_OK ||
        (status = column_text(conn, at, 9, ret->guard, sizeof ret->guard)) != DB_OK ||
        (status = column_text(conn, at, 10, ret->instance, sizeof ret->instance)) != DB_OK)
        return status;
    ret->id = sqlite3_column_int64(at, 0);
    ret->delta = sqlite3_column_int64(at, 3);
    ret->before = sqlite3_column_int64(at, 4);
    ret->after = sqlite3_column_int64(at, 5);
    ret->version_before = sqlite3_column_int64(at, 6);
    ret->fence = sqlite3_column_int64(at, 7);
    ret->epoch = sqlite3_column_int64(at, 8);
    ret->at_us = sqlite3_column_int64(at, 11);
    return DB_OK;
}

static db_status next_row(void *arg, db_ledger_row *ret)
{
    const struct feed *feed = arg;
    sqlite3_stmt *at;
    db_status status = next(feed, SQL_AUDIT_ROWS, &at);
    return status == DB_OK ? column_row(feed->conn, at, ret) : status;
}

static db_status next_repeats(void *arg, struct audit_repeats *ret)
{
    const struct feed *feed = arg;
    sqlite3_stmt *at;
    db_status status;
    if ((status = next(feed, SQL_AUDIT_REPEATS, &at)) != DB_OK ||
        (status = column_text(feed->conn, at, 0, ret->resource, sizeof ret->resource)) != DB_OK)
        return status;
    ret->epoch = sqlite3_column_int64(at, 1);
    ret->rows = sqlite3_column_int64(at, 2);
    return DB_OK;
}

db_status conn_read_ledger(struct conn *conn, int64_t after, size_t max,
                           int (*each)(void *arg, const db_ledger_row *row), void *arg,
                           int64_t *ret_last)
{
    sqlite3_stmt *end = conn->statements[SQL_LEDGER_END], *at = conn->statements[SQL_LEDGER_PAGE];
    db_ledger_row row;
    db_status status = conn_step(conn, end);
    if (status != DB_OK)
        return status;
    *ret_last = sqlite3_column_int64(end, 0);
    conn_done(end);
    bind_int(at, 1, after);
    bind_int(at, 2, (int64_t)max);
    while ((status = conn_step(conn, at)) == DB_OK &&
           (status = column_row(conn, at, &row)) == DB_OK && each(arg, &row) == 0)
        continue;
    conn_done(at);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* What only reads writes nothing but what it sorts. */
static void explain_full(struct conn *conn)
{
    const db_error why = conn->trouble;
    db_fail(&conn->trouble, why.status, "no room to sort the ledger in $SQLITE_TMPDIR: %s",
            why.message);
}

db_status conn_audit(struct conn *conn, const char *resource,
                     int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    static const struct audit_lists lists = {next_head, open_ledger, next_row, next_repeats};
    if (sqlite3_get_autocommit(conn->handle)) /* the disk failed in an earlier read of it */
        return db_fail(&conn->trouble, DB_FAILED, "the snapshot was ended by an error");
    struct feed feed = {conn, resource ? resource : ""};
    bind_text(conn->statements[SQL_AUDIT_HEADS], 1, feed.resource);
    db_status status = audit_run(&lists, &feed, each, arg);
    if (status == DB_FULL && sqlite3_errcode(conn->handle) == SQLITE_FULL)
        explain_full(conn);
    conn_done(conn->statements[SQL_AUDIT_HEADS]);
    conn_done(conn->statements[SQL_AUDIT_ROWS]);
    conn_done(conn->statements[SQL_AUDIT_REPEATS]);
    return status;
}
