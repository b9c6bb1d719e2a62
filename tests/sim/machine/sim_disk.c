#include "sim_disk.h"
#include "sim_archive.h"
#include "power_locks.h"
#include "sim_points.h"
#include "sim_threads.h"
#include "sim_watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>

enum { HANDLES_MAX = 256, WRITE_US = 20, FLUSH_US = 400, SLOW_US = 300000 };

static struct {
    struct sim_disk_faults faults;
    struct sim_disk_counts counts;
    struct {
        struct power_handle *handle;
        int group;
    } open[HANDLES_MAX];
    uint32_t temporary; /* files so far */
    int system_errno;
} disk;

const struct sim_disk_counts *sim_disk_counts(void)
{
    return &disk.counts;
}

void sim_disk_faults(const struct sim_disk_faults *faults)
{
    disk.faults = *faults;
}

/* -- which process has a file open ------------------------------------------------------------- */

static void enter(struct power_handle *handle)
{
    size_t i = 0;
    while (disk.open[i].handle)
        assert(++i < HANDLES_MAX);
    disk.open[i].handle = handle;
    disk.open[i].group = sim_group();
}

static void leave(size_t i)
{
    struct power_handle *handle = disk.open[i].handle;
    leave_memory(handle);
    lower_lock(handle, SQLITE_LOCK_NONE);
    handle->file->handles--;
    disk.open[i].handle = NULL;
}

void sim_disk_kill(int group)
{
    for (size_t i = 0; i < HANDLES_MAX; i++)
        if (disk.open[i].handle && disk.open[i].group == group)
            leave(i);
}

void sim_disk_power_cut(const char *path)
{
    disk.counts.cuts++;
    struct power_image image = power_cut(path);
    power_restore(&image, path);
    power_image_free(&image);
    sim_watch_anew();
}

/* -- calls that are not SQLite's --------------------------------------------------------------- */

int sim_disk_open(const char *name, int flags)
{
    const bool there = power_find(name) != NULL;
    sim_step();
    if (there && (flags & O_EXCL) != 0)
        errno = EEXIST;
    else if (!there && (flags & O_CREAT) == 0)
        errno = ENOENT;
    else if (there || power_create(name) != NULL)
        return 0;
    return -1;
}

int sim_disk_fsync(const char *name)
{
    struct power_file *file = power_find(name);
    sim_step();
    if (file != NULL)
        power_flush(file);
    sim_step();
    return 0;
}

int sim_disk_fsync_folder(void)
{
    sim_step();
    power_flush_folder();
    sim_archive_flushed();
    sim_step();
    return 0;
}

/* -- as an onlooker ---------------------------------------------------------------------------- */

size_t sim_disk_size(const char *name)
{
    const struct power_file *file = power_find(name);
    return file ? file->cache.size : 0;
}

static size_t peek(const struct power_file *file, void *ret, size_t n, size_t at)
{
    const size_t left = file && at < file->cache.size ? file->cache.size - at : 0;
    const size_t got = left < n ? left : n;
    if (got > 0)
        memcpy(ret, file->cache.bytes + at, got);
    memset((char *)ret + got, 0, n - got);
    return got;
}

size_t sim_disk_peek(const char *name, void *ret, size_t n, size_t at)
{
    return peek(power_find(name), ret, n, at);
}

const void *sim_disk_region(const char *name, int page)
{
    const struct power_file *file = power_find(name);
    return file && page < POWER_REGIONS ? file->regions[page] : NULL;
}

bool sim_disk_is_being_written(const char *name)
{
    const struct power_file *file = power_find(name);
    return file && file->exclusive;
}

/* -- a file's calls --------------------------------------------------------------------------- */

/* Time passes, and others run. */
static void take_us(int64_t us)
{
    if (sim_self() && us > 0)
        sim_sleep_us(us / 2 + sim_below((uint32_t)us));
}

static int fails(uint32_t one_in, uint64_t *count, int code, int system)
{
    if (!sim_one_in(one_in))
        return SQLITE_OK;
    ++*count;
    disk.system_errno = system;
    return code;
}

static int disk_xwrite(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    struct power_file *where = handle_of(file)->file;
    disk.counts.writes++;
    sim_pass("disk.write", "");
    sim_step();
    int code = fails(disk.faults.write_fails, &disk.counts.write_failures, SQLITE_IOERR_WRITE, EIO);
    if (code == SQLITE_OK && (size_t)at + (size_t)n > where->cache.size)
        code = fails(disk.faults.full, &disk.counts.fulls, SQLITE_FULL, ENOSPC);
    if (code == SQLITE_FULL) /* what there is room for */
        n = (int)sim_below((uint32_t)n);
    if (code != SQLITE_IOERR_WRITE || sim_one_in(2)) /* an error, and yet it may be there */
        power_write(where, data, (size_t)n, (size_t)at);
    take_us(WRITE_US);
    return code;
}

static int disk_xtruncate(sqlite3_file *file, sqlite3_int64 size)
{
    sim_step();
    power_truncate(handle_of(file)->file, (size_t)size);
    return SQLITE_OK;
}

