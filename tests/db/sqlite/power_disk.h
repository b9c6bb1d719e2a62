/*
 * A model of files in memory: the page cache, which processes see, and the disk, which survives a
 * power cut.
 *
 * A write reaches the cache at once. Without a flush each of its sectors may or may not reach the
 * disk, in any order. So an image of a power cut has any subset of these sectors. Bytes within a
 * sector are written together.
 *
 * After a failed flush the disk has some of the sectors. Kernels treat the others differently
 * (https://wiki.postgresql.org/wiki/Fsync_Errors): see enum power_habit.
 *
 * A created or removed name is certainly on the disk only after a flush of the folder.
 */
#ifndef TESTS_DB_POWER_DISK_H
#define TESTS_DB_POWER_DISK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512, POWER_FILES = 32, POWER_NAME = 160, POWER_REGIONS = 8, POWER_SLOTS = 8 };

enum power_habit {
    HABIT_CLEAN, /* the cache keeps them, marked clean: they are never written (ext4) */
    HABIT_DROP,  /* the cache drops them: the disk's data are read again (XFS, btrfs) */
    HABIT_DIRTY, /* they are written by the next flush */
    HABITS
};

struct power_data {
    unsigned char *bytes; /* array of `room` bytes; 0 beyond size */
    size_t size, room;
};

/* The contents of a sector at one moment, or a truncation. */
struct power_change {
    int64_t sector; /* -1: a truncation */
    size_t size;    /* of the file then */
    unsigned char bytes[SECTOR];
};

struct power_file {
    char name[POWER_NAME];
    bool linked, on_disk; /* the name exists for processes; after a power cut */
    bool opened;          /* since power_new_process() */
    int handles;
    struct power_data cache, disk;
    struct power_change *changes; /* those not flushed, in order */
    size_t n_changes, room;
    /* locks of its connections: see power_vfs.h */
    int n_shared, n_users, slot_sharers[POWER_SLOTS];
    const void *reserved, *pending, *exclusive;
    bool slot_taken[POWER_SLOTS];
    void *regions[POWER_REGIONS];
};

static struct power_file power_files[POWER_FILES];
static _Atomic uint64_t power_random_state = 1;
static bool power_loses_all; /* a power cut loses all unflushed changes; false: some of them */

/* SplitMix64 (Steele and others 2014). Atomic, as the checkpoint thread calls it, too. */
static inline uint32_t power_random(uint32_t below)
{
    uint64_t z = atomic_fetch_add(&power_random_state, 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 33) % below;
}

static inline void data_resize(struct power_data *data, size_t size)
{
    if (size > data->room) {
        size_t room = size + size / 2 + SECTOR;
        data->bytes = realloc(data->bytes, room);
        assert(data->bytes);
        memset(data->bytes + data->room, 0, room - data->room);
        data->room = room;
    }
    if (size < data->size)
        memset(data->bytes + size, 0, data->size - size);
    data->size = size;
}

static inline void data_copy(struct power_data *to, const struct power_data *from)
{
    data_resize(to, 0);
    data_resize(to, from->size);
    if (from->size > 0)
        memcpy(to->bytes, from->bytes, from->size);
}

static inline void data_free(struct power_data *data)
{
    free(data->bytes);
    *data = (struct power_data){0};
}

static inline void data_change(struct power_data *data, const struct power_change *change)
{
    if (change->sector < 0) {
        data_resize(data, change->size);
        return;
    }
    const size_t at = (size_t)change->sector * SECTOR;
    const size_t end = at + SECTOR < change->size ? at + SECTOR : change->size;
    if (end > data->size)
        data_resize(data, end);
    if (end > at)
        memcpy(data->bytes + at, change->bytes, end - at);
}

/* -- files ------------------------------------------------------------------------------------ */

static inline struct power_file *power_find(const char *name)
{
    for (size_t i = 0; i < POWER_FILES; i++)
        if (power_files[i].linked && strcmp(power_files[i].name, name) == 0)
            return &power_files[i];
    return NULL;
}

static inline struct power_file *power_create(const char *name)
{
    struct power_file *file = power_files;
    while (file->linked || file->on_disk || file->handles > 0)
        assert(++file < power_files + POWER_FILES);
    data_free(&file->cache);
    data_free(&file->disk);
    free(file->changes);
    *file = (struct power_file){.linked = true};
    assert((size_t)snprintf(file->name, POWER_NAME, "%s", name) < POWER_NAME);
    return file;
}

