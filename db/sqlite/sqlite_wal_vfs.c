/*
 * Gathers the writes of the log. SQLite writes each frame of the log with two calls, its header and
 * its page. The commit of one order takes about nineteen calls. Here consecutive writes are kept
 * and written with one call: at the last frame of a commit, which its header marks
 * (https://sqlite.org/fileformat2.html#the_write_ahead_log), or before the log is flushed, read,
 * measured or cut.
 *
 * Kept frames do no harm:
 *   - The writing connection uses this file, which writes them before it reads.
 *   - Other connections read only frames below the mark in shared memory. SQLite moves that mark
 *     after the last frame (sqlite3WalFrames: frames, flush if any, walIndexWriteHdr).
 *   - No frame is kept after its transaction, so none is written over another's. Only a commit
 *     writes frames, because of cache_spill=OFF (sqlite_setup.c).
 *   - After a crash the log has no frames of an unflushed commit, as is possible without this VFS.
 *
 * A VFS over the default one, for log files only; see https://sqlite.org/vfs.html.
 */
#include "sqlite.h"

#include <stdlib.h>
#include <string.h>

/* 31 frames of 4096 + 24 bytes; a larger commit takes a few writes. SQLite's unix VFS writes less
 * than 128 KiB in one call: it masks the length. */
enum { ROOM = 31 * 4120, FRAME_HEADER = 24 };

struct log_file {
    sqlite3_file base;
    char *kept; /* ROOM bytes */
    int n_kept;
    sqlite3_int64 at;                    /* of kept, in the file */
    bool ends;                           /* the last header is that of a commit's last frame */
    _Alignas(sqlite3_int64) char real[]; /* aligned as SQLite aligns a VFS's file */
};

static sqlite3_file *real_file(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((struct log_file *)file)->real;
}

/* An error loses the kept frames: SQLite undoes their transaction. */
static int write_kept(struct log_file *log)
{
    const int n = log->n_kept;
    sqlite3_file *real = real_file(&log->base);
    log->n_kept = 0;
    return n == 0 ? SQLITE_OK : real->pMethods->xWrite(real, log->kept, n, log->at);
}

/* The header of a commit's last frame has the size of the database, in pages, in bytes 4 to 7.
 * Other headers have 0 there. */
static bool is_last_header(const void *data, int n)
{
    static const char none[4];
    return n == FRAME_HEADER && memcmp((const char *)data + 4, none, sizeof none) != 0;
}

static int log_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    struct log_file *log = (struct log_file *)file;
    const bool ends = log->ends; /* this page ends the commit */
    log->ends = is_last_header(data, n);
    if (at != log->at + log->n_kept || n > ROOM - log->n_kept) {
        int code = write_kept(log);
        if (code != SQLITE_OK)
            return code;
        log->at = at;
    }
    if (n > ROOM)
        return real_file(file)->pMethods->xWrite(real_file(file), data, n, at);
    memcpy(log->kept + log->n_kept, data, (size_t)n);
    log->n_kept += n;
    return ends ? write_kept(log) : SQLITE_OK;
}

/* Writes the kept frames, then calls the real file's method. */
#define AFTER_WRITING(file, method, ...)                                                           \
    int code = write_kept((struct log_file *)(file));                                              \
    return code != SQLITE_OK ? code                                                                \
                             : real_file(file)->pMethods->method(real_file(file), __VA_ARGS__)

static int log_sync(sqlite3_file *file, int flags)
{
    AFTER_WRITING(file, xSync, flags);
}

static int log_read(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
    AFTER_WRITING(file, xRead, ret, n, at);
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    AFTER_WRITING(file, xTruncate, size);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    AFTER_WRITING(file, xFileSize, ret);
}

static int log_control(sqlite3_file *file, int op, void *arg)
{
    AFTER_WRITING(file, xFileControl, op, arg);
}

static int log_close(sqlite3_file *file)
{
    struct log_file *log = (struct log_file *)file;
    int written = write_kept(log), closed = real_file(file)->pMethods->xClose(real_file(file));
    free(log->kept);
    return written != SQLITE_OK ? written : closed;
}

/* SQLite locks the database file, not the log. */
static int log_lock(sqlite3_file *file, int level)
{
    return real_file(file)->pMethods->xLock(real_file(file), level);
}

static int log_unlock(sqlite3_file *file, int level)
{
    return real_file(file)->pMethods->xUnlock(real_file(file), level);
}

static int log_check_lock(sqlite3_file *file, int *ret)
{
    return real_file(file)->pMethods->xCheckReservedLock(real_file(file), ret);
}

static int log_sector(sqlite3_file *file)
{
    return real_file(file)->pMethods->xSectorSize(real_file(file));
}

/* The default on Unix. Without this property SQLite writes padding after the flush. */
static int log_device(sqlite3_file *file)
{
    return real_file(file)->pMethods->xDeviceCharacteristics(real_file(file)) |
           SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int open_log(sqlite3_vfs *real, const char *name, struct log_file *log, int flags,
                    int *ret_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 1,
        .xClose = log_close,
        .xRead = log_read,
        .xWrite = log_write,
        .xTruncate = log_truncate,
        .xSync = log_sync,
        .xFileSize = log_size,
        .xLock = log_lock,
        .xUnlock = log_unlock,
        .xCheckReservedLock = log_check_lock,
        .xFileControl = log_control,
        .xSectorSize = log_sector,
        .xDeviceCharacteristics = log_device,
    };
    sqlite3_file *file = real_file(&log->base);
    log->base.pMethods = NULL; /* nothing to close */
    log->n_kept = 0;
    log->at = 0;
    log->ends = false;
    if ((log->kept = malloc(ROOM)) == NULL)
        return SQLITE_NOMEM;
    int code = real->xOpen(real, name, file, flags, ret_flags);
    if (file->pMethods)
        log->base.pMethods = &methods;
    else
        free(log->kept);
    return code;
}

static int open_any(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (flags & SQLITE_OPEN_WAL)
        return open_log(real, name, (struct log_file *)file, flags, ret_flags);
    return real->xOpen(real, name, file, flags, ret_flags);
}

static sqlite3_vfs gathering;
static int registered;

static void install(void)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    gathering = *real; /* only xOpen differs */
    gathering.zName = "gathered-log";
    gathering.szOsFile = (int)sizeof(struct log_file) + real->szOsFile;
    gathering.pAppData = real;
    gathering.xOpen = open_any;
    registered = sqlite3_vfs_register(&gathering, 0);
}

const char *log_gathering_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return registered == SQLITE_OK ? gathering.zName : NULL;
}
