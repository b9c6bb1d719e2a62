/*
 * A group of runs in one transaction. Each can be undone alone. If an earlier run of the
 * transaction has written, a savepoint is set before the run's first write. Otherwise an undo ends
 * the transaction, which has nothing else. New rows gather meanwhile. Rows that are not inserted
 * yet need no undo.
 */
#include "schema.h"
#include "sqlite.h"

/* -- deciding --------------------------------------------------------------------------------- */

static void decide(struct run *run, db_status status, const char *message)
{
    run->job->status = status;
    if (status != DB_OK)
        db_fail(run->job->error, status, "%s", message);
}

static void fail_group(struct run *group, const db_error *why)
{
    for (struct run *run = group; run; run = run->next) {
        /* A run that failed by itself is certainly undone. */
        bool known = why->status == DB_UNKNOWN && run->job->status != DB_OK;
        decide(run, known ? DB_FAILED : why->status, why->message);
    }
}

/* -- transactions ----------------------------------------------------------------------------- */

static db_status begin(struct sqlite_store *store)
{
    bool turn = store->options.shared_file && file_lock_take_turn(&store->lock);
    db_status status = conn_run_plain(&store->conn, SQL_BEGIN_WRITE);
    if (turn)
        file_lock_give_turn(&store->lock);
    return status;
}

/* An error may have ended the transaction already. */
static void rollback(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->conn.handle))
        conn_run_plain(&store->conn, SQL_ROLLBACK);
}

/*
 * After a failed COMMIT.
 *
 * WAL: the log may have all of its frames, the last one included. A flush failed, or there was no
 * memory for the log's index, which grows after the frames are written. The running process ignores
 * these frames, but recovery after a crash would not. Another commit is written over the first of
 * them. Each frame's checksum covers the frames before it, so none of them is valid then. If that
 * commit fails, too, the outcome is unknown.
 *
 * Rollback journal: the call that failed may have come before or after the journal was finished.
 */
static bool certainly_undone(struct sqlite_store *store, int sqlite_code)
{
    const int kind = sqlite_code & 0xff;
    if (kind == SQLITE_FULL || kind == SQLITE_BUSY) /* stopped before the last write */
        return true;
    if (store->options.shared_file)
        return false;
    return conn_exec(&store->conn, "PRAGMA user_version = %d", SCHEMA_VERSION) == DB_OK;
}

static db_status commit(struct sqlite_store *store)
{
    struct conn *conn = &store->conn;
    int64_t start_us = db_now_us();
    db_status status = conn_run_plain(conn, SQL_COMMIT);
    db_count(&store->counters.commit_us_total, (uint64_t)(db_now_us() - start_us));
    if (status == DB_OK) {
        db_count(&store->counters.commits, 1);
        return DB_OK;
    }
    int code = sqlite3_extended_errcode(conn->handle);
    rollback(store);
    if (certainly_undone(store, code))
        return status;
    return conn->trouble.status = DB_UNKNOWN;
}

db_status tx_begin_write(db_tx *base, struct conn **ret_conn)
{
    struct sqlite_tx *tx = (struct sqlite_tx *)base;
    if (tx->conn->trouble.status != DB_OK)
        return tx->conn->trouble.status;
    if (tx->others_wrote && !tx->savepoint) {
        db_status status = conn_run_plain(tx->conn, SQL_SAVEPOINT);
        if (status != DB_OK)
            return status;
        tx->savepoint = true;
    }
    *ret_conn = tx->conn;
    return DB_OK;
}

db_status tx_insert_new_rows(db_tx *base)
{
    struct conn *conn = ((struct sqlite_tx *)base)->conn;
    if (!new_rows_any(conn))
        return conn->trouble.status;
    db_status status = tx_begin_write(base, &conn);
    return status == DB_OK ? new_rows_insert(conn) : status;
}

