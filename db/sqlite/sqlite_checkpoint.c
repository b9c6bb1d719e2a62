/*
 * A checkpoint copies the log into the file. The checkpointer thread leads meanwhile, so no caller
 * writes. The callers whose commit made it due already have their answers.
 *
 * SQLite flushes the file once all of the log is copied, because the next commit may then start the
 * log over (https://sqlite.org/wal.html#checkpointing). The flush takes longer than the copying, as
 * the pages lie all over the file, and all writers would wait for it. So most checkpoints copy a
 * part. A connection that only reads, the mark, stays in a snapshot as old as the last
 * checkpoint, and SQLite copies no further than that. After a part SQLite neither flushes nor lets
 * the log start over: this thread flushes the file while others commit. When the log has become
 * long, the mark's snapshot ends right after such a flush. A whole checkpoint then has little to
 * copy and to flush.
 *
 * After a failed flush the kernel marks pages clean that it could not write
 * (https://wiki.postgresql.org/wiki/Fsync_Errors), and SQLite does not copy a part again. Only the
 * log still has these pages:
 *   - The log is kept, also when the store is closed.
 *   - Nothing more is written, because pages that are read again may be old ones.
 *   - The next start recovers the log and copies all of it.
 */
#include "sqlite.h"

#include <string.h>

static int on_wal_commit(void *arg, sqlite3 *handle, const char *name, int frames)
{
    struct sqlite_store *store = arg;
    (void)handle;
    (void)name;
    if (frames < atomic_load(&store->wal_frames)) /* the log has started over */
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

/* After any other error the next checkpoint tries again. */
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

/* A long read keeps the log from starting over: the log grows, and a later checkpoint tries again.
 * If the log is large, all writers wait up to SQLITE_RESTART_MS for the read to end. */
static void copy_whole(struct sqlite_store *store)
{
    bool large = has_pages(store, SQLITE_RESTART_FACTOR);
    give_up_mark(store);
    copy(store, large ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE);
}

/* Copies up to the mark, if there is one, and sets a new mark. Returns whether it copied. */
static bool copy_part(struct sqlite_store *store)
{
    bool marked = store->marked;
    if (marked)
        copy(store, SQLITE_CHECKPOINT_PASSIVE);
    set_mark(store);
    return marked;
}

/* Called without the lead, so it uses the mark's connection. */
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

/* The caller leads. Returns whether the file must be flushed. */
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

/* A shared file has no log: its thread only waits for the stop. */
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
    pthread_join(store->checkpointer, NULL); /* it ends once there is no leader */
    pthread_cond_destroy(&store->checkpointer_called);
    give_up_mark(store);
    conn_close(&store->mark);
}
