/*
 * FILE-lock, beside the database. A lock on byte 0 says which process may open the database, a lock
 * on byte 1 which one writes next. For bytes 2 and 3 and for its content see
 * sqlite_shared_vfs.c.
 *
 * These are open file description locks (fcntl(2), F_OFD_SETLK). They end with the process, however
 * it ends. Two opens in one process exclude each other, too. A write lock becomes a read lock in
 * one step. The locks are on a separate file, because closing any descriptor of the database would
 * drop SQLite's own locks on it. The file is not removed: otherwise two processes could lock two
 * files.
 */
#include "sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SETUP_POLL_US = 1000, TURN_POLL_US = 30 };

static bool set_lock(const struct file_lock *lock, int byte, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(lock->fd, F_OFD_SETLK, &range) == 0;
}

db_status file_lock_open(struct file_lock *lock, const char *path, bool shared, bool *ret_alone,
                         db_error *error)
{
    char name[PATH_MAX + 8];
    snprintf(name, sizeof name, "%s-lock", path);
    lock->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock->fd < 0)
        return db_fail(error, DB_UNAVAILABLE, "%.150s: cannot be opened: %s", name,
                       strerror(errno));
    /* A sharer holds the file alone while it sets it up. */
    int64_t until_us = db_now_us() + (shared ? SQLITE_SHARED_OPEN_MS * INT64_C(1000) : 0);
    do {
        if (set_lock(lock, FILE_LOCK_OPEN, F_WRLCK)) {
            *ret_alone = true;
            return DB_OK;
        }
        if (shared && set_lock(lock, FILE_LOCK_OPEN, F_RDLCK)) {
            *ret_alone = false;
            return DB_OK;
        }
        if (errno != EAGAIN && errno != EACCES)
            break;
        if (shared)
            db_sleep_us(SETUP_POLL_US);
    } while (db_now_us() < until_us);
    db_status status =
        errno == EAGAIN || errno == EACCES
            ? db_fail(error, DB_UNAVAILABLE,
                      "%.120s: already open elsewhere; stop that one, or open both as shared "
                      "(seckilld --db-shared, for lessons only)",
                      path)
            : db_fail(error, DB_UNAVAILABLE, "%.150s: cannot be locked: %s", name, strerror(errno));
    file_lock_close(lock);
    return status;
}

db_status file_lock_share(struct file_lock *lock, db_error *error)
{
    if (set_lock(lock, FILE_LOCK_OPEN, F_RDLCK))
        return DB_OK;
    return db_fail(error, DB_UNAVAILABLE, "lock file cannot be shared: %s", strerror(errno));
}

void file_lock_close(struct file_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

/*
 * SQLite's write lock has no queue: a writer that has just released it takes it again before a
 * sleeping waiter looks. So a writer holds the turn while it waits for the write lock. A writer
 * that has just released the lock waits behind it. A stopped process must not stop the others:
 * after SQLITE_TURN_MS a writer goes on without the turn.
 */
bool file_lock_take_turn(struct file_lock *lock)
{
    int64_t until_us = 0;
    while (!set_lock(lock, FILE_LOCK_TURN, F_WRLCK)) {
        int64_t now_us = db_now_us();
        if (until_us == 0)
            until_us = now_us + SQLITE_TURN_MS * INT64_C(1000);
        if (now_us >= until_us)
            return false;
        db_sleep_us(TURN_POLL_US);
    }
    return true;
}

void file_lock_give_turn(struct file_lock *lock)
{
    set_lock(lock, FILE_LOCK_TURN, F_UNLCK);
}
