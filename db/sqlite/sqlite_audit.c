/* The audit's lists. */
#include "audit.h"
#include "sqlite.h"

struct feed {
    struct conn *conn;
    const char *resource; /* "" for all */
};

static db_status next(const struct feed *feed, enum sqlite_sql sql, const struct row_type *type,
                      void *ret)
{
    sqlite3_stmt *at = feed->conn->statements[sql];
    db_status status = conn_step(feed->conn, at);
    return status == DB_OK ? conn_row(feed->conn, at, type, ret) : status;
}

static db_status next_head(void *feed, struct audit_head *ret)
{
    return next(feed, SQL_AUDIT_HEADS, &audit_head_type, ret);
}

static void open_ledger(void *arg, int64_t epoch)
{
    const struct feed *feed = arg;
    const struct value values[] = {VALUE_TEXT(feed->resource), VALUE_INT(epoch)};
    conn_bind(feed->conn, SQL_AUDIT_ROWS, values, VALUE_COUNT(values));
    conn_bind(feed->conn, SQL_AUDIT_REPEATS, values, VALUE_COUNT(values));
}

static db_status next_row(void *feed, db_ledger_row *ret)
{
    return next(feed, SQL_AUDIT_ROWS, &row_types[TABLE_LEDGER], ret);
}

static db_status next_repeats(void *feed, struct audit_repeats *ret)
{
    return next(feed, SQL_AUDIT_REPEATS, &audit_repeats_type, ret);
}

/* A read writes only temporary files for sorting, so these found no room. */
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
    if (sqlite3_get_autocommit(conn->handle)) /* an earlier read in this snapshot failed */
        return db_fail(&conn->trouble, DB_FAILED, "the snapshot was ended by an error");
    struct feed feed = {conn, resource ? resource : ""};
    conn_bind(conn, SQL_AUDIT_HEADS, &VALUE_TEXT(feed.resource), 1);
    db_status status = audit_run(&lists, &feed, !feed.resource[0], each, arg);
    if (status == DB_FULL && sqlite3_errcode(conn->handle) == SQLITE_FULL)
        explain_full(conn);
    conn_done(conn->statements[SQL_AUDIT_HEADS]);
    conn_done(conn->statements[SQL_AUDIT_ROWS]);
    conn_done(conn->statements[SQL_AUDIT_REPEATS]);
    return status;
}

db_status conn_read_money(struct conn *conn, int (*each)(void *arg, const db_ledger_row *row),
                          void *arg)
{
    sqlite3_stmt *at = conn->statements[SQL_MONEY];
    db_ledger_row row;
    db_status status;
    while ((status = conn_step(conn, at)) == DB_OK &&
           (status = conn_row(conn, at, &row_types[TABLE_LEDGER], &row)) == DB_OK &&
           each(arg, &row) == 0)
        continue;
    if (status == DB_FULL && sqlite3_errcode(conn->handle) == SQLITE_FULL)
        explain_full(conn);
    conn_done(at);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

db_status conn_read_unpaid(struct conn *conn, int64_t *ret)
{
    sqlite3_stmt *at = conn->statements[SQL_UNPAID];
    db_status status = conn_step(conn, at);
    if (status == DB_OK) {
        *ret = sqlite3_column_int64(at, 0);
        conn_done(at);
    }
    return status;
}
