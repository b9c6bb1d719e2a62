#include "sim_watch.h"
#include "sim_archive.h"
#include "sim_disk.h"
#include "sim_fence.h"
#include "sim_world.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { REGION_BYTES = 32768, REGIONS = 8 };

/* A file that is read only. */
struct seen {
    sqlite3_file base;
    char name[64];
};

static struct {
    bool on;
    sqlite3 *store;                  /* NULL: not open yet */
    uint64_t writes;                 /* of the disk at the last look */
    unsigned char *regions[REGIONS]; /* copies of the log's index in shared memory */
} watch;

/* -- files ------------------------------------------------------------------------------------- */

static const char *name_of(sqlite3_file *file)
{
    return ((struct seen *)file)->name;
}

static int seen_close(sqlite3_file *file)
{
    (void)file;
    return SQLITE_OK;
}

static int seen_read(sqlite3_file *file, void *ret, int n, sqlite3_int64 at)
{
    return sim_disk_peek(name_of(file), ret, (size_t)n, (size_t)at) < (size_t)n
               ? SQLITE_IOERR_SHORT_READ
               : SQLITE_OK;
}

static int seen_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    (void)file, (void)data, (void)n, (void)at;
    return SQLITE_READONLY;
}

static int seen_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    (void)file, (void)size;
    return SQLITE_READONLY;
}

static int seen_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)sim_disk_size(name_of(file));
    return SQLITE_OK;
}

static int seen_lock(sqlite3_file *file, int level)
{
    (void)file, (void)level;
    return SQLITE_OK;
}

static int seen_check(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int seen_control(sqlite3_file *file, int op, void *arg)
{
    (void)file, (void)op, (void)arg;
    return SQLITE_NOTFOUND;
}

static int seen_zero(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static int seen_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    (void)file, (void)size, (void)extend;
    *ret = page < REGIONS ? watch.regions[page] : NULL;
    return SQLITE_OK;
}

static int seen_slots(sqlite3_file *file, int first, int n, int flags)
{
    (void)file, (void)first, (void)n, (void)flags;
    return SQLITE_OK;
}

static void seen_barrier(sqlite3_file *file)
{
    (void)file;
}

static int seen_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = seen_close,
        .xRead = seen_read,
        .xWrite = seen_write,
        .xTruncate = seen_truncate,
        .xSync = seen_lock,
        .xFileSize = seen_size,
        .xLock = seen_lock,
        .xUnlock = seen_lock,
        .xCheckReservedLock = seen_check,
        .xFileControl = seen_control,
        .xSectorSize = seen_zero,
        .xDeviceCharacteristics = seen_zero,
        .xShmMap = seen_map,
        .xShmLock = seen_slots,
        .xShmBarrier = seen_barrier,
        .xShmUnmap = seen_lock,
    };
    (void)vfs;
    file->pMethods = &methods;
    snprintf(((struct seen *)file)->name, sizeof((struct seen *)file)->name, "%s", name);
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int seen_delete(sqlite3_vfs *vfs, const char *name, int folder)
{
    (void)vfs, (void)name, (void)folder;
    return SQLITE_OK;
}

/* There is a log, and never a journal: nothing is read while there is one. */
static int seen_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs, (void)flags;
    *ret = strstr(name, "-wal") != NULL && sim_disk_size(name) > 0;
    return SQLITE_OK;
}

static int seen_fullname(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    sqlite3_snprintf(size, ret, "%s", name);
    return SQLITE_OK;
}

static int seen_random(sqlite3_vfs *vfs, int n, char *ret)
{
    (void)vfs;
    memset(ret, 7, (size_t)n);
    return n;
}

static int seen_time(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
    (void)vfs;
    *ret = 0;
    return SQLITE_OK;
}

/* -- looking ----------------------------------------------------------------------------------- */

static bool open_store(void)
{
    static sqlite3_vfs vfs = {
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct seen),
        .mxPathname = 60,
        .zName = "seen",
        .xOpen = seen_open,
        .xDelete = seen_delete,
        .xAccess = seen_access,
        .xFullPathname = seen_fullname,
        .xRandomness = seen_random,
        .xCurrentTimeInt64 = seen_time,
    };
    if (watch.store)
        return true;
    sqlite3_vfs_register(&vfs, 0);
    if (sqlite3_open_v2(sim_store, &watch.store, SQLITE_OPEN_READONLY, "seen") != SQLITE_OK ||
        sqlite3_exec(watch.store, "PRAGMA temp_store = memory", NULL, NULL, NULL) != SQLITE_OK)
        abort();
    return true;
}

/* The index of the log as the instances see it. False: there is none, as the log is not recovered.
 */
static bool copy_index(void)
{
    for (int i = 0; i < REGIONS; i++) {
        const void *region = sim_disk_region(sim_store, i);
        if (!region)
            return i > 0;
        if (!watch.regions[i] && !(watch.regions[i] = malloc(REGION_BYTES)))
            abort();
        memcpy(watch.regions[i], region, REGION_BYTES);
    }
    return true;
}

/* Between two transactions: no journal that would be rolled back. With a log: once it is recovered.
 */
static bool is_readable(void)
{
    unsigned char first = 0, version = 0;
    if (sim_disk_peek("/store", &version, 1, 18) < 1)
        return false;
    if (version == 2) /* it has a log */
        return sim_disk_size("/store-wal") > 0 && copy_index() && watch.regions[0][12] != 0;
    sim_disk_peek("/store-journal", &first, 1, 0);
    return first == 0 && !sim_disk_is_being_written(sim_store);
}

void sim_watch(void)
{
    if (!watch.on || watch.writes == sim_disk_counts()->writes || sim_world.is.postgres ||
        sim_archive_begun() || /* the store alone does not have all rows */
        sim_world.result->broken[0] != '\0')
        return;
    watch.writes = sim_disk_counts()->writes;
    if (!is_readable() || !open_store())
        return;
    sim_world.result->looks++;
    sim_judge_rows(watch.store);
    sqlite3_db_release_memory(watch.store);
}

void sim_watch_anew(void)
{
    watch.store = NULL; /* what it has open is memory of this process only */
    watch.writes = 0;
    sim_fence_power_cut();
}

void sim_watch_begin(bool on)
{
    memset(&watch, 0, sizeof watch);
    watch.on = on;
}