static int disk_xsync(sqlite3_file *file, int flags)
{
    struct power_handle *handle = handle_of(file);
    (void)flags;
    disk.counts.flushes++;
    sim_pass("disk.flush", "");
    take_us(sim_one_in(disk.faults.slow) ? SLOW_US : FLUSH_US);
    int code = fails(disk.faults.flush_fails, &disk.counts.flush_failures, SQLITE_IOERR_FSYNC, EIO);
    if (code != SQLITE_OK) {
        const enum power_habit habit = (enum power_habit)sim_below(HABITS);
        sim_tell("a flush of %s fails; what was not written is %s", handle->file->name,
                 habit == HABIT_CLEAN  ? "never written"
                 : habit == HABIT_DROP ? "dropped"
                                       : "written later");
        power_fail_flush(handle->file, habit);
        return code;
    }
    power_flush(handle->file);
    if (handle->flushes_folder) /* as SQLite's unix VFS does, once */
        power_flush_folder();
    handle->flushes_folder = false;
    sim_pass("disk.flushed", "");
    sim_watch();
    sim_step();
    return SQLITE_OK;
}

static int disk_xread(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
    const size_t got = peek(handle_of(file)->file, ret, (size_t)n, (size_t)at);
    return got < (size_t)n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int disk_xsize(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)handle_of(file)->file->cache.size;
    return SQLITE_OK;
}

static int disk_xclose(sqlite3_file *file)
{
    for (size_t i = 0; i < HANDLES_MAX; i++)
        if (disk.open[i].handle == handle_of(file)) {
            if (handle_of(file)->settles) /* a temporary file */
                handle_of(file)->file->linked = false;
            leave(i);
        }
    return SQLITE_OK;
}

static int disk_xlock(sqlite3_file *file, int level)
{
    sim_step();
    return power_xlock(file, level);
}

static int disk_xcontrol(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int disk_xsector(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int disk_xdevice(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = disk_xclose,
    .xRead = disk_xread,
    .xWrite = disk_xwrite,
    .xTruncate = disk_xtruncate,
    .xSync = disk_xsync,
    .xFileSize = disk_xsize,
    .xLock = disk_xlock,
    .xUnlock = power_xunlock,
    .xCheckReservedLock = power_xcheck,
    .xFileControl = disk_xcontrol,
    .xSectorSize = disk_xsector,
    .xDeviceCharacteristics = disk_xdevice,
    .xShmMap = power_xmap,
    .xShmLock = power_xslots,
    .xShmBarrier = power_xbarrier,
    .xShmUnmap = power_xunmap,
};

/* -- names ------------------------------------------------------------------------------------ */

static int disk_xopen(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                      int *ret_flags)
{
    struct power_handle *handle = handle_of(base);
    char temporary[32];
    (void)vfs;
    if (!name)
        snprintf(temporary, sizeof temporary, "temporary-%u", disk.temporary++);
    *handle = (struct power_handle){.log = !(flags & SQLITE_OPEN_MAIN_DB), .settles = !name};
    struct power_file *file = power_find(name ? name : temporary);
    if (!file && (flags & SQLITE_OPEN_CREATE))
        file = power_create(name ? name : temporary);
    if (!file)
        return SQLITE_CANTOPEN;
    file->handles++;
    handle->base.pMethods = &methods;
    handle->file = file;
    handle->flushes_folder = name && handle->log && (flags & SQLITE_OPEN_CREATE);
    enter(handle);
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int disk_xdelete(sqlite3_vfs *vfs, const char *name, int folder)
{
    (void)vfs;
    sim_step();
    struct power_file *file = power_find(name);
    if (!file)
        return SQLITE_IOERR_DELETE_NOENT;
    file->linked = false;
    if (folder)
        power_flush_folder();
    return SQLITE_OK;
}

/* As SQLite's unix VFS: an empty file is not there. */
static int disk_xaccess(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    const struct power_file *file = power_find(name);
    *ret = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->cache.size > 0);
    return SQLITE_OK;
}

static int disk_xfullname(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    sqlite3_snprintf(size, ret, "%s", name);
    return SQLITE_OK;
}

static int disk_xrandom(sqlite3_vfs *vfs, int n, char *ret)
{
    (void)vfs;
    for (int i = 0; i < n; i++)
        ret[i] = (char)sim_below(256);
    return n;
}

static int disk_xsleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    take_us(us);
    return us;
}

static int disk_xerror(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    (void)size;
    (void)ret;
    return disk.system_errno;
}

static int disk_xtime(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
    (void)vfs;
    *ret = 210866760000000 + (sim_wall_begin_us + sim_now_us() + sim_wall_ahead_us[sim_group()]) /
                                 1000; /* Julian, ms */
    return SQLITE_OK;
}

void sim_disk_begin(uint64_t seed)
{
    static sqlite3_vfs vfs = {
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct power_handle),
        .mxPathname = 512,
        .zName = "simulated",
        .xOpen = disk_xopen,
        .xDelete = disk_xdelete,
        .xAccess = disk_xaccess,
        .xFullPathname = disk_xfullname,
        .xRandomness = disk_xrandom,
        .xSleep = disk_xsleep,
        .xGetLastError = disk_xerror,
        .xCurrentTimeInt64 = disk_xtime,
    };
    memset(&disk, 0, sizeof disk);
    atomic_store(&power_random_state, seed);
    if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
        sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}
