#include "sqlite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_SLEEP_US_MIN = 20, BUSY_RANGE_US_MIN = 40, BUSY_RANGE_US_MAX = 1000 };

/* SQLite's own handler sleeps 1, 2, 5, 10 ... ms, but another process commits in less than 1 ms.
 * This one sleeps for short random times, which grow with the time that it has waited. lockkit/sql
 * has the same rule for its own file: db and lockkit include nothing of each other. */
static int on_busy(void *arg, int calls)
{
    struct conn *conn = arg;
    int64_t now_us = db_now_us();
    if (calls == 0)
        conn->busy_since_us = now_us;
    int64_t waited_us = now_us - conn->busy_since_us;
    if (waited_us >= conn->busy_ms * 1000)
        return 0;
    int64_t range_us = waited_us / 8;
    if (range_us < BUSY_RANGE_US_MIN)
        range_us = BUSY_RANGE_US_MIN;
    if (range_us > BUSY_RANGE_US_MAX)
        range_us = BUSY_RANGE_US_MAX;
    conn->random = conn->random * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    int64_t sleep_us = BUSY_SLEEP_US_MIN + (int64_t)(conn->random >> 33) % range_us;
    db_sleep_us(sleep_us);
    db_count(conn->busy_retries, 1);
    return 1;
}

/* -- errors ----------------------------------------------------------------------------------- */

/* system: errno of the system call that failed. */
static db_status status_of(int sqlite_code, int system)
{
    switch (sqlite_code & 0xff) {
    case SQLITE_OK:
        return DB_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return DB_BUSY;
    case SQLITE_CANTOPEN:
        return DB_UNAVAILABLE;
    case SQLITE_INTERRUPT:
        return DB_INTERRUPTED;
    case SQLITE_FULL:
        return DB_FULL;
    case SQLITE_READONLY:
        return DB_READ_ONLY;
    case SQLITE_IOERR: /* of a flush, of the log's index, ... */
        return system == ENOSPC || system == EDQUOT ? DB_FULL : DB_FAILED;
    default:
        return DB_FAILED;
    }
}

db_status conn_trouble(struct conn *conn, int sqlite_code)
{
    db_status status =
        status_of(sqlite_code, conn->handle ? sqlite3_system_errno(conn->handle) : 0);
    if (sqlite_code == SQLITE_IOERR_FSYNC || sqlite_code == SQLITE_IOERR_DIR_FSYNC)
        conn->flush_failed = true;
    if (conn->trouble.status == DB_OK) {
        const char *file = conn->handle ? sqlite3_db_filename(conn->handle, "main") : NULL;
        const char *why = conn->handle && sqlite3_extended_errcode(conn->handle) == sqlite_code
                              ? sqlite3_errmsg(conn->handle)
                              : sqlite3_errstr(sqlite_code);
        db_fail(&conn->trouble, status, "%.150s: %.60s (SQLite error %d)", file ? file : "?", why,
                sqlite_code);
    }
    return status;
}

void conn_clear(struct conn *conn)
{
    conn->trouble.status = DB_OK;
}

/* Copies the connection's trouble to the caller that opens it. */
static db_status give_error(const struct conn *conn, db_error *error)
{
    return db_fail(error, conn->trouble.status, "%s", conn->trouble.message);
}

/* -- opening ---------------------------------------------------------------------------------- */

db_status conn_open(struct conn *conn, const char *path, int flags, const char *vfs,
                    int64_t busy_ms, _Atomic uint64_t *busy_retries, db_error *error)
{
    memset(conn, 0, sizeof *conn);
    conn->busy_ms = busy_ms;
    conn->busy_retries = busy_retries;
    sqlite3_randomness(sizeof conn->random, &conn->random);
    /* NOMUTEX: a connection is used by one thread at a time. */
    int code = sqlite3_open_v2(path, &conn->handle, flags | SQLITE_OPEN_NOMUTEX, vfs);
    if (conn->handle)
        sqlite3_extended_result_codes(conn->handle, 1);
    if (code != SQLITE_OK) {
        int system = conn->handle ? sqlite3_system_errno(conn->handle) : 0;
        db_status status = db_fail(error, status_of(code, system), "%.150s: cannot be opened: %s",
                                   path, system ? strerror(system) : sqlite3_errstr(code));
        conn_close(conn);
        return status;
    }
    sqlite3_busy_handler(conn->handle, on_busy, conn);
    return DB_OK;
}

static bool used_by(const char *use, enum conn_kind kind)
{
    return use[0] == 'B' || (use[0] == 'W') == (kind == CONN_WRITER);
}

db_status conn_prepare(struct conn *conn, enum conn_kind kind, db_error *error)
{
    static const struct {
        const char *use, *sql;
    } texts[] = {
#define SQL_TEXT(use, name, text) {#use, text},
        SQLITE_SQL_MAP(SQL_TEXT)
#undef SQL_TEXT
    };
    if (kind == CONN_WRITER && new_rows_open(conn) != DB_OK)
        return give_error(conn, error);
    for (int i = 0; i < SQL_COUNT; i++) {
        if (!used_by(texts[i].use, kind))
            continue;
        int code = sqlite3_prepare_v3(conn->handle, texts[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                                      &conn->statements[i], NULL);
        if (code != SQLITE_OK) {
            conn_trouble(conn, code);
            return give_error(conn, error);
        }
    }
    return DB_OK;
}

void conn_close(struct conn *conn)
{
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(conn->statements[i]);
    sqlite3_close(conn->handle);
    new_rows_close(conn);
    memset(conn->statements, 0, sizeof conn->statements);
    conn->handle = NULL;
}

/* -- running ---------------------------------------------------------------------------------- */

db_status conn_step(struct conn *conn, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return DB_OK;
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement);
        return DB_NOT_FOUND;
    }
    db_status status = conn_trouble(conn, code); /* before reset, while the message stands */
    sqlite3_reset(statement);
    return status;
}

void conn_done(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
}

db_status conn_run(struct conn *conn, sqlite3_stmt *statement)
{
    db_status status = conn_step(conn, statement);
    if (status == DB_OK)
        sqlite3_reset(statement);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

db_status conn_run_plain(struct conn *conn, enum sqlite_sql sql)
{
    return conn_run(conn, conn->statements[sql]);
}

db_status conn_exec(struct conn *conn, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    int code = sql ? sqlite3_exec(conn->handle, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code == SQLITE_OK ? DB_OK : conn_trouble(conn, code);
}

db_status conn_query_int(struct conn *conn, const char *sql, int64_t *ret)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(conn->handle, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return conn_trouble(conn, code);
    db_status status = conn_step(conn, statement);
    if (status == DB_OK)
        *ret = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

sqlite3_stmt *conn_bind(struct conn *conn, enum sqlite_sql sql, const struct value *values,
                        size_t n)
{
    sqlite3_stmt *statement = conn->statements[sql];
    for (size_t i = 0; i < n; i++) {
        if (values[i].text)
            sqlite3_bind_text(statement, (int)i + 1, values[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(statement, (int)i + 1, values[i].number);
    }
    return statement;
}
