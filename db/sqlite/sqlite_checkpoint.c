/*
 * Checkpoints copy the log into the file. A thread of their own leads meanwhile, so that no caller
 * writes. The callers whose commit called for the checkpoint have their answers already.
 *
 * SQLite flushes the file once all of the log has been copied, since the next commit may then start
 * the log over (https://sqlite.org/wal.html#checkpointing). A flush of pages that lie all over the
 * file takes longer than the copying, and all writers would wait for it. Therefore most checkpoints
 * copy a part. A connection that only reads, the mark, stays in a snapshot as old as the last
 * checkpoint, and SQLite copies no further than that. After a part SQLite neither flushes nor lets
 * the log start over: this thread flushes the file while others commit. When the log has become
 * long, the mark is given up right after such a flush. A whole checkpoint then copies and flushes
 * the little that is left.
 *
 * After a flush that failed the kernel takes the pages for clean that it could not write
 * (https://wiki.postgresql.org/wiki/Fsync_Errors), and SQLite does not copy a part again. What is
 * still to be had then is the log, from its beginning: it is kept, also when the store is closed;
 * nothing is written any more, as pages that are read again may be old ones; and the next start
 * recovers the log and copies all of it.
 */
#include "sqlite.h"

#include <string.h>

static int on_wal_commit(void *arg, sqlite3 *handle, const char *name, int frames)
{
    struct sqlite_store *store = arg;
    (void)handle;
    (void)name;
    if (frames < atomic_load(&store->wal_frames)) /* it has started over */
        store->checkpoint_at = store->options.log_pages;
    atomic_store(&store->wal_frames, frames);
    return SQLITE_OK;
}

/* -- the mark --------------------------------------------------------------------------------- */

static void give_up_mark(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->mark.handle))
        conn_run_plain(&store->mark, SQL_COMMIT);
    store->marked = false;
}

/* The snapshot begins with the first read. */
static void set_mark(struct sqlite_store *store)
{
    give_up_mark(store);
    conn_clear(&store->mark);
    store->marked = conn_run_plain(&store->mark, SQL_BEGIN_READ) == DB_OK &&
                    conn_run_plain(&store->mark, SQL_PING) == DB_OK;
    if (!store->marked)
        give_up_mark(store);
}

/* -- copying ---------------------------------------------------------------------------------- */

/* An error of another kind is tried again with the next checkpoint. */
static void copy(struct sqlite_store *store, int mode)
{
    struct conn *conn = &store->conn;
    int64_t busy_ms = conn->busy_ms;
    conn->busy_ms = SQLITE_RESTART_MS;
    int code = sqlite3_wal_checkpoint_v2(conn->handle, NULL, mode, NULL, NULL);
    conn->busy_ms = busy_ms;
    if (code == SQLITE_IOERR_FSYNC) /* of the log or of the file */
        atomic_store(&store->flush_failed, true);
    atomic_fetch_add(&store->counters.checkpoints, 1);
}

static bool has_pages(const struct sqlite_store *store, int factor)
{
    return atomic_load(&store->wal_frames) / factor >= store->options.log_pages;
}

/* A long read keeps the log from starting over. The log grows, and this is tried again later. When
 * the log is large, all writers wait a moment for the read to end. */
static void copy_whole(struct sqlite_store *store)
{
    bool large = has_pages(store, SQLITE_RESTART_FACTOR);
    give_up_mark(store);
    copy(store, large ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE);
}

/* Up to the mark, if there is one; what has come since is for the next time. */
static bool copy_part(struct sqlite_store *store)
{
    bool marked = store->marked;
    if (marked)
        copy(store, SQLITE_CHECKPOINT_PASSIVE);
    set_mark(store);
    return marked;
}

/* Without the lead, hence through the mark's connection. */
static bool flush_file(struct sqlite_store *store)
{
    sqlite3_file *file;
    int code = sqlite3_file_control(store->mark.handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code == SQLITE_OK)
        code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    return code == SQLITE_OK;
}

