/*
 * SQLite's file system over power_disk.h, with faults: the process is killed at any write or flush,
 * flushes fail, the power fails.
 *
 * A kill is simulated by a freeze: from then on no call has an effect, so closing the store does
 * not change the files. power_thaw() starts the next process.
 *
 * power_install() makes it the default. Databases, logs and journals are in memory; temporary files
 * use the real VFS. Only the database named power.victim has faults.
 *
 * The store's threads write and flush at any time, so each member of power is atomic.
 */
#ifndef TESTS_DB_POWER_VFS_H
#define TESTS_DB_POWER_VFS_H

#include "power_locks.h"

#include <stdatomic.h>

/* Planted errors that the tests must find. */
enum power_slip {
    SLIP_NONE,
    SLIP_LOG_NEVER_FLUSHED,
    SLIP_FILE_NEVER_FLUSHED,
    SLIP_NOT_MARKED,   /* a killed sharer leaves no mark (db/sqlite/sqlite_shared_vfs.c) */
    SLIP_NOT_SETTLED,  /* settle_file() has no effect on log and journal */
    SLIP_ONLY_FLUSHED, /* settle_file() flushes, but writes nothing */
};

static struct {
    const char *_Atomic victim;
    _Atomic enum power_slip slip;
    _Atomic enum power_habit habit;
    _Atomic uint64_t events;             /* writes, flushes, truncations so far */
    _Atomic uint64_t kill_at;            /* 0: never */
    _Atomic uint64_t flushes;            /* so far */
    _Atomic uint64_t fail_from, fail_to; /* range of flushes that fail; 0: none */
    atomic_int kill_at_flush;            /* kills before the nth flush, 1: the next; 0: none */
    _Atomic size_t room;                 /* bytes of the disk; 0: unlimited */
    atomic_bool frozen;
    void (*_Atomic moment)(void); /* called before and after each event, with the mutex held */
    _Atomic uint64_t flushes_failed;
} power;

static inline bool is_victim_name(const char *name)
{
    return power.victim && strncmp(name, power.victim, strlen(power.victim)) == 0;
}

static inline bool is_victim(const struct power_handle *handle)
{
    return is_victim_name(handle->file->name);
}

static inline void at_moment(const struct power_handle *handle)
{
    if (!is_victim(handle) || power.frozen)
        return;
    void (*moment)(void) = atomic_load(&power.moment);
    if (moment)
        moment();
    if (++power.events == power.kill_at)
        power.frozen = true;
}

static inline bool is_frozen_name(const char *name)
{
    return power.frozen && is_victim_name(name);
}

static inline bool is_frozen(const struct power_handle *handle)
{
    return is_frozen_name(handle->file->name);
}

/* Runs code with the mutex held, between two moments. Once frozen it fails with io_code. */
#define POWER_CALL(file, io_code, code)                                                            \
    do {                                                                                           \
        struct power_handle *handle = handle_of(file);                                             \
        int result = SQLITE_OK;                                                                    \
        pthread_mutex_lock(&power_mutex);                                                          \
        at_moment(handle);                                                                         \
        if (is_frozen(handle)) {                                                                   \
            result = io_code;                                                                      \
        } else {                                                                                   \
            code;                                                                                  \
            at_moment(handle);                                                                     \
        }                                                                                          \
        pthread_mutex_unlock(&power_mutex);                                                        \
        return result;                                                                             \
    } while (0)

/* True if the file would grow beyond the disk; filling a hole counts as growth. */
static inline bool disk_is_full(const struct power_handle *handle, size_t end)
{
    size_t used = 0;
    if (power.room == 0 || !is_victim(handle) || end <= handle->file->cache.size)
        return false;
    for (size_t i = 0; i < POWER_FILES; i++)
        used += power_files[i].linked ? power_files[i].cache.size : 0;
    return used + end - handle->file->cache.size > power.room;
}

static int power_xwrite(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    POWER_CALL(file, SQLITE_IOERR_WRITE, {
        if (disk_is_full(handle, (size_t)at + (size_t)n))
            result = SQLITE_FULL;
        else if (!handle->settles || power.slip < SLIP_NOT_SETTLED)
            power_write(handle->file, data, (size_t)n, (size_t)at);
    });
}

static int power_xtruncate(sqlite3_file *file, sqlite3_int64 size)
{
    POWER_CALL(file, SQLITE_IOERR_TRUNCATE, power_truncate(handle->file, (size_t)size));
}

static inline bool flush_is_planted_away(const struct power_handle *handle)
{
    return (power.slip == SLIP_LOG_NEVER_FLUSHED && handle->log) ||
           (power.slip == SLIP_FILE_NEVER_FLUSHED && !handle->log) ||
           (power.slip == SLIP_NOT_SETTLED && handle->settles);
}

static int flush(struct power_handle *handle)
{
    if (is_victim(handle)) {
        power.flushes++;
        if (power.flushes >= power.fail_from && power.flushes < power.fail_to) {
            power.flushes_failed++;
            power_fail_flush(handle->file, power.habit);
            return SQLITE_IOERR_FSYNC;
        }
        if (flush_is_planted_away(handle))
            return SQLITE_OK;
    }
    power_flush(handle->file);
    if (handle->flushes_folder) /* once, like SQLite's unix VFS */
        power_flush_folder();
    handle->flushes_folder = false;
    return SQLITE_OK;
}

