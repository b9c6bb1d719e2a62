#include "archive_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { APPLICATION_ID = 0x5ec1a8c4, VERSION = 1, BUSY_MS = 10000 };

#define DECLARED_TEXT       " TEXT"
#define DECLARED_INT        " INTEGER"
#define DECLARED_KIND       " TEXT"
#define DECLARE(kind, name) ", " #name DECLARED_##kind " NOT NULL"

/* seq: the order in which rows left the store, which is that of its feed. */
static const char tables[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE parts (part INTEGER PRIMARY KEY, before_us INTEGER NOT NULL,"
    " last_transaction INTEGER NOT NULL, last_id INTEGER NOT NULL, n INTEGER NOT NULL,"
    " digest TEXT NOT NULL) STRICT;"
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, part INTEGER NOT NULL" LEDGER_ROW(
        DECLARE,
        DECLARE) ") STRICT;"
                 "CREATE UNIQUE INDEX ledger_id ON ledger(id);"
                 "CREATE INDEX ledger_part ON ledger(part, seq);"
                 "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before, id);"
                 "CREATE INDEX ledger_txn ON ledger(txn_id, seq);";

static db_status fail(struct archive_file *file, db_status status, const char *why)
{
    if (file->error.status == DB_OK)
        db_fail(&file->error, status, "%.150s: %s", file->path, why);
    return file->error.status;
}

static db_status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return DB_FULL;
    case SQLITE_BUSY:
        return DB_BUSY;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return DB_UNAVAILABLE;
    case SQLITE_NOTADB:
        return DB_INVALID;
    default:
        return DB_FAILED;
    }
}

static db_status fail_in_sqlite(struct archive_file *file, int code)
{
    return fail(file, status_of(code), sqlite3_errmsg(file->handle));
}

/* -- statements ------------------------------------------------------------------------------- */

static sqlite3_stmt *prepare(struct archive_file *file, const char *sql, const struct value *args,
                             size_t n)
{
    sqlite3_stmt *statement = NULL;
    if (file->error.status != DB_OK)
        return NULL;
    const int code = sqlite3_prepare_v2(file->handle, sql, -1, &statement, NULL);
    if (code != SQLITE_OK) {
        fail_in_sqlite(file, code);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (args[i].text)
            sqlite3_bind_text(statement, (int)i + 1, args[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(statement, (int)i + 1, args[i].number);
    }
    return statement;
}

static bool has_row(struct archive_file *file, sqlite3_stmt *statement)
{
    const int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        fail_in_sqlite(file, code);
    return code == SQLITE_ROW;
}

db_status archive_run(struct archive_file *file, const char *sql, const struct value *args,
                      size_t n)
{
    sqlite3_stmt *statement = prepare(file, sql, args, n);
    if (statement != NULL)
        has_row(file, statement);
    sqlite3_finalize(statement);
    return file->error.status;
}

static bool take_row(sqlite3_stmt *statement, const struct row_type *type, struct any_row *ret)
{
    for (size_t i = 0; i < type->n; i++) {
        const struct column *column = &type->columns[i];
        if (column_is_text(column)) {
            const char *text = (const char *)sqlite3_column_text(statement, (int)i);
            const size_t length = (size_t)sqlite3_column_bytes(statement, (int)i);
            if (text == NULL || !row_take_text(column, ret, text, length))
                return false;
        } else if (!row_take_number(column, ret, sqlite3_column_int64(statement, (int)i))) {
            return false;
        }
    }
    return true;
}

db_status archive_rows(struct archive_file *file, const struct row_type *type, const char *sql,
                       const struct value *args, size_t n, int (*each)(void *arg, const void *row),
                       void *arg)
{
    struct any_row row = {{0}};
    sqlite3_stmt *statement = prepare(file, sql, args, n);
    while (statement != NULL && has_row(file, statement)) {
        if (!take_row(statement, type, &row)) {
            fail(file, DB_FAILED, "a row cannot be read: the file is damaged");
            break;
        }
        if (each(arg, row.bytes) != 0)
            break;
    }
    sqlite3_finalize(statement);
    return file->error.status;
}

db_status archive_number(struct archive_file *file, const char *sql, const struct value *args,
                         size_t n, int64_t *ret)
{
    sqlite3_stmt *statement = prepare(file, sql, args, n);
    *ret = 0;
    if (statement != NULL && has_row(file, statement))
        *ret = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return file->error.status;
}

/* -- the file --------------------------------------------------------------------------------- */

static db_status flush(struct archive_file *file, const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC);
    const bool flushed = fd >= 0 && fsync(fd) == 0;
    if (!flushed)
        fail(file, errno == ENOSPC ? DB_FULL : DB_FAILED, strerror(errno));
    if (fd >= 0)
        close(fd);
    return file->error.status;
}

db_status archive_flush(struct archive_file *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file->path);
    if (flush(file, file->path, O_RDWR) == DB_OK)
        flush(file, dirname(path), O_RDONLY | O_DIRECTORY);
    return file->error.status;
}

