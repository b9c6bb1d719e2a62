/*
 * A shared file. If a process is killed within a commit, the others flush its journal before they
 * read. At a start sqlite_reflush.c does the same.
 *
 * Byte 0 of FILE-lock's content is the mark. The holder of the exclusive lock sets it before the
 * first flush of a commit. It clears the mark when SQLite says that all of the commit is flushed
 * (SQLITE_FCNTL_COMMIT_PHASETWO), while it still holds the lock. The kernel drops the locks of a
 * process that ends, but not its mark. Invariant: if the holder of a shared lock finds the mark, no
 * process is within a commit, and the last commit was not finished.
 *
 * That holder then flushes the journal before SQLite looks at it:
 *   - It takes byte 2 of FILE-lock, and looks at the mark again. So one process at a time flushes,
 *     and none begins to once the mark is cleared.
 *   - It takes the reserved lock, so that no process writes a journal meanwhile.
 *   - It drops that lock before it clears the mark. While a process has the reserved lock, SQLite
 *     takes a journal for one in use, not for one to roll back.
 *   - No process can set the mark between the two: the shared lock keeps the exclusive one out.
 *
 * Byte 3 is locked by the connection whose transaction writes. By it a reader knows whether the
 * journal is in use. SQLite's own question (xCheckReservedLock) also takes for a writer: a flusher,
 * and a connection of this process that asks for the exclusive lock to roll back. A reader that
 * believed so would read half of the unfinished commit.
 *
 * A journal that cannot be written over itself (no room, no descriptor) leaves the mark, and no
 * read and no write goes on. The next one tries again.
 *
 * A rollback leaves the mark: the next process flushes once more than needed. The mark need not
 * survive a power cut: the first process after it flushes at its start.
 *
 * A VFS over the default one, for database files only; see https://sqlite.org/vfs.html.
 */
#include "sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct marked_file {
    sqlite3_file base;
    const char *path;                    /* the database, as SQLite passed it */
    int fd;                              /* of FILE-lock */
    int level;                           /* SQLITE_LOCK_*, as SQLite knows it */
    _Alignas(sqlite3_int64) char real[]; /* aligned as SQLite aligns a VFS's file */
};

static sqlite3_file *real_file(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((struct marked_file *)file)->real;
}

/* Calls the real file's method. */
#define ON_FILE(file, method, ...) real_file(file)->pMethods->method(real_file(file), __VA_ARGS__)

/* -- the mark --------------------------------------------------------------------------------- */

static int put_mark(const struct marked_file *file, char mark)
{
    return pwrite(file->fd, &mark, 1, 0) == 1 ? SQLITE_OK : SQLITE_IOERR_LOCK;
}

static int get_mark(const struct marked_file *file, bool *ret)
{
    char mark = 0;
    if (pread(file->fd, &mark, 1, 0) < 0)
        return SQLITE_IOERR_LOCK;
    *ret = mark != 0;
    return SQLITE_OK;
}

/* Takes or gives back the lock on a byte of FILE-lock. */
static int lock_byte(const struct marked_file *file, int byte, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    if (fcntl(file->fd, F_OFD_SETLK, &range) == 0)
        return SQLITE_OK;
    return errno == EAGAIN || errno == EACCES ? SQLITE_BUSY : SQLITE_IOERR_LOCK;
}

/* The caller has a shared lock, has found the mark, and is the only flusher. */
static int reflush_alone(struct marked_file *file)
{
    int code = ON_FILE(&file->base, xLock, SQLITE_LOCK_RESERVED);
    if (code != SQLITE_OK)
        return code;
    const int flushed = reflush_journal(file->path);
    code = ON_FILE(&file->base, xUnlock, SQLITE_LOCK_SHARED);
    if (flushed != SQLITE_OK)
        return flushed;
    return code == SQLITE_OK ? put_mark(file, 0) : code;
}

static int reflush(struct marked_file *file)
{
    bool marked = false;
    int code = lock_byte(file, FILE_LOCK_FLUSHER, F_WRLCK);
    if (code != SQLITE_OK)
        return code;
    code = get_mark(file, &marked);
    if (code == SQLITE_OK && marked)
        code = reflush_alone(file);
    lock_byte(file, FILE_LOCK_FLUSHER, F_UNLCK);
    return code;
}

static int lock_shared(struct marked_file *file)
{
    bool marked = false;
    int code = ON_FILE(&file->base, xLock, SQLITE_LOCK_SHARED);
    if (code != SQLITE_OK)
        return code;
    code = get_mark(file, &marked);
    if (code == SQLITE_OK && marked)
        code = reflush(file);
    if (code != SQLITE_OK)
        ON_FILE(&file->base, xUnlock, SQLITE_LOCK_NONE);
    return code;
}

/* If the mark cannot be set, SQLite gets an error instead of the lock. It unlocks nevertheless. */
static int mark_lock(sqlite3_file *base, int level)
{
    struct marked_file *file = (struct marked_file *)base;
    int code;
    if (file->level >= level)
        return SQLITE_OK;
    if (file->level == SQLITE_LOCK_NONE)
        code = lock_shared(file);
    else
        code = ON_FILE(base, xLock, level);
    if (code == SQLITE_OK && level == SQLITE_LOCK_RESERVED)
        code = lock_byte(file, FILE_LOCK_WRITER, F_WRLCK);
    if (code == SQLITE_OK && level == SQLITE_LOCK_EXCLUSIVE)
        code = put_mark(file, 1);
    if (code == SQLITE_OK)
        file->level = level;
    return code;
}