static int power_xsync(sqlite3_file *file, int flags)
{
    (void)flags;
    if (power.kill_at_flush > 0 && is_victim(handle_of(file)) && --power.kill_at_flush == 0)
        power.frozen = true;
    POWER_CALL(file, SQLITE_IOERR_FSYNC, result = flush(handle));
}

static int power_xread(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
    struct power_handle *handle = handle_of(file);
    pthread_mutex_lock(&power_mutex);
    const struct power_data *data = &handle->file->cache;
    const bool frozen = is_frozen(handle);
    const size_t left = (size_t)at < data->size ? data->size - (size_t)at : 0;
    const size_t got = left < (size_t)n ? left : (size_t)n;
    if (got > 0)
        memcpy(ret, data->bytes + at, got);
    memset((char *)ret + got, 0, (size_t)n - got);
    pthread_mutex_unlock(&power_mutex);
    return frozen ? SQLITE_IOERR_READ : got < (size_t)n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int power_xsize(sqlite3_file *file, sqlite3_int64 *ret)
{
    pthread_mutex_lock(&power_mutex);
    *ret = (sqlite3_int64)handle_of(file)->file->cache.size;
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

/* -- opening ---------------------------------------------------------------------------------- */

static int power_xclose(sqlite3_file *file)
{
    struct power_handle *handle = handle_of(file);
    pthread_mutex_lock(&power_mutex);
    leave_memory(handle);
    lower_lock(handle, SQLITE_LOCK_NONE);
    handle->file->handles--;
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

static int power_xcontrol(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int power_xsector(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int power_xdevice(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods power_methods = {
    .iVersion = 2,
    .xClose = power_xclose,
    .xRead = power_xread,
    .xWrite = power_xwrite,
    .xTruncate = power_xtruncate,
    .xSync = power_xsync,
    .xFileSize = power_xsize,
    .xLock = power_xlock,
    .xUnlock = power_xunlock,
    .xCheckReservedLock = power_xcheck,
    .xFileControl = power_xcontrol,
    .xSectorSize = power_xsector,
    .xDeviceCharacteristics = power_xdevice,
    .xShmMap = power_xmap,
    .xShmLock = power_xslots,
    .xShmBarrier = power_xbarrier,
    .xShmUnmap = power_xunmap,
};

enum { IN_MEMORY = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL };

static int power_xopen(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                       int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (!(flags & IN_MEMORY))
        return real->xOpen(real, name, base, flags, ret_flags);
    struct power_handle *handle = handle_of(base);
    *handle = (struct power_handle){.log = !(flags & SQLITE_OPEN_MAIN_DB)};
    pthread_mutex_lock(&power_mutex);
    struct power_file *file = power_find(name);
    const bool was_there = file != NULL;
    if (file == NULL && (flags & SQLITE_OPEN_CREATE) && !is_frozen_name(name))
        file = power_create(name);
    if (file != NULL) {
        file->handles++;
        handle->base.pMethods = &power_methods;
        handle->file = file;
        handle->flushes_folder = handle->log && (flags & SQLITE_OPEN_CREATE);
        /* settle_file() opens an existing log or journal first, SQLite later. */
        handle->settles = handle->log && was_there && !file->opened;
        file->opened = true;
    }
    pthread_mutex_unlock(&power_mutex);
    if (ret_flags)
        *ret_flags = flags;
    return file ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int power_xdelete(sqlite3_vfs *vfs, const char *name, int folder)
{
    (void)vfs;
    pthread_mutex_lock(&power_mutex);
    struct power_file *file = power_find(name);
    const bool frozen = is_frozen_name(name);
    if (file && !frozen) {
        file->linked = false;
        if (folder)
            power_flush_folder();
    }
    pthread_mutex_unlock(&power_mutex);
    return frozen ? SQLITE_IOERR_DELETE : file ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

/* Like SQLite's unix VFS: an empty file counts as missing. */
static int power_xaccess(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    pthread_mutex_lock(&power_mutex);
    const struct power_file *file = power_find(name);
    *ret = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->cache.size > 0);
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

static inline int power_install(void)
{
    static sqlite3_vfs vfs;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    vfs = *real;
    vfs.zName = "power";
    if (vfs.szOsFile < (int)sizeof(struct power_handle))
        vfs.szOsFile = (int)sizeof(struct power_handle);
    vfs.pAppData = real;
    vfs.xOpen = power_xopen;
    vfs.xDelete = power_xdelete;
    vfs.xAccess = power_xaccess;
    return sqlite3_vfs_register(&vfs, 1);
}

/* Starts a new process: no file is open. */
static inline void power_thaw(void)
{
    power.frozen = false;
    power.kill_at_flush = 0;
    power.kill_at = power.fail_from = power.fail_to = 0;
    power.events = power.flushes = 0;
    for (size_t i = 0; i < POWER_FILES; i++)
        power_files[i].opened = false;
}

#endif
