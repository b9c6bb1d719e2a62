/*
 * A copy of a store that may be in use. Its connection only reads, and it takes no part in
 * FILE-lock: SQLite lets any number of readers in. All pages are read in one transaction, so they
 * are of one moment; the log keeps what the copy still needs.
 */
#include "schema.h"
#include "sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKUP_BUSY_MS = 10000 };

static db_status fail(const char *file, const char *what, db_error *error)
{
    return db_fail(error, errno == ENOSPC || errno == EDQUOT ? DB_FULL : DB_UNAVAILABLE,
                   "%.150s: cannot be %s: %s", file, what, strerror(errno));
}

/* A store of another version is copied, too: a copy is what one makes before a migration. */
static db_status check_ours(struct conn *conn, const char *path, db_error *error)
{
    int64_t application, wal;
    if (conn_query_int(conn, "PRAGMA application_id", &application) != DB_OK ||
        conn_query_int(conn, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal) != DB_OK)
        return db_fail(error, conn->trouble.status, "%s", conn->trouble.message);
    if (application != SCHEMA_APPLICATION_ID)
        return db_fail(error, DB_INVALID, "%.150s: not a database of this service", path);
    if (!wal) /* its journal may be a killed process's, see sqlite_shared_vfs.c */
        return db_fail(
            error, DB_INVALID,
            "%.120s: a file of several processes (--db-shared); stop them all, then copy "
            "the file itself",
            path);
    return DB_OK;
}

/* The copy is one transaction of its file. If it fails, the file is worthless anyway: no journal.
 */
static db_status copy_pages(struct conn *from, const char *partial, db_error *error)
{
    struct conn to;
    _Atomic uint64_t retries = 0;
    db_status status = conn_open(&to, partial, SQLITE_OPEN_READWRITE, NULL, 0, &retries, error);
    if (status != DB_OK)
        return status;
    int code = SQLITE_ERROR;
    if (conn_exec(&to, "PRAGMA journal_mode = OFF") == DB_OK) {
        sqlite3_backup *backup = sqlite3_backup_init(to.handle, "main", from->handle, "main");
        code = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(to.handle);
        const int end = sqlite3_backup_finish(backup);
        if (code == SQLITE_DONE)
            code = end;
        if (code != SQLITE_OK)
            conn_trouble(&to, code);
    }
    if (to.trouble.status != DB_OK)
        status = db_fail(error, to.trouble.status, "%s", to.trouble.message);
    conn_close(&to);
    return status;
}

/* Puts a file, or a folder, on the disk. */
static int flush(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int result = fsync(fd), why = errno;
    close(fd);
    errno = why;
    return result;
}

/* Gives the copy its name, unless another file has it. */
static db_status give_name(const char *partial, const char *file, db_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    if (flush(partial, O_RDWR) != 0)
        return fail(partial, "flushed", error);
    if (link(partial, file) != 0)
        return fail(file, "made", error);
    return flush(dirname(path), O_RDONLY | O_DIRECTORY) == 0 ? DB_OK : fail(file, "flushed", error);
}

static db_status copy_to(struct conn *from, const char *file, db_error *error)
{
    char partial[PATH_MAX];
    snprintf(partial, sizeof partial, "%s.partial-XXXXXX", file);
    const int fd = mkostemp(partial, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return fail(file, "made", error);
    close(fd);
    db_status status = copy_pages(from, partial, error);
    if (status == DB_OK)
        status = give_name(partial, file, error);
    unlink(partial);
    return status;
}

db_status sqlite_backup(const char *address, const char *file, db_error *error)
{
    struct conn from;
    _Atomic uint64_t retries = 0;
    if (strlen(file) >= PATH_MAX - sizeof ".partial-XXXXXX")
        return db_fail(error, DB_INVALID, "%.60s...: path too long", file);
    if (faccessat(AT_FDCWD, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return db_fail(error, DB_INVALID, "%.150s: exists already; give a new name", file);
    db_status status =
        conn_open(&from, address, SQLITE_OPEN_READONLY, NULL, BACKUP_BUSY_MS, &retries, error);
    if (status != DB_OK)
        return status;
    status = check_ours(&from, address, error);
    if (status == DB_OK)
        status = copy_to(&from, file, error);
    conn_close(&from);
    return status;
}
