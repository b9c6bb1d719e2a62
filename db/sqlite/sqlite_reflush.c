/*
 * Puts on the disk what an earlier process left in the log or the journal, before SQLite reads it.
 *
 * SQLite trusts both files as it reads them, which may be from the kernel's cache. After an
 * abnormal end the disk may have less:
 *
 *   - The process was killed between the write of a commit and its flush. The next process would
 *     report that commit although a power cut can still undo it.
 *   - A flush failed, and the kernel marked pages clean that it could not write
 *     (https://wiki.postgresql.org/wiki/Fsync_Errors). They are never written again, and a later
 *     flush finds nothing to do. The next process would append behind them. After a power cut
 *     recovery ends at the gap, and all later commits are lost. A journal with such a gap would
 *     undo all or half of a commit that was already answered.
 *
 * So each file is read, written over itself and flushed. Then the disk has what the cache has. The
 * process holds FILE-lock alone, so no other one writes meanwhile. For a file that other processes
 * use at the same time see sqlite_shared_vfs.c.
 */
#include "schema.h"
#include "sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 * 1024, APPLICATION_ID_AT = 68 };

/* Writes a file over itself. Returns SQLite's code; *ret_step: what it was at ("cannot be ..."). */
static int write_over(sqlite3_file *file, char *chunk, const char **ret_step)
{
    sqlite3_int64 size = 0;
    *ret_step = "measured";
    int code = file->pMethods->xFileSize(file, &size);
    for (sqlite3_int64 at = 0; code == SQLITE_OK && at < size; at += CHUNK) {
        const int n = size - at < CHUNK ? (int)(size - at) : CHUNK;
        *ret_step = "read";
        code = file->pMethods->xRead(file, chunk, n, at);
        if (code != SQLITE_OK)
            break;
        *ret_step = "written";
        code = file->pMethods->xWrite(file, chunk, n, at);
    }
    if (code != SQLITE_OK)
        return code;
    *ret_step = "flushed";
    return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

/* The file exists. SQLITE_OPEN_CREATE makes SQLite flush its folder with it. Returns as
 * write_over(). */
static int reflush_one(const char *path, const char *suffix, int type, const char **ret_step)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    char name[PATH_MAX + 16];
    int there = 0;
    sqlite3_snprintf(sizeof name, name, "%s%s", path, suffix);
    *ret_step = "looked for";
    int code = vfs->xAccess(vfs, name, SQLITE_ACCESS_EXISTS, &there);
    if (code != SQLITE_OK || !there) /* missing or empty */
        return code;
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    char *chunk = malloc(CHUNK);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | type;
    *ret_step = "opened to write";
    code =
        file == NULL || chunk == NULL ? SQLITE_NOMEM : vfs->xOpen(vfs, name, file, flags, &flags);
    if (code == SQLITE_OK)
        code = flags & SQLITE_OPEN_READWRITE ? write_over(file, chunk, ret_step) : SQLITE_READONLY;
    if (file != NULL && file->pMethods != NULL)
        file->pMethods->xClose(file);
    free(chunk);
    free(file);
    return code;
}

static db_status reflush_or_tell(const char *path, const char *suffix, int type, db_error *error)
{
    const char *step;
    const int code = reflush_one(path, suffix, type, &step);
    if (code == SQLITE_OK)
        return DB_OK;
    if (code == SQLITE_NOMEM)
        return db_fail(error, DB_FAILED, "out of memory");
    return db_fail(error, DB_UNAVAILABLE,
                   "%.120s%s: cannot be %s: look at the disk, then start again", path, suffix,
                   step);
}

/* Reads the application id from the file itself, not from its log: another program's log is not
 * touched. A file of ours has it, as setup_file() creates the schema before there is a log. */
static bool is_ours(struct conn *conn)
{
    unsigned char id[4];
    sqlite3_file *file;
    int code = sqlite3_file_control(conn->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK || file->pMethods->xRead(file, id, 4, APPLICATION_ID_AT) != SQLITE_OK)
        return false;
    return ((uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3]) ==
           SCHEMA_APPLICATION_ID;
}

int reflush_journal(const char *path)
{
    const char *step;
    return reflush_one(path, "-journal", SQLITE_OPEN_MAIN_JOURNAL, &step);
}

db_status reflush_file(struct conn *conn, const char *path, db_error *error)
{
    if (!is_ours(conn))
        return DB_OK;
    db_status status = reflush_or_tell(path, "-wal", SQLITE_OPEN_WAL, error);
    return status == DB_OK ? reflush_or_tell(path, "-journal", SQLITE_OPEN_MAIN_JOURNAL, error)
                           : status;
}
