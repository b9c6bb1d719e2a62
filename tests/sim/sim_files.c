#include "sim_files.h"
#include "sim_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATHS_MAX = 16 };

static struct sim_fd fds[SIM_FDS_MAX];
static struct {
    char path[192];
    char mark;
} contents[PATHS_MAX]; /* the first byte of each lock file */

void sim_files_begin(void)
{
    memset(fds, 0, sizeof fds);
    memset(contents, 0, sizeof contents);
}

int sim_fd_new(enum sim_fd_kind kind)
{
    for (int i = 0; i < SIM_FDS_MAX; i++)
        if (fds[i].kind == SIM_FD_FREE) {
            fds[i] = (struct sim_fd){.kind = kind, .group = sim_group()};
            for (int byte = 0; byte < SIM_LOCK_BYTES; byte++)
                fds[i].locks[byte] = F_UNLCK;
            return SIM_FD_FIRST + i;
        }
    errno = EMFILE;
    return -1;
}

struct sim_fd *sim_fd_find(int fd)
{
    int i = fd - SIM_FD_FIRST;
    return i >= 0 && i < SIM_FDS_MAX && fds[i].kind != SIM_FD_FREE ? &fds[i] : NULL;
}

void sim_files_kill(int group)
{
    for (int i = 0; i < SIM_FDS_MAX; i++)
        if (fds[i].group == group && fds[i].kind == SIM_FD_LOCK_FILE)
            fds[i].kind = SIM_FD_FREE;
}

/* -- lock files ------------------------------------------------------------------------------- */

int __wrap_open64(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __real_fcntl64(int fd, int command, ...);
ssize_t __wrap_pread64(int fd, void *ret, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *ret, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);

int __wrap_close(int fd);
int __real_close(int fd);

/* All is built with 64-bit offsets, which is part of these calls' names. */
_Static_assert(sizeof(off_t) == 8, "the names that are wrapped end in 64");

static bool is_lock_file(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, "-lock") == 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (!is_lock_file(path))
        return __real_open64(path, flags, mode);
    int fd = sim_fd_new(SIM_FD_LOCK_FILE);
    if (fd >= 0)
        snprintf(fds[fd - SIM_FD_FIRST].path, sizeof fds[0].path, "%s", path);
    return fd;
}

static bool conflicts(const struct sim_fd *mine, int byte, short type)
{
    for (int i = 0; i < SIM_FDS_MAX; i++) {
        const struct sim_fd *other = &fds[i];
        if (other == mine || other->kind != SIM_FD_LOCK_FILE ||
            strcmp(other->path, mine->path) != 0 || other->locks[byte] == F_UNLCK)
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

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    struct sim_fd *file = sim_fd_find(fd);
    if (!file)
        return __real_fcntl64(fd, command, arg);
    sim_step();
    return command == F_OFD_SETLK ? set_lock(file, arg) : 0;
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
    struct sim_fd *file = sim_fd_find(fd);
    if (!file)
        return __real_close(fd);
    file->kind = SIM_FD_FREE;
    sim_step();
    return 0;
}

ssize_t __wrap_pread64(int fd, void *ret, size_t n, off_t at)
{
    const struct sim_fd *file = sim_fd_find(fd);
    if (!file)
        return __real_pread64(fd, ret, n, at);
    *(char *)ret = *mark_of(file->path);
    return 1;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    const struct sim_fd *file = sim_fd_find(fd);
    if (!file)
        return __real_pwrite64(fd, data, n, at);
    *mark_of(file->path) = *(const char *)data;
    sim_step();
    return 1;
}
