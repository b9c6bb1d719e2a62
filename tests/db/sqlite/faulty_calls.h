/*
 * System calls that fail below SQLite and below the store's own files: the Nth one of those that a
 * plan names fails, once or from then on. SQLite's calls are replaced as its own test_syscall.c
 * does it (sqlite3_vfs.xSetSystemCall); those of the store by --wrap. What has no place in SQLite's
 * table (fdatasync) fails in fault_vfs.h.
 */
#ifndef TESTS_DB_FAULTY_CALLS_H
#define TESTS_DB_FAULTY_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum call_kind {
    CALL_OPEN = 1,
    CALL_READ = 2,
    CALL_WRITE = 4,
    CALL_STAT = 8,   /* of an open file */
    CALL_SIZE = 128, /* truncation, allocation */
    CALL_LOCK = 16,
    CALL_MAP = 32,
    CALL_REMOVE = 64,
};

enum { SHORT = -1 }; /* instead of an errno: half of the bytes, at least one */

struct call_plan {
    unsigned kinds;   /* which calls are counted */
    int error;        /* errno of the call that fails, or SHORT */
    bool lasts;       /* all later ones fail, too, until calls_heal() */
    bool sqlite_only; /* not those of the store's own files */
};

static struct call_plan call_plan; /* written while no store is open and no call is due */
static atomic_int calls_left;      /* 0: none fails; 1: the next one does */
static atomic_int calls_failed;

static inline void calls_arm(struct call_plan plan, int n)
{
    call_plan = plan;
    atomic_store(&calls_failed, 0);
    atomic_store(&calls_left, n);
}

static inline void calls_heal(void)
{
    atomic_store(&calls_left, 0);
}

/* True if this call must fail. errno is then set. */
static inline bool call_due(enum call_kind kind, bool of_sqlite)
{
    int left = atomic_load(&calls_left);
    while (left > 0) {
        if (!(call_plan.kinds & kind) || (call_plan.sqlite_only && !of_sqlite))
            return false;
        const int next = left == 1 && call_plan.lasts ? 1 : left - 1;
        if (!atomic_compare_exchange_weak(&calls_left, &left, next))
            continue;
        if (left != 1)
            return false;
        atomic_fetch_add(&calls_failed, 1);
        errno = call_plan.error;
        return true;
    }
    return false;
}

static inline size_t half_of(size_t n)
{
    return n > 1 ? n / 2 : n;
}

/* -- the store's --------------------------------------------------------------------------------
 */

int __real_open64(const char *path, int flags, ...);
int __real_fcntl64(int fd, int what, ...);
ssize_t __real_pread64(int fd, void *data, size_t n, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);
int __wrap_open64(const char *path, int flags, int mode);
int __wrap_fcntl64(int fd, int what, void *arg);
ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);

int __wrap_open64(const char *path, int flags, int mode)
{
    return call_due(CALL_OPEN, false) ? -1 : __real_open64(path, flags, mode);
}

/* A lock may be refused. To give one back always succeeds. */
static inline bool takes_lock(int what, const struct flock *range)
{
    return (what == F_SETLK || what == F_OFD_SETLK) && range->l_type != F_UNLCK;
}

int __wrap_fcntl64(int fd, int what, void *arg)
{
    return takes_lock(what, arg) && call_due(CALL_LOCK, false) ? -1 : __real_fcntl64(fd, what, arg);
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at)
{
    return call_due(CALL_READ, false) ? -1 : __real_pread64(fd, data, n, at);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    return call_due(CALL_WRITE, false) ? -1 : __real_pwrite64(fd, data, n, at);
}

/* -- SQLite's -----------------------------------------------------------------------------------
 */

static int sqlite_open(const char *path, int flags, int mode)
{
    return call_due(CALL_OPEN, true) ? -1 : __real_open64(path, flags, mode);
}

static ssize_t sqlite_pread(int fd, void *data, size_t n, off_t at)
{
    if (!call_due(CALL_READ, true))
        return __real_pread64(fd, data, n, at);
    return call_plan.error == SHORT ? __real_pread64(fd, data, half_of(n), at) : -1;
}

static ssize_t sqlite_pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (!call_due(CALL_WRITE, true))
        return __real_pwrite64(fd, data, n, at);
    return call_plan.error == SHORT ? __real_pwrite64(fd, data, half_of(n), at) : -1;
}

/* Without a place of its own: SQLite reads or writes there if the table has no other call. */
static ssize_t sqlite_read(int fd, void *data, size_t n)
{
    if (!call_due(CALL_READ, true))
        return read(fd, data, n);
    return call_plan.error == SHORT ? read(fd, data, half_of(n)) : -1;
}

static ssize_t sqlite_write(int fd, const void *data, size_t n)
{
    if (!call_due(CALL_WRITE, true))
        return write(fd, data, n);
    return call_plan.error == SHORT ? write(fd, data, half_of(n)) : -1;
}

static int sqlite_fstat(int fd, struct stat *ret)
{
    return call_due(CALL_STAT, true) ? -1 : fstat(fd, ret);
}

static int sqlite_ftruncate(int fd, off_t size)
{
    return call_due(CALL_SIZE, true) ? -1 : ftruncate(fd, size);
}

static int sqlite_fallocate(int fd, off_t at, off_t n)
{
    return call_due(CALL_SIZE, true) ? errno : posix_fallocate(fd, at, n);
}

static int sqlite_fcntl(int fd, int what, ...)
{
    va_list more;
    va_start(more, what);
    void *arg = va_arg(more, void *);
    va_end(more);
    if (takes_lock(what, arg) && call_due(CALL_LOCK, true))
        return -1;
    return __real_fcntl64(fd, what, arg);
}

static void *sqlite_mmap(void *at, size_t n, int access, int flags, int fd, off_t from)
{
    return call_due(CALL_MAP, true) ? MAP_FAILED : mmap(at, n, access, flags, fd, from);
}

static int sqlite_unlink(const char *path)
{
    return call_due(CALL_REMOVE, true) ? -1 : unlink(path);
}

static inline int calls_install(void)
{
#define CALL(name, function)                                                                       \
    {                                                                                              \
        name, (sqlite3_syscall_ptr)(function)                                                      \
    }
    static const struct {
        const char *name;
        sqlite3_syscall_ptr function;
    } calls[] = {
        CALL("open", sqlite_open),           CALL("pread", sqlite_pread),
        CALL("pread64", sqlite_pread),       CALL("pwrite", sqlite_pwrite),
        CALL("pwrite64", sqlite_pwrite),     CALL("read", sqlite_read),
        CALL("write", sqlite_write),         CALL("fstat", sqlite_fstat),
        CALL("ftruncate", sqlite_ftruncate), CALL("fallocate", sqlite_fallocate),
        CALL("fcntl", sqlite_fcntl),         CALL("mmap", sqlite_mmap),
        CALL("unlink", sqlite_unlink),
    };
#undef CALL
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (vfs->xGetSystemCall(vfs, calls[i].name) != NULL &&
            vfs->xSetSystemCall(vfs, calls[i].name, calls[i].function) != SQLITE_OK)
            return -1;
    return 0;
}

#endif