bool flush_has_failed(const struct sqlite_store *store, db_error *error)
{
    if (!atomic_load(&store->flush_failed))
        return false;
    db_fail(error, DB_FAILED,
            "%.120s: a flush failed, so the disk may have lost pages of it; its log or journal has "
            "them: look at the disk, then start again",
            store->path);
    return true;
}

/* -- the thread ------------------------------------------------------------------------------- */

bool checkpoint_call(struct sqlite_store *store)
{
    store->checkpoint_due =
        !store->flushing && !atomic_load(&store->flush_failed) &&
        (store->whole_due || atomic_load(&store->wal_frames) >= store->checkpoint_at);
    if (store->checkpoint_due)
        pthread_cond_signal(&store->checkpointer_called);
    return store->checkpoint_due;
}

/* Leads. Returns whether the file is to be flushed. */
static bool checkpoint(struct sqlite_store *store, bool whole)
{
    bool copied_part = false;
    if (whole)
        copy_whole(store);
    else
        copied_part = copy_part(store);
    store->checkpoint_at = atomic_load(&store->wal_frames) + store->options.log_pages;
    return copied_part;
}

static void *checkpointer_main(void *arg)
{
    struct sqlite_store *store = arg;
    pthread_mutex_lock(&store->queue_mutex);
    for (;;) {
        while (!store->checkpoint_due && (store->led || !store->stopping))
            pthread_cond_wait(&store->checkpointer_called, &store->queue_mutex);
        if (!store->checkpoint_due)
            break;
        bool whole = store->whole_due || (!store->marked && has_pages(store, SQLITE_LONG_FACTOR));
        pthread_mutex_unlock(&store->queue_mutex);
        bool flushes = checkpoint(store, whole);
        pthread_mutex_lock(&store->queue_mutex);
        store->checkpoint_due = store->whole_due = false;
        store->flushing = flushes;
        queue_give_lead(store);
        if (!flushes)
            continue;
        pthread_mutex_unlock(&store->queue_mutex);
        bool flushed = flush_file(store);
        pthread_mutex_lock(&store->queue_mutex);
        store->flushing = false;
        if (!flushed)
            atomic_store(&store->flush_failed, true);
        store->whole_due = has_pages(store, SQLITE_LONG_FACTOR);
    }
    pthread_mutex_unlock(&store->queue_mutex);
    return NULL;
}

/* -- life ------------------------------------------------------------------------------------- */

/* A shared file has no log: its thread waits for the end. */
db_status checkpointer_start(struct sqlite_store *store, db_error *error)
{
    db_status status = conn_open_reading(store, &store->mark, error);
    if (status != DB_OK)
        return status;
    store->checkpoint_at = store->options.log_pages;
    if (!store->options.shared_file) /* replaces SQLite's own checkpoints */
        sqlite3_wal_hook(store->conn.handle, on_wal_commit, store);
    pthread_cond_init(&store->checkpointer_called, NULL);
    int code = pthread_create(&store->checkpointer, NULL, checkpointer_main, store);
    if (code == 0) {
        pthread_setname_np(store->checkpointer, "checkpointer");
        return DB_OK;
    }
    pthread_cond_destroy(&store->checkpointer_called);
    conn_close(&store->mark);
    return db_fail(error, DB_FAILED, "the checkpoint thread cannot be started: %s", strerror(code));
}

void checkpointer_stop(struct sqlite_store *store)
{
    pthread_mutex_lock(&store->queue_mutex);
    store->stopping = true;
    pthread_cond_signal(&store->checkpointer_called);
    pthread_mutex_unlock(&store->queue_mutex);
    pthread_join(store->checkpointer, NULL); /* it stays until nobody leads */
    pthread_cond_destroy(&store->checkpointer_called);
    give_up_mark(store);
    conn_close(&store->mark);
}
