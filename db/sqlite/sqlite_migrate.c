/* A store of an older version, moved to this one: see migration.h. */
#include "migration.h"
#include "sqlite.h"

#include <stdio.h>
#include <string.h>

static const char insert_row[] =
    "INSERT INTO ledger (" LEDGER_COLUMNS ") VALUES (" ARGUMENTS(LEDGER_ROW) ")";
static const char rows_without_leg[] =
    "SELECT " LEDGER_COLUMNS " FROM ledger WHERE counterpart LIKE 'shop:%' AND id <= ?1"
    " ORDER BY id";

static sqlite3_stmt *prepare(struct conn *conn, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (conn->trouble.status == DB_OK) {
        const int code = sqlite3_prepare_v2(conn->handle, sql, -1, &statement, NULL);
        if (code != SQLITE_OK)
            conn_trouble(conn, code);
    }
    return statement;
}

/* id 0: the store gives one. */
static db_status insert(struct conn *conn, sqlite3_stmt *statement, const db_ledger_row *row)
{
    struct value values[ROW_COLUMNS_MAX];
    const size_t n = row_values(&row_types[TABLE_LEDGER], row, values);
    for (size_t i = 0; i < n; i++) {
        if (values[i].text)
            sqlite3_bind_text(statement, (int)i + 1, values[i].text, -1, SQLITE_STATIC);
        else if (i + 1 == n && values[i].number == 0)
            sqlite3_bind_null(statement, (int)i + 1);
        else
            sqlite3_bind_int64(statement, (int)i + 1, values[i].number);
    }
    return conn_run(conn, statement);
}

/* Seals each row, in the order of its resource's chain. */
static db_status copy_rows(struct conn *conn, sqlite3_stmt *from, sqlite3_stmt *to,
                           int64_t *ret_last)
{
    db_ledger_row row;
    char chain[DB_HASH_LENGTH + 1] = "", resource[DB_RESOURCE_MAX + 1] = "";
    char step[DB_HASH_LENGTH + 1] = ""; /* what the rows of one version_before follow */
    int64_t epoch = 0, version_before = 0;
    db_status status;
    while ((status = conn_step(conn, from)) == DB_OK) {
        if ((status = conn_row(conn, from, &row_types[TABLE_LEDGER], &row)) != DB_OK)
            break;
        const bool other = strcmp(resource, row.resource) != 0;
        if (other)
            chain[0] = '\0';
        if (other || epoch != row.epoch || version_before != row.version_before)
            memcpy(step, chain, sizeof step);
        memcpy(chain, step, sizeof chain); /* two rows of one version are two heirs: a fork */
        memcpy(resource, row.resource, sizeof resource);
        epoch = row.epoch;
        version_before = row.version_before;
        db_ledger_seal(&row, chain);
        *ret_last = row.id > *ret_last ? row.id : *ret_last;
        if ((status = insert(conn, to, &row)) != DB_OK)
            break;
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

static db_status add_legs(struct conn *conn, sqlite3_stmt *from, sqlite3_stmt *to, int64_t last)
{
    db_ledger_row row, leg;
    db_status status;
    sqlite3_bind_int64(from, 1, last);
    while ((status = conn_step(conn, from)) == DB_OK) {
        if ((status = conn_row(conn, from, &row_types[TABLE_LEDGER], &row)) != DB_OK)
            break;
        db_ledger_shop_leg(&row, &leg);
        if ((status = insert(conn, to, &leg)) != DB_OK)
            break;
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

static db_status copy_ledger(struct conn *conn, const char *old_ledger)
{
    sqlite3_stmt *from = prepare(conn, old_ledger), *to = prepare(conn, insert_row);
    sqlite3_stmt *rows = prepare(conn, rows_without_leg);
    int64_t last = 0;
    db_status status = conn->trouble.status;
    if (status == DB_OK)
        status = copy_rows(conn, from, to, &last);
    if (status == DB_OK)
        status = add_legs(conn, rows, to, last);
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    sqlite3_finalize(rows);
    return status;
}

static db_status change_in_place(struct conn *conn, const struct migration *migration)
{
    return conn_exec(conn,
                     "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; %s PRAGMA user_version = %d;"
                     " COMMIT",
                     migration->in_place, SCHEMA_VERSION);
}

/* The commit is flushed. If anything fails, the transaction ends with the connection. */
static db_status move_rows(struct conn *conn, const struct migration *migration)
{
    db_status status = conn_exec(conn, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; %s %s %s",
                                 migration->set_aside, sqlite_schema_sql, migration->copy);
    if (status == DB_OK)
        status = copy_ledger(conn, migration->copy_ledger);
    if (status == DB_OK)
        status = conn_exec(conn, "%s PRAGMA user_version = %d; COMMIT", migration->finish,
                           SCHEMA_VERSION);
    return status;
}

/* One statement, so it is flushed and whole, or not there. */
static db_status make_index(struct conn *conn, bool *ret_made)
{
    int64_t there;
    db_status status = conn_query_int(
        conn, "SELECT count(*) FROM sqlite_schema WHERE name = '" SCHEMA_REFUSALS "'", &there);
    *ret_made = status == DB_OK && there == 0;
    return *ret_made ? conn_exec(conn, "PRAGMA synchronous = FULL; %s", schema_refusals_sql)
                     : status;
}

static db_status migrate(struct conn *conn, const char *path, db_versions *ret, db_error *error)
{
    int64_t application, version;
    db_status status = DB_OK;
    if (conn_query_int(conn, "PRAGMA application_id", &application) != DB_OK ||
        conn_query_int(conn, "PRAGMA user_version", &version) != DB_OK)
        return db_fail(error, conn->trouble.status, "%s", conn->trouble.message);
    if (application != SCHEMA_APPLICATION_ID)
        return db_fail(error, DB_INVALID, "%.150s: not a database of this service", path);
    ret->from = version;
    const struct migration *migration = sqlite_migration(version);
    if (migration == NULL && version != SCHEMA_VERSION)
        return db_fail(error, DB_INVALID, "%.120s: schema version %lld; this program knows 1 to %d",
                       path, (long long)version, SCHEMA_VERSION);
    if (migration != NULL && migration->in_place != NULL)
        status = change_in_place(conn, migration);
    else if (migration != NULL)
        status = move_rows(conn, migration);
    if (status == DB_OK && (migration == NULL || migration->in_place != NULL))
        status = make_index(conn, &ret->index_made);
    return status == DB_OK ? DB_OK
                           : db_fail(error, conn->trouble.status, "%s", conn->trouble.message);
}

db_status sqlite_migrate(const char *address, db_versions *ret, db_error *error)
{
    struct conn conn;
    struct file_lock lock;
    _Atomic uint64_t retries = 0;
    char path[PATH_MAX];
    bool alone;
    db_status status = conn_open(&conn, address, SQLITE_OPEN_READWRITE, NULL, SQLITE_SHARED_OPEN_MS,
                                 &retries, error);
    if (status != DB_OK)
        return status;
    snprintf(path, sizeof path, "%s", sqlite3_db_filename(conn.handle, "main"));
    status = file_lock_open(&lock, path, false, &alone, error);
    if (status == DB_OK) {
        if ((status = reflush_file(&conn, path, error)) == DB_OK)
            status = migrate(&conn, path, ret, error);
        conn_close(&conn); /* before another process may open the file */
        file_lock_close(&lock);
        return status;
    }
    conn_close(&conn);
    return status;
}
