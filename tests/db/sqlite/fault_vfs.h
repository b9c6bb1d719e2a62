/*
 * A file system below SQLite. Its Nth write, flush or truncation fails or kills the process, before
 * or after it took effect. Modelled on SQLite's own test_syscall.c and test_vfs.c.
 *
 * fault_install() makes it the default for all connections opened later. The store's threads write
 * and flush at any time, so every variable that a test changes is atomic.
 */
#ifndef TESTS_DB_FAULT_VFS_H
#define TESTS_DB_FAULT_VFS_H

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum fault_kind { FAULT_IO, FAULT_FULL, FAULT_KILL };

struct fault_plan {
    enum fault_kind kind;
    bool after;         /* the call takes effect, then reports an error */
    bool sticky;        /* lasts until fault_heal() */
    bool database_only; /* not log or journal: in WAL mode only checkpoints */
};

static _Atomic struct fault_plan fault_plan;
static atomic_int fault_countdown; /* 0: no fault planned; 1: the next call fails */
static atomic_int fault_fired;

/* Called at each write and flush, on the calling thread. flags: the file's SQLITE_OPEN_ flags. */
enum fault_event { FAULT_WRITES, FAULT_FLUSHES, FAULT_FLUSHED };
static void (*_Atomic fault_watch)(enum fault_event event, int flags, sqlite3_int64 at);

/* Sets the plan before the count that makes it due. */
static inline void fault_arm(struct fault_plan plan, int n)
{
    atomic_store(&fault_countdown, 0);
    atomic_store(&fault_plan, plan);
    atomic_store(&fault_fired, 0);
    atomic_store(&fault_countdown, n);
}

static inline void fault_heal(void)
{
    atomic_store(&fault_countdown, 0);
}

struct fault_file {
    sqlite3_file base;
    int flags;
    /* the real file follows */
};

static inline sqlite3_file *fault_real(sqlite3_file *file)
{
    return (sqlite3_file *)((struct fault_file *)file + 1);
}

#define REAL(file, method, ...) fault_real(file)->pMethods->method(fault_real(file), ##__VA_ARGS__)

/* True if this call must fail, as *ret_plan says. */
static inline bool fault_due(sqlite3_file *file, bool flush, struct fault_plan *ret_plan)
{
    int left = atomic_load(&fault_countdown);
    if (left == 0)
        return false;
    struct fault_plan plan = *ret_plan = atomic_load(&fault_plan);
    if (plan.database_only && !(((struct fault_file *)file)->flags & SQLITE_OPEN_MAIN_DB))
        return false;
    if (flush && plan.kind == FAULT_FULL) /* a full disk fails only writes */
        return false;
    while (left > 0) {
        int next = left == 1 && plan.sticky ? 1 : left - 1;
        if (atomic_compare_exchange_weak(&fault_countdown, &left, next)) {
            if (left == 1)
                atomic_fetch_add(&fault_fired, 1);
            return left == 1;
        }
    }
    return false;
}

static inline int fault_result(enum fault_kind kind, int io_code)
{
    if (kind == FAULT_KILL)
        raise(SIGKILL);
    return kind == FAULT_FULL ? SQLITE_FULL : io_code;
}

/* -- calls that may fail ------------------------------------------------------------------------
 */

static inline void fault_tell(enum fault_event event, sqlite3_file *file, sqlite3_int64 at)
{
    void (*watch)(enum fault_event, int, sqlite3_int64) = atomic_load(&fault_watch);
    if (watch)
        watch(event, ((struct fault_file *)file)->flags, at);
}

static int fault_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    fault_tell(FAULT_WRITES, file, at);
    struct fault_plan plan;
    bool due = fault_due(file, false, &plan);
    if (due && !plan.after)
        return fault_result(plan.kind, SQLITE_IOERR_WRITE);
    int code = REAL(file, xWrite, data, n, at);
    return due ? fault_result(plan.kind, SQLITE_IOERR_WRITE) : code;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct fault_plan plan;
    bool due = fault_due(file, false, &plan);
    if (due && !plan.after)
        return fault_result(plan.kind, SQLITE_IOERR_TRUNCATE);
    int code = REAL(file, xTruncate, size);
    return due ? fault_result(plan.kind, SQLITE_IOERR_TRUNCATE) : code;
}

static int fault_sync(sqlite3_file *file, int flags)
{
    fault_tell(FAULT_FLUSHES, file, 0);
    struct fault_plan plan;
    bool due = fault_due(file, true, &plan);
    if (due && !plan.after)
        return fault_result(plan.kind, SQLITE_IOERR_FSYNC);
    int code = REAL(file, xSync, flags);
    if (code == SQLITE_OK)
        fault_tell(FAULT_FLUSHED, file, 0);
    return due ? fault_result(plan.kind, SQLITE_IOERR_FSYNC) : code;
}

/* -- calls that are passed on -------------------------------------------------------------------
 */

static int fault_close(sqlite3_file *file)
{
    return REAL(file, xClose);
}

static int fault_read(sqlite3_file *file, void *data, int n, sqlite3_int64 at)
{
    return REAL(file, xRead, data, n, at);
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return REAL(file, xFileSize, ret);
}

static int fault_lock(sqlite3_file *file, int level)
{
    return REAL(file, xLock, level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    return REAL(file, xUnlock, level);
}

static int fault_check_lock(sqlite3_file *file, int *ret)
{
    return REAL(file, xCheckReservedLock, ret);
}

static int fault_control(sqlite3_file *file, int op, void *arg)
{
    return REAL(file, xFileControl, op, arg);
}

static int fault_sector(sqlite3_file *file)
{
    return REAL(file, xSectorSize);
}

static int fault_device(sqlite3_file *file)
{
    return REAL(file, xDeviceCharacteristics);
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return REAL(file, xShmMap, page, size, extend, ret);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return REAL(file, xShmLock, offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *file)
{
    REAL(file, xShmBarrier);
}

static int fault_shm_unmap(sqlite3_file *file, int delete)
{
    return REAL(file, xShmUnmap, delete);
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_size,
        .xLock = fault_lock,
        .xUnlock = fault_unlock,
        .xCheckReservedLock = fault_check_lock,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector,
        .xDeviceCharacteristics = fault_device,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
    };
    sqlite3_vfs *real = vfs->pAppData;
    ((struct fault_file *)file)->flags = flags;
    int code = real->xOpen(real, name, fault_real(file), flags, ret_flags);
    file->pMethods = fault_real(file)->pMethods ? &methods : NULL;
    return code;
}

static inline int fault_install(void)
{
    static sqlite3_vfs vfs;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    vfs = *real; /* only opening differs from the real VFS */
    vfs.zName = "fault";
    vfs.szOsFile = (int)sizeof(struct fault_file) + real->szOsFile;
    vfs.pAppData = real;
    vfs.xOpen = fault_open;
    return sqlite3_vfs_register(&vfs, 1);
}

#endif
