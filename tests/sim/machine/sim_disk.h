/*
 * SQLite's file system for the simulation: files in memory, as a kernel and a disk keep them
 * (power_disk.h), shared by all simulated processes of one machine. Calls may be overtaken, take
 * time, fail, and find the disk full; a process may be killed between any two; the power may fail.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_disk_faults {
    uint32_t write_fails, flush_fails, full, slow; /* one in so many calls; 0: never */
};

/* Makes it SQLite's default, before SQLite's first use. */
void sim_disk_begin(uint64_t seed);
void sim_disk_faults(const struct sim_disk_faults *faults);
/* The process has ended: its locks and its shared memory are gone, its writes are in the cache. */
void sim_disk_kill(int group);
/* All processes have ended, and what was not flushed may be lost, torn, in part or whole. */
void sim_disk_power_cut(const char *path);
/* open(2), and fsync(2) of a file or of its folder, as of a file that is not SQLite's. 0, or -1
 * with errno. */
int sim_disk_open(const char *name, int flags);
int sim_disk_fsync(const char *name);
int sim_disk_fsync_folder(void);
/* For an onlooker: the files as processes see them, and the shared memory of a database's log. */
size_t sim_disk_size(const char *name);                                 /* 0: missing */
size_t sim_disk_peek(const char *name, void *ret, size_t n, size_t at); /* bytes; the rest is 0 */
const void *sim_disk_region(const char *name, int page);                /* NULL: none */
bool sim_disk_is_being_written(const char *name); /* its exclusive lock is held */
/* Events so far. */
struct sim_disk_counts {
    uint64_t writes, flushes, write_failures, flush_failures, fulls, cuts;
};
const struct sim_disk_counts *sim_disk_counts(void);

#endif