/* Undoes what one run has written. */
static void undo(struct sqlite_store *store, struct sqlite_tx *tx)
{
    db_count(&store->counters.rollbacks, 1);
    if (tx->savepoint) {
        conn_run_plain(tx->conn, SQL_UNDO);
    } else {
        rollback(store);
        begin(store);
    }
}

/* -- groups ----------------------------------------------------------------------------------- */

/* Runs one work in the open transaction. False: the database failed, and the transaction with it.
 */
static bool run_work(struct sqlite_store *store, struct run *run, bool others_wrote)
{
    struct conn *conn = &store->conn;
    int64_t changes = sqlite3_total_changes64(conn->handle);
    const struct new_rows_mark mark = new_rows_mark(conn);
    struct sqlite_tx tx = {.base = {&db_engine_sqlite}, .conn = conn, .others_wrote = others_wrote};
    db_status status = run->job->work(&tx.base, run->job->arg);
    if (conn->trouble.status == DB_OK && status != DB_OK) {
        if (sqlite3_total_changes64(conn->handle) != changes)
            undo(store, &tx);
        new_rows_cut(conn, &mark);
    }
    if (conn->trouble.status == DB_OK && tx.savepoint)
        conn_run_plain(conn, SQL_RELEASE);
    if (conn->trouble.status != DB_OK)
        return false;
    decide(run, status, db_status_text(status));
    return true;
}

/* Runs all works in the open transaction. Returns the run that met a database error, or NULL. */
static struct run *run_works(struct sqlite_store *store, struct run *group)
{
    struct conn *conn = &store->conn;
    int64_t changes_at_begin = sqlite3_total_changes64(conn->handle);
    for (struct run *run = group; run; run = run->next) {
        /* On a shared file an undo must not end the transaction. Another process could write
         * between the reads of earlier runs and their inserts, which may still gather. */
        bool others_wrote = sqlite3_total_changes64(conn->handle) != changes_at_begin ||
                            (store->options.shared_file && run != group);
        if (!run_work(store, run, others_wrote))
            return run;
    }
    if (new_rows_any(conn))
        new_rows_insert(conn);
    return NULL;
}

/* SQLite undoes a transaction by reading its journal. After a failed flush some kernels return what
 * the disk has, not what was written. Then this connection's cached pages may be wrong. */
static void note_flush(struct sqlite_store *store)
{
    if (store->options.shared_file && store->conn.flush_failed)
        atomic_store(&store->flush_failed, true);
}

/* Rolls all back after a database error and returns its run. NULL: the group is decided. */
static struct run *run_group(struct sqlite_store *store, struct run *group, bool one_by_one)
{
    struct conn *conn = &store->conn;
    db_error error;
    note_flush(store);
    if (flush_has_failed(store, &error)) {
        fail_group(group, &error);
        return NULL;
    }
    conn_clear(conn);
    new_rows_begin(conn, one_by_one);
    if (begin(store) != DB_OK) {
        rollback(store);
        fail_group(group, &conn->trouble);
        return NULL;
    }
    struct run *failed = run_works(store, group);
    if (conn->new_rows->missed && !one_by_one) {
        db_count(&store->counters.rollbacks, 1);
        rollback(store);
        return run_group(store, group, true);
    }
    if (failed)
        rollback(store);
    else if (commit(store) != DB_OK)
        fail_group(group, &conn->trouble);
    return failed;
}

/* A database error in one work ends the transaction of all. That work gets the error. Each of the
 * others runs again, alone. */
void writer_commit(struct sqlite_store *store, struct run *group)
{
    struct run *failed = run_group(store, group, false);
    if (!failed)
        return;
    decide(failed, store->conn.trouble.status, store->conn.trouble.message);
    for (struct run *run = group, *next; run; run = next) {
        next = run->next;
        run->next = NULL; /* a group of its own */
        if (run != failed && run_group(store, run, false))
            decide(run, store->conn.trouble.status, store->conn.trouble.message);
        run->next = next;
    }
}
