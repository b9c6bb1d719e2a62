#include "schema.h"
#include "sqlite.h"

#include <string.h>

static db_status refuse(const struct sqlite_store *store, db_error *error)
{
    const db_error *trouble = &store->conn.trouble;
    bool foreign = sqlite3_errcode(store->conn.handle) == SQLITE_NOTADB;
    return db_fail(error, foreign ? DB_INVALID : trouble->status, "%s", trouble->message);
}

/* SQLite answers with the resulting mode. */
static db_status set_journal_mode(struct sqlite_store *store, const char *mode, db_error *error)
{
    struct conn *conn = &store->conn;
    char sql[64];
    sqlite3_snprintf(sizeof sql, sql, "PRAGMA journal_mode = %s", mode);
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(conn->handle, sql, -1, &statement, NULL);
    if (code != SQLITE_OK) {
        conn_trouble(conn, code);
        return refuse(store, error);
    }
    db_status status = conn_step(conn, statement);
    if (status != DB_OK)
        refuse(store, error);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), mode) != 0)
        status = db_fail(error, DB_UNAVAILABLE, "%.150s: its journal cannot be made \"%s\"",
                         store->path, mode);
    sqlite3_finalize(statement);
    return status;
}

static db_status create_schema(struct sqlite_store *store, db_error *error)
{
    struct conn *conn = &store->conn;
    if (conn_exec(conn,
                  "BEGIN IMMEDIATE; %s PRAGMA application_id = %d; PRAGMA user_version = %d;"
                  " COMMIT",
                  sqlite_schema_sql, SCHEMA_APPLICATION_ID, SCHEMA_VERSION) != DB_OK)
        return refuse(store, error);
    return DB_OK;
}

/* Accepts an empty file, or one of ours and of this version. Other files are not touched. */
static db_status check_schema(struct sqlite_store *store, bool *ret_empty, db_error *error)
{
    struct conn *conn = &store->conn;
    int64_t application, version, objects;
    if (conn_query_int(conn, "PRAGMA application_id", &application) != DB_OK ||
        conn_query_int(conn, "PRAGMA user_version", &version) != DB_OK ||
        conn_query_int(conn, "SELECT count(*) FROM sqlite_schema", &objects) != DB_OK)
        return refuse(store, error);
    *ret_empty = objects == 0 && application == 0 && version == 0;
    if (*ret_empty)
        return DB_OK;
    if (application != SCHEMA_APPLICATION_ID)
        return db_fail(error, DB_INVALID, "%.150s: a database, but not one of this service",
                       store->path);
    if (version != SCHEMA_VERSION)
        return db_fail(error, DB_INVALID,
                       "%.100s: schema version %lld, but this program needs %d; if that is newer, "
                       "stop the service and run \"seckilld migrate --db=sqlite:FILE\"",
                       store->path, (long long)version, SCHEMA_VERSION);
    return DB_OK;
}

db_status setup_file(struct sqlite_store *store, bool alone, db_error *error)
{
    struct conn *conn = &store->conn;
    bool shared = store->options.shared_file, empty;
    db_status status = check_schema(store, &empty, error);
    if (status != DB_OK)
        return status;
    if (sqlite3_db_readonly(conn->handle, "main"))
        return db_fail(error, DB_UNAVAILABLE, "%.150s: not writable", store->path);
    if (empty && !alone)
        return db_fail(error, DB_UNAVAILABLE, "%.150s: its tables vanished", store->path);
    if (empty && store->options.existing)
        return db_fail(error, DB_INVALID, "%.150s: there is no store; check --db", store->path);
    /* Before there is a log, so that the file itself has our id, see sqlite_reflush.c. */
    if (empty && (status = create_schema(store, error)) != DB_OK)
        return status;
    /* Leaving WAL mode needs the file alone. The first sharer does it before it lets others in. */
    status = set_journal_mode(store, shared ? "persist" : "wal", error);
    if (status == DB_OK &&
        conn_exec(conn,
                  "PRAGMA synchronous = %s; PRAGMA cache_size = %d; PRAGMA journal_size_limit = %d;"
                  " PRAGMA secure_delete = OFF; PRAGMA cache_spill = OFF",
                  store->options.sync == DB_SYNC_FULL ? "FULL" : "NORMAL", -SQLITE_WRITER_CACHE_KB,
                  SQLITE_WAL_KEPT_BYTES) != DB_OK)
        status = refuse(store, error);
    /* SQLite opens a log to read if it cannot open it to write, and never tries again. */
    if (status == DB_OK && !shared && conn_exec(conn, "BEGIN IMMEDIATE; ROLLBACK") != DB_OK)
        status = refuse(store, error);
    return status;
}