db_status archive_commit(struct archive_file *file)
{
    archive_run(file, "COMMIT", NULL, 0);
    return file->error.status == DB_OK ? archive_flush(file) : file->error.status;
}

/* A SQLite store has such files beside it. */
static bool is_beside_a_store(const char *path)
{
    static const char *const ends[] = {"-lock", "-wal", "-shm", "-journal"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (length >= strlen(ends[i]) && strcmp(path + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* SQLite would make it readable to others. */
static db_status make(struct archive_file *file)
{
    const int fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return fail(file, errno == ENOSPC ? DB_FULL : DB_UNAVAILABLE, strerror(errno));
    if (fd >= 0)
        close(fd);
    return DB_OK;
}

static db_status check(struct archive_file *file, bool write)
{
    char sql[128];
    int64_t application = 0, version = 0, objects = 0;
    archive_number(file, "PRAGMA application_id", NULL, 0, &application);
    archive_number(file, "PRAGMA user_version", NULL, 0, &version);
    archive_number(file, "SELECT count(*) FROM sqlite_schema", NULL, 0, &objects);
    if (file->error.status != DB_OK)
        return file->error.status;
    if (application == APPLICATION_ID && version == VERSION)
        return DB_OK;
    if (application == APPLICATION_ID)
        return fail(file, DB_INVALID, "an archive of another version of this program");
    if (application != 0 || objects != 0 || !write)
        return fail(file, DB_INVALID, "not an archive of this service");
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             APPLICATION_ID, VERSION);
    int code = sqlite3_exec(file->handle, tables, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(file->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? archive_flush(file) : fail_in_sqlite(file, code);
}

/* What holds a commit of the file is its rollback journal, which is flushed, too. */
db_status archive_open(struct archive_file *file, const char *path, bool write)
{
    *file = (struct archive_file){.path = path};
    if (path[0] == '\0' || strlen(path) >= PATH_MAX - sizeof "-journal")
        return fail(file, DB_INVALID, "give the name of the archive file");
    if (is_beside_a_store(path))
        return fail(file, DB_INVALID, "a store has a file of such a name beside it; give another");
    if (write && make(file) != DB_OK)
        return file->error.status;
    /* To write, too, when it is only read: a killed process may have left its journal. */
    const int code =
        sqlite3_open_v2(path, &file->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return fail(file, status_of(code), sqlite3_errstr(code));
    sqlite3_extended_result_codes(file->handle, 1);
    sqlite3_busy_timeout(file->handle, BUSY_MS);
    if (write)
        archive_run(file, "PRAGMA synchronous = EXTRA", NULL, 0);
    return check(file, write);
}

/* A transaction that is open is undone. */
void archive_close(struct archive_file *file)
{
    sqlite3_close(file->handle);
    file->handle = NULL;
}
