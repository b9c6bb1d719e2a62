#include "sim_files.h"
#include "sim_archive.h"
#include "sim_disk.h"
#include "sim_sockets.h"
#include "sim_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { FD_FIRST = 1000000, FDS_MAX = 256, LOCK_BYTES = 4, PATHS_MAX = 16 };

struct sim_fd {
    bool open;
    int group;
    char path[192];
    short locks[LOCK_BYTES]; /* F_UNLCK, F_RDLCK, F_WRLCK */
};

static struct sim_fd fds[FDS_MAX];
static struct {
    char path[192];
    char mark;
} contents[PATHS_MAX]; /* the first byte of each lock file */

void sim_files_begin(void)
{
    memset(fds, 0, sizeof fds);
    memset(contents, 0, sizeof contents);
}

static int new_fd(const char *path)
{
    for (int i = 0; i < FDS_MAX; i++)
        if (!fds[i].open) {
            fds[i] = (struct sim_fd){.open = true, .group = sim_group()};
            snprintf(fds[i].path, sizeof fds[i].path, "%s", path);
            for (int byte = 0; byte < LOCK_BYTES; byte++)
                fds[i].locks[byte] = F_UNLCK;
            return FD_FIRST + i;
        }
    errno = EMFILE;
    return -1;
}

/* NULL: not ours. */
static struct sim_fd *find(int fd)
{
    int i = fd - FD_FIRST;
    return i >= 0 && i < FDS_MAX && fds[i].open ? &fds[i] : NULL;
}

void sim_files_kill(int group)
{
    for (int i = 0; i < FDS_MAX; i++)
        if (fds[i].group == group)
            fds[i].open = false;
}

/* -- lock files ------------------------------------------------------------------------------- */

int __wrap_open64(const char *path, int flags, ...);
int __wrap___open64_2(const char *path, int flags);
int __real_open64(const char *path, int flags, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __real_fcntl64(int fd, int command, ...);
ssize_t __wrap_pread64(int fd, void *ret, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *ret, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);

int __wrap_fsync(int fd);
int __real_fsync(int fd);
int __wrap_close(int fd);
int __real_close(int fd);

/* All is built with 64-bit offsets, which is part of these calls' names. */
_Static_assert(sizeof(off_t) == 8, "the names that are wrapped end in 64");

static bool is_lock_file(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, "-lock") == 0;
}

/* The archive file and its folder. */
static bool is_archived(const char *path)
{
    return strcmp(path, sim_archive) == 0 || strcmp(path, "/") == 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (strcmp(path, sim_archive) == 0 && sim_disk_open(path, flags) != 0)
        return -1;
    if (!is_lock_file(path) && !is_archived(path))
        return __real_open64(path, flags, mode);
    return new_fd(path);
}

/* The same under _FORTIFY_SOURCE, where flags are no constant. */
int __wrap___open64_2(const char *path, int flags)
{
    return __wrap_open64(path, flags, 0);
}

static bool conflicts(const struct sim_fd *mine, int byte, short type)
{
    for (int i = 0; i < FDS_MAX; i++) {
        const struct sim_fd *other = &fds[i];
        if (other == mine || !other->open || strcmp(other->path, mine->path) != 0 ||
            other->locks[byte] == F_UNLCK)
            continue;
        if (type == F_WRLCK || other->locks[byte] == F_WRLCK)
            return true;
    }
    return false;
}

static int set_lock(struct sim_fd *file, const struct flock *range)
{
    int byte = (int)range->l_start;
    if (range->l_type != F_UNLCK && conflicts(file, byte, range->l_type)) {
        errno = EAGAIN;
        return -1;
    }
    file->locks[byte] = range->l_type;
    return 0;
}

static int get_lock(const struct sim_fd *file, struct flock *range)
{
    if (!conflicts(file, (int)range->l_start, range->l_type))
        range->l_type = F_UNLCK;
    return 0;
}

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    struct sim_fd *file = find(fd);
    if (!file)
        return __real_fcntl64(fd, command, arg);
    sim_step();
    switch (command) {
    case F_OFD_SETLK:
        return set_lock(file, arg);
    case F_OFD_GETLK:
        return get_lock(file, arg);
    default:
        fprintf(stderr, "sim_files: fcntl(%d) is not modelled\n", command);
        abort();
    }
}

int __wrap_fsync(int fd)
{
    const struct sim_fd *file = find(fd);
    if (!file || !is_archived(file->path))
        return __real_fsync(fd);
    return strcmp(file->path, "/") == 0 ? sim_disk_fsync_folder() : sim_disk_fsync(file->path);
}

static char *mark_of(const char *path)
{
    for (int i = 0; i < PATHS_MAX; i++) {
        if (contents[i].path[0] == '\0')
            snprintf(contents[i].path, sizeof contents[i].path, "%s", path);
        if (strcmp(contents[i].path, path) == 0)
            return &contents[i].mark;
    }
    return &contents[0].mark;
}

int __wrap_close(int fd)
{
    struct sim_fd *file = find(fd);
    if (!file && sim_sockets_close(fd))
        return 0;
    if (!file)
        return __real_close(fd);
    file->open = false;
    sim_step();
    return 0;
}

ssize_t __wrap_pread64(int fd, void *ret, size_t n, off_t at)
{
    const struct sim_fd *file = find(fd);
    if (!file)
        return __real_pread64(fd, ret, n, at);
    *(char *)ret = *mark_of(file->path);
    return 1;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    const struct sim_fd *file = find(fd);
    if (!file)
        return __real_pwrite64(fd, data, n, at);
    *mark_of(file->path) = *(const char *)data;
    sim_step();
    return 1;
}