static int mark_unlock(sqlite3_file *base, int level)
{
    struct marked_file *file = (struct marked_file *)base;
    if (file->level > level)
        file->level = level;
    if (level < SQLITE_LOCK_RESERVED)
        lock_byte(file, FILE_LOCK_WRITER, F_UNLCK);
    return ON_FILE(base, xUnlock, level);
}

static int mark_control(sqlite3_file *file, int op, void *arg)
{
    struct marked_file *marked = (struct marked_file *)file;
    if (op == SQLITE_FCNTL_COMMIT_PHASETWO && marked->level == SQLITE_LOCK_EXCLUSIVE)
        put_mark(marked, 0); /* if this fails, the next process flushes once more */
    return ON_FILE(file, xFileControl, op, arg);
}

/* -- the rest --------------------------------------------------------------------------------- */

static int mark_close(sqlite3_file *file)
{
    close(((struct marked_file *)file)->fd);
    return real_file(file)->pMethods->xClose(real_file(file));
}

static int mark_read(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
    return ON_FILE(file, xRead, ret, n, at);
}

static int mark_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    return ON_FILE(file, xWrite, data, n, at);
}

static int mark_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return ON_FILE(file, xTruncate, size);
}

static int mark_sync(sqlite3_file *file, int flags)
{
    return ON_FILE(file, xSync, flags);
}

static int mark_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return ON_FILE(file, xFileSize, ret);
}

/* Whether a transaction writes, so that the journal is in use. Both locks say so: when a process
 * ends, the kernel drops one a moment before the other. */
static int mark_check_lock(sqlite3_file *base, int *ret)
{
    struct marked_file *file = (struct marked_file *)base;
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = FILE_LOCK_WRITER, .l_len = 1};
    if (fcntl(file->fd, F_OFD_GETLK, &range) != 0)
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *ret = 0;
    if (file->level < SQLITE_LOCK_RESERVED && range.l_type == F_UNLCK)
        return SQLITE_OK;
    return ON_FILE(base, xCheckReservedLock, ret);
}

static int mark_sector(sqlite3_file *file)
{
    return real_file(file)->pMethods->xSectorSize(real_file(file));
}

static int mark_device(sqlite3_file *file)
{
    return real_file(file)->pMethods->xDeviceCharacteristics(real_file(file));
}

static int mark_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return ON_FILE(file, xShmMap, page, size, extend, ret);
}

static int mark_map_lock(sqlite3_file *file, int first, int n, int flags)
{
    return ON_FILE(file, xShmLock, first, n, flags);
}

static void mark_barrier(sqlite3_file *file)
{
    real_file(file)->pMethods->xShmBarrier(real_file(file));
}

static int mark_unmap(sqlite3_file *file, int remove)
{
    return ON_FILE(file, xShmUnmap, remove);
}

static int open_database(sqlite3_vfs *real, const char *path, struct marked_file *marked, int flags,
                         int *ret_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = mark_close,
        .xRead = mark_read,
        .xWrite = mark_write,
        .xTruncate = mark_truncate,
        .xSync = mark_sync,
        .xFileSize = mark_size,
        .xLock = mark_lock,
        .xUnlock = mark_unlock,
        .xCheckReservedLock = mark_check_lock,
        .xFileControl = mark_control,
        .xSectorSize = mark_sector,
        .xDeviceCharacteristics = mark_device,
        .xShmMap = mark_map, /* for a file that leaves WAL mode */
        .xShmLock = mark_map_lock,
        .xShmBarrier = mark_barrier,
        .xShmUnmap = mark_unmap,
    };
    char name[PATH_MAX + 8];
    sqlite3_file *file = real_file(&marked->base);
    marked->base.pMethods = NULL; /* nothing to close */
    marked->path = path;
    marked->level = SQLITE_LOCK_NONE;
    int code = real->xOpen(real, path, file, flags, ret_flags);
    if (code != SQLITE_OK)
        return code; /* SQLite's own VFS closes a file that it could not open */
    snprintf(name, sizeof name, "%s-lock", path);
    marked->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (marked->fd < 0) {
        file->pMethods->xClose(file);
        return SQLITE_CANTOPEN;
    }
    marked->base.pMethods = &methods;
    return SQLITE_OK;
}

static int open_any(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (flags & SQLITE_OPEN_MAIN_DB)
        return open_database(real, name, (struct marked_file *)file, flags, ret_flags);
    return real->xOpen(real, name, file, flags, ret_flags);
}

static sqlite3_vfs marking;
static void install(void)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    marking = *real; /* only xOpen differs */
    marking.zName = "marked-commits";
    marking.szOsFile = (int)sizeof(struct marked_file) + real->szOsFile;
    marking.pAppData = real;
    marking.xOpen = open_any;
    sqlite3_vfs_register(&marking, 0); /* if this fails, sqlite3_open_v2() fails */
}

const char *commit_marking_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return marking.zName;
}
