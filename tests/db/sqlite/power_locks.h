/*
 * The locks of SQLite's connections within one process, for power_vfs.h: locks on a file, and locks
 * in its shared memory (https://sqlite.org/lockingv3.html, https://sqlite.org/walformat.html).
 */
#ifndef TESTS_DB_POWER_LOCKS_H
#define TESTS_DB_POWER_LOCKS_H

#include "power_disk.h"

#include <pthread.h>
#include <sqlite3.h>

static pthread_mutex_t power_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all files */

struct power_handle {
    sqlite3_file base;
    struct power_file *file;
    int level;              /* of its lock on the file */
    uint32_t shared, taken; /* its locks in shared memory, a bit each */
    bool maps, log, flushes_folder, settles;
};

static inline struct power_handle *handle_of(sqlite3_file *file)
{
    return (struct power_handle *)file;
}

/* -- locks: the file's ------------------------------------------------------------------------ */

static int raise_lock(struct power_handle *handle, int level)
{
    struct power_file *file = handle->file;
    if (handle->level >= level)
        return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED) {
        if (file->pending || file->exclusive)
            return SQLITE_BUSY;
        file->n_shared++;
    } else {
        if (file->reserved && file->reserved != handle)
            return SQLITE_BUSY;
        if (level == SQLITE_LOCK_RESERVED) {
            file->reserved = handle;
        } else {
            if (file->pending && file->pending != handle)
                return SQLITE_BUSY;
            file->pending = handle;
            if (file->n_shared > 1)
                return SQLITE_BUSY;
            file->exclusive = handle;
        }
    }
    handle->level = level;
    return SQLITE_OK;
}

static int power_xlock(sqlite3_file *file, int level)
{
    pthread_mutex_lock(&power_mutex);
    int code = raise_lock(handle_of(file), level);
    pthread_mutex_unlock(&power_mutex);
    return code;
}

static void lower_lock(struct power_handle *handle, int level)
{
    struct power_file *file = handle->file;
    if (file->reserved == handle)
        file->reserved = NULL;
    if (file->pending == handle)
        file->pending = NULL;
    if (file->exclusive == handle)
        file->exclusive = NULL;
    if (level == SQLITE_LOCK_NONE && handle->level >= SQLITE_LOCK_SHARED)
        file->n_shared--;
    if (handle->level > level)
        handle->level = level;
}

static int power_xunlock(sqlite3_file *file, int level)
{
    pthread_mutex_lock(&power_mutex);
    lower_lock(handle_of(file), level);
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

static int power_xcheck(sqlite3_file *file, int *ret)
{
    pthread_mutex_lock(&power_mutex);
    *ret = handle_of(file)->file->reserved != NULL;
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

/* -- shared memory: ends with its last user --------------------------------------------------- */

static int power_xmap(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    struct power_handle *handle = handle_of(file);
    pthread_mutex_lock(&power_mutex);
    assert(page < POWER_REGIONS);
    void **region = &handle->file->regions[page];
    if (!handle->maps)
        handle->file->n_users++;
    handle->maps = true;
    if (*region == NULL && extend)
        *region = calloc(1, (size_t)size);
    *ret = *region;
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

static int change_slot(struct power_handle *handle, int slot, int flags)
{
    struct power_file *file = handle->file;
    const uint32_t bit = 1u << slot;
    if (flags & SQLITE_SHM_UNLOCK) {
        if (handle->shared & bit)
            file->slot_sharers[slot]--;
        if (handle->taken & bit)
            file->slot_taken[slot] = false;
        handle->shared &= ~bit;
        handle->taken &= ~bit;
        return SQLITE_OK;
    }
    if (file->slot_taken[slot] || ((flags & SQLITE_SHM_EXCLUSIVE) && file->slot_sharers[slot] > 0))
        return SQLITE_BUSY;
    if (flags & SQLITE_SHM_EXCLUSIVE) {
        file->slot_taken[slot] = true;
        handle->taken |= bit;
    } else if (!(handle->shared & bit)) {
        file->slot_sharers[slot]++;
        handle->shared |= bit;
    }
    return SQLITE_OK;
}

/* Locks all slots or none. */
static int power_xslots(sqlite3_file *file, int first, int n, int flags)
{
    pthread_mutex_lock(&power_mutex);
    int code = SQLITE_OK, done = 0;
    for (; done < n && code == SQLITE_OK; done++)
        code = change_slot(handle_of(file), first + done, flags);
    for (done -= 2; code != SQLITE_OK && done >= 0; done--)
        change_slot(handle_of(file), first + done, SQLITE_SHM_UNLOCK);
    pthread_mutex_unlock(&power_mutex);
    return code;
}

static void power_xbarrier(sqlite3_file *file)
{
    (void)file;
    pthread_mutex_lock(&power_mutex);
    pthread_mutex_unlock(&power_mutex);
}

static void leave_memory(struct power_handle *handle)
{
    struct power_file *file = handle->file;
    for (int i = 0; i < POWER_SLOTS; i++)
        change_slot(handle, i, SQLITE_SHM_UNLOCK);
    if (handle->maps && --file->n_users == 0)
        for (int i = 0; i < POWER_REGIONS; i++) {
            free(file->regions[i]);
            file->regions[i] = NULL;
        }
    handle->maps = false;
}

static int power_xunmap(sqlite3_file *file, int delete)
{
    (void)delete;
    pthread_mutex_lock(&power_mutex);
    leave_memory(handle_of(file));
    pthread_mutex_unlock(&power_mutex);
    return SQLITE_OK;
}

#endif