static inline void note_change(struct power_file *file, int64_t sector)
{
    if (file->n_changes == file->room) {
        file->room = file->room ? 2 * file->room : 64;
        file->changes = realloc(file->changes, file->room * sizeof *file->changes);
        assert(file->changes);
    }
    struct power_change *change = &file->changes[file->n_changes++];
    *change = (struct power_change){.sector = sector, .size = file->cache.size};
    if (sector < 0)
        return;
    const size_t at = (size_t)sector * SECTOR, left = file->cache.size - at;
    memcpy(change->bytes, file->cache.bytes + at, left < SECTOR ? left : SECTOR);
}

static inline void power_write(struct power_file *file, const void *data, size_t n, size_t at)
{
    if (at + n > file->cache.size)
        data_resize(&file->cache, at + n);
    memcpy(file->cache.bytes + at, data, n);
    for (size_t sector = at / SECTOR; sector * SECTOR < at + n; sector++)
        note_change(file, (int64_t)sector);
}

static inline void power_truncate(struct power_file *file, size_t size)
{
    if (size >= file->cache.size)
        return;
    data_resize(&file->cache, size);
    note_change(file, -1);
}

static inline void power_flush_folder(void)
{
    for (size_t i = 0; i < POWER_FILES; i++)
        power_files[i].on_disk = power_files[i].linked;
}

static inline void power_flush(struct power_file *file)
{
    for (size_t i = 0; i < file->n_changes; i++)
        data_change(&file->disk, &file->changes[i]);
    file->n_changes = 0;
}

/* Applies each unflushed change with this probability. */
static inline void some_changes(struct power_data *data, const struct power_file *file,
                                uint32_t percent)
{
    for (size_t i = 0; i < file->n_changes; i++)
        if (power_random(100) < percent)
            data_change(data, &file->changes[i]);
}

static inline uint32_t any_percent(void)
{
    static const uint32_t percents[] = {0, 20, 50, 80, 97, 100};
    return power_loses_all ? 0 : percents[power_random(sizeof percents / sizeof *percents)];
}

static inline void power_fail_flush(struct power_file *file, enum power_habit habit)
{
    some_changes(&file->disk, file, any_percent());
    if (habit == HABIT_DROP) {
        const size_t size = file->cache.size; /* the inode keeps the size */
        data_copy(&file->cache, &file->disk);
        data_resize(&file->cache, size);
    }
    if (habit != HABIT_DIRTY)
        file->n_changes = 0;
}

/* -- power cuts ------------------------------------------------------------------------------- */

struct power_image {
    size_t n_files;
    struct {
        const char *suffix; /* of the database's name */
        struct power_data data;
    } files[3];
};

/* A possible state of the database with this name, its log and its journal after a power cut now.
 */
static inline struct power_image power_cut(const char *database)
{
    static const char *const suffixes[] = {"", "-wal", "-journal"};
    struct power_image image = {0};
    const bool new_folder = !power_loses_all && power_random(2) == 0;
    for (size_t i = 0; i < POWER_FILES; i++) {
        const struct power_file *file = &power_files[i];
        for (size_t j = 0; j < 3 && (new_folder ? file->linked : file->on_disk); j++) {
            char name[POWER_NAME];
            snprintf(name, sizeof name, "%s%s", database, suffixes[j]);
            if (strcmp(name, file->name) != 0)
                continue;
            assert(image.n_files < 3);
            struct power_data *data = &image.files[image.n_files].data;
            data_copy(data, &file->disk);
            some_changes(data, file, any_percent());
            image.files[image.n_files++].suffix = suffixes[j];
        }
    }
    return image;
}

static inline void power_image_free(struct power_image *image)
{
    for (size_t i = 0; i < image->n_files; i++)
        data_free(&image->files[i].data);
    image->n_files = 0;
}

/* Removes the files. They must not be open. */
static inline void power_forget(const char *database)
{
    for (size_t i = 0; i < POWER_FILES; i++) {
        struct power_file *file = &power_files[i];
        if (strncmp(file->name, database, strlen(database)) != 0)
            continue;
        assert(file->handles == 0);
        file->linked = file->on_disk = false;
        file->name[0] = '\0';
    }
}

/* Creates the files of an image under this name, as after a power cut. */
static inline void power_restore(const struct power_image *image, const char *database)
{
    power_forget(database);
    for (size_t i = 0; i < image->n_files; i++) {
        char name[POWER_NAME];
        snprintf(name, sizeof name, "%s%s", database, image->files[i].suffix);
        struct power_file *file = power_create(name);
        data_copy(&file->cache, &image->files[i].data);
        data_copy(&file->disk, &image->files[i].data);
        file->on_disk = true;
    }
}

#endif
