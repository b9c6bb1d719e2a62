/*
 * The SQLite engine.
 *
 *   sqlite.c              open, close, the engine's table of functions
 *   sqlite_setup.c        journal mode, schema and its version
 *   sqlite_reflush.c      flushes what an earlier process left unflushed
 *   sqlite_conn.c         one connection: settings, prepared statements, errors, waiting when busy
 *   sqlite_wal_vfs.c      gathers the writes of the log
 *   sqlite_shared_vfs.c   shared file: flushes the journal of a killed process
 *   sqlite_lock.c         FILE-lock: which process may open the file, which one writes next
 *   sqlite_queue.c        one caller writes for all
 *   sqlite_checkpoint.c   copies the log into the file
 *   sqlite_writer.c       a group of runs in one transaction
 *   sqlite_reader.c       readers and snapshots
 *   sqlite_read.c         reading rows
 *   sqlite_write.c        changing rows, resets
 *   sqlite_bulk_insert.c  new rows, which gather until the commit
 *   sqlite_audit.c        the rows that the audit reads
 *   sqlite_backup.c       a copy of the file while it is in use
 *   sqlite_archive.c      moves rows out of the ledger
 *   sqlite_migrate.c      a store of an older version
 *
 * WAL (default): SQLite before 3.51.3 can corrupt a WAL database when two connections write or
 * checkpoint at the same instant. So exactly one connection does both, for one thread at a time;
 * readers are opened read-only; and FILE-lock keeps a second process out. Shared file (lessons):
 * rollback journal, any number of processes.
 */
#ifndef DB_SQLITE_H
#define DB_SQLITE_H

#include "engine.h"
#include "sqlite_sql.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdatomic.h>

enum {
    SQLITE_WRITER_CACHE_KB = 8192,
    SQLITE_READER_CACHE_KB = 256,     /* there are as many readers as workers */
    SQLITE_WAL_KEPT_BYTES = 64 << 20, /* a larger log file is cut when it starts over */
    SQLITE_LONG_FACTOR = 12,          /* a log of this times log_pages: a whole checkpoint */
    SQLITE_RESTART_FACTOR = 32,       /* a log of this times log_pages: it waits for readers, ... */
    SQLITE_RESTART_MS = 50,           /* ... at most this long */
    SQLITE_TURN_MS = 20,              /* longest wait for the turn to write, see sqlite_lock.c */
    SQLITE_SHARED_OPEN_MS = 1000      /* wait for another process that is opening the file */
};

/* -- sqlite_conn.c ---------------------------------------------------------------------------- */

struct conn {
    sqlite3 *handle;
    sqlite3_stmt *statements[SQL_COUNT];
    int64_t busy_ms, busy_since_us; /* how long to wait for a lock; start of the present wait */
    uint64_t random;                /* for the sleeps of that wait */
    _Atomic uint64_t *busy_retries; /* counter of the store */
    struct new_rows *new_rows;      /* of the writer; NULL in readers */
    /* The first database error since conn_clear(); sticky, so that no work can overlook it. */
    db_error trouble;
    bool flush_failed; /* set by a failed flush, never cleared */
};

enum conn_kind { CONN_WRITER, CONN_READER };

/* Opens the file and sets up the connection. vfs: NULL for SQLite's own. Call conn_prepare() once
 * the schema exists. */
db_status conn_open(struct conn *conn, const char *path, int flags, const char *vfs,
                    int64_t busy_ms, _Atomic uint64_t *busy_retries, db_error *error);
db_status conn_prepare(struct conn *conn, enum conn_kind kind, db_error *error);
void conn_close(struct conn *conn);

/* Runs SQL text without parameters. Errors go to conn->trouble. */
db_status conn_exec(struct conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs SQL text that answers with one integer. */
db_status conn_query_int(struct conn *conn, const char *sql, int64_t *ret);

/* Steps a bound statement: DB_OK with a row to read columns from (then conn_done()), DB_NOT_FOUND
 * at the end, else trouble. Only on DB_OK does the statement stay active. */
db_status conn_step(struct conn *conn, sqlite3_stmt *statement);
void conn_done(sqlite3_stmt *statement);
/* Runs a bound statement that has no rows to read. */
db_status conn_run(struct conn *conn, sqlite3_stmt *statement);
db_status conn_run_plain(struct conn *conn, enum sqlite_sql sql);

void conn_clear(struct conn *conn);
/* Records an error of SQLite as conn->trouble. Returns its status. */
db_status conn_trouble(struct conn *conn, int sqlite_code);

/* Binds the arguments of a statement. Text is not copied: it must live until the statement has
 * run. */
sqlite3_stmt *conn_bind(struct conn *conn, enum sqlite_sql sql, const struct value *values,
                        size_t n);

/* -- sqlite_bulk_insert.c --------------------------------------------------------------------- */

enum { NEW_KINDS = 3 }; /* answers, orders, ledger rows */

struct kept_cell {
    int64_t number; /* or where its text begins */
    int length;     /* of the text; -1: a number */
};

/* The new rows of one table. */
struct pile {
    struct kept_cell *cells; /* row after row */
    char *texts;
    size_t columns, n_cells, cells_room, texts_used, texts_room;
};

struct new_rows {
    struct pile piles[NEW_KINDS];
    uint64_t insertions; /* calls of new_rows_insert() */
    bool one_by_one;     /* each is inserted at once */
    bool missed;         /* a row was not inserted: the transaction must be undone */
};

struct new_rows_mark {
    size_t n_cells[NEW_KINDS];
    bool any;
    uint64_t insertions;
};

db_status new_rows_open(struct conn *conn); /* before statements are prepared */
void new_rows_close(struct conn *conn);     /* after the handle */
/* Starts a transaction, without new rows. */
void new_rows_begin(struct conn *conn, bool one_by_one);
bool new_rows_any(const struct conn *conn);
/* Inserts the gathered rows. Sets missed if a row was not inserted. Returns DB_OK or trouble. */
db_status new_rows_insert(struct conn *conn);
/* new_rows_cut() drops the rows that came after the mark. Call it once the database has undone
 * what was inserted since. */
struct new_rows_mark new_rows_mark(const struct conn *conn);
void new_rows_cut(struct conn *conn, const struct new_rows_mark *mark);

/* -- sqlite_wal_vfs.c ------------------------------------------------------------------------- */

/* Returns the name of a VFS for the writing connection in WAL mode. NULL: no memory; SQLite's own
 * VFS works, too, but is slower. Any thread. */
const char *log_gathering_vfs(void);

/* -- sqlite_shared_vfs.c ---------------------------------------------------------------------- */

/* Returns the name of a VFS for all connections of a shared file. Any thread. */
const char *commit_marking_vfs(void);

/* -- sqlite_lock.c ---------------------------------------------------------------------------- */

enum { FILE_LOCK_OPEN, FILE_LOCK_TURN, FILE_LOCK_FLUSHER, FILE_LOCK_WRITER }; /* its bytes */

struct file_lock {
    int fd;
};

/* Locks the file for this process alone. If it is shared and another process has it, joins that
 * one: *ret_alone is false, and the other one has set up the file. DB_UNAVAILABLE: another process
 * has it alone, or FILE-lock cannot be used. */
db_status file_lock_open(struct file_lock *lock, const char *path, bool shared, bool *ret_alone,
                         db_error *error);
db_status file_lock_share(struct file_lock *lock, db_error *error); /* lets other sharers in */
void file_lock_close(struct file_lock *lock);
/* Waits for the turn to write to a shared file. False after SQLITE_TURN_MS: write without it. */
bool file_lock_take_turn(struct file_lock *lock);
void file_lock_give_turn(struct file_lock *lock);

/* -- the store -------------------------------------------------------------------------------- */

/* One db_run_many() call, on the stack of its thread. */
struct caller {
    size_t undecided; /* runs without a status; the leader counts down */
    bool leads;       /* when woken: true: it leads; false: all its runs are decided */
    sem_t woken;
};

/* One work of a caller, on its stack. Invalid once the caller is woken without the lead. */
struct run {
    struct run *next;
    struct caller *caller;
    db_job *job;
};

struct counters {
    _Atomic uint64_t commits, runs, rollbacks, busy_retries, checkpoints, group_largest,
        commit_us_total, waiting;
};

struct sqlite_store {
    db base;
    char path[PATH_MAX];
    db_options options;
    struct file_lock lock;
    struct counters counters;

    pthread_mutex_t ping_mutex;
    struct conn ping;

    /* the leader uses these */
    struct conn conn;
    _Atomic int wal_frames; /* the checkpointer also reads it without the lead */
    int checkpoint_at;

    pthread_t checkpointer;
    struct conn mark;            /* used by the checkpointer only, as is marked */
    bool marked;                 /* mark is in a snapshot */
    pthread_mutex_t queue_mutex; /* protects all members below */
    struct run *queue_head, **queue_tail;
    bool led;                 /* there is a leader; otherwise the queue is empty */
    bool checkpoint_due;      /* the checkpointer leads */
    bool whole_due;           /* a whole checkpoint follows the next commit */
    bool flushing;            /* the checkpointer flushes the file, without the lead */
    atomic_bool flush_failed; /* the disk may have lost pages: no more writes */
    bool stopping;
    pthread_cond_t checkpointer_called;
};

struct sqlite_reader {
    db_reader base;
    struct sqlite_store *store;
    struct conn conn;
    bool in_snapshot;
};

struct sqlite_tx {
    db_tx base;
    struct conn *conn;
    bool others_wrote; /* earlier runs must survive an undo of this one: */
    bool savepoint;    /* one was set before the first write of this run */
};

/* sqlite_reflush.c: makes durable what an earlier process left in log and journal. Called before
 * SQLite reads them, by the only process that has the file. Another program's file is not touched.
 */
db_status reflush_file(struct conn *conn, const char *path, db_error *error);
/* Does so for the journal only. The caller holds the reserved lock. Returns SQLite's code. Only
 * SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC say that the disk may have lost pages. After any
 * other (no room, no descriptor, ...) the caller may try again. */
int reflush_journal(const char *path);

/* sqlite_setup.c: journal mode, and the schema if the file is new. */
db_status setup_file(struct sqlite_store *store, bool alone, db_error *error);

/* sqlite_queue.c */
db_status writer_start(struct sqlite_store *store, db_error *error);
void writer_stop(struct sqlite_store *store); /* after everything queued is done */
void writer_run(db *db, db_job *jobs, size_t n);
/* The leader calls it with the mutex. The first caller in the queue leads next, if there is one. */
void queue_give_lead(struct sqlite_store *store);

/* sqlite_checkpoint.c */
/* True after a failed flush: nothing may be written. error (may be NULL) says why. Any thread. */
bool flush_has_failed(const struct sqlite_store *store, db_error *error);
db_status checkpointer_start(struct sqlite_store *store, db_error *error);
void checkpointer_stop(struct sqlite_store *store); /* after everything queued is done */
/* The leader calls it with the mutex. True: the checkpointer leads next, a checkpoint is due. */
bool checkpoint_call(struct sqlite_store *store);

/* sqlite_writer.c: runs a group in one transaction. Gives each run its status. */
void writer_commit(struct sqlite_store *store, struct run *group);
/* Call before each write. Sets a savepoint if one is needed. Gives the connection. */
db_status tx_begin_write(db_tx *tx, struct conn **ret_conn);

/* Call before reading or changing rows that this transaction may have added. */
db_status tx_insert_new_rows(db_tx *tx);

/* sqlite_read.c */
/* Reads the current row of a statement. */
db_status conn_row(struct conn *conn, sqlite3_stmt *at, const struct row_type *type, void *ret);
db_status conn_read_row(struct conn *conn, enum db_table table, const char *key, void *ret);
db_status conn_find_answers(struct conn *conn, const char *const *keys, size_t n, bool *ret_found);
db_status conn_read_bought(struct conn *conn, const db_item *item, const char *user_id,
                           int64_t *ret_quantity);
db_status conn_read_sold(struct conn *conn, const db_item *item, int64_t *ret_quantity);
db_status conn_read_bite(struct conn *conn, const char *after, int64_t before_us, db_bite *ret);
db_status conn_read_refusals(struct conn *conn, int64_t keep, db_refusals *ret);
db_status conn_read_expired(struct conn *conn, int64_t now_us, const db_expired *after,
                            db_expired *ret, size_t max, size_t *ret_n);

/* sqlite_reader.c: a connection that only reads; the engine's reads */
db_status conn_open_reading(struct sqlite_store *store, struct conn *conn, db_error *error);
db_status sqlite_reader_open(db *db, db_reader **ret, db_error *error);
void sqlite_reader_close(db_reader *reader);
db_status sqlite_reader_begin(db_reader *reader);
void sqlite_reader_end(db_reader *reader);
db_status sqlite_read_row(db_reader *reader, enum db_table table, const char *key, void *ret);
db_status sqlite_find_answers(db_reader *reader, const char *const *keys, size_t n,
                              bool *ret_found);
db_status sqlite_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                             size_t n, int64_t *ret_quantities);
db_status sqlite_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity);
db_status sqlite_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                              db_expired *ret, size_t max, size_t *ret_n);
db_status sqlite_read_bite(db_reader *reader, const char *after, int64_t before_us, db_bite *ret);
db_status sqlite_read_refusals(db_reader *reader, int64_t keep, db_refusals *ret);
db_status sqlite_read_money(db_reader *reader, int (*each)(void *arg, const db_ledger_row *row),
                            void *arg, db_error *error);
db_status sqlite_read_unpaid(db_reader *reader, int64_t *ret);
db_status sqlite_read_list(db_reader *reader, enum db_list list, const struct value *args, size_t n,
                           int (*each)(void *arg, const void *row), void *arg);
db_status sqlite_feed_end(db_reader *reader, db_feed_place *ret);
db_status sqlite_audit(db_reader *reader, const char *resource,
                       int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error);
db_status sqlite_tx_read_row(db_tx *tx, enum db_table table, const char *id, bool for_update,
                             void *ret);
db_status sqlite_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                                int64_t *ret_quantity);

/* sqlite_write.c, sqlite_bulk_insert.c: the engine's writes */
db_status sqlite_hold_epoch(db_tx *tx, const char *order_id, int64_t item_epoch,
                            const char *item_guard);
db_status sqlite_hold_item(db_tx *tx, const char *id, db_item *ret);
db_status sqlite_set_item(db_tx *tx, const db_item *row);
db_status sqlite_set_account(db_tx *tx, const db_account *row);
db_status sqlite_clear_fences(db_tx *tx, const char *item_id);
db_status sqlite_most_bought(db_tx *tx, const db_item *item, int64_t *ret_quantity);
db_status sqlite_put(db_tx *tx, enum db_table table, const struct new_value *row,
                     const db_put *how);
db_status sqlite_add(db_tx *tx, enum db_table table, const struct addition *what,
                     struct added *ret);
db_status sqlite_chain(db_tx *tx, enum db_table table, const char *id, const char *chain);
db_status sqlite_move_order(db_tx *tx, const db_order *row, db_order_state from, db_order_state to,
                            int64_t *ret_version);
db_status sqlite_insert(db_tx *tx, enum db_table table, const void *row);
db_status sqlite_reset(db_tx *tx, enum db_table table, const void *fresh, void *ret_old, void *ret);
int64_t sqlite_now_us(const db_tx *tx);
db_status sqlite_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                          int64_t done);
db_status sqlite_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us);
db_status sqlite_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n);
db_status sqlite_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret);

/* sqlite_backup.c */
db_status sqlite_backup(const char *address, const char *file, db_error *error);

/* sqlite_archive.c */
db_status sqlite_put_carried(db_tx *tx, const db_carried *carried);
db_status sqlite_carry_order(db_tx *tx, const char *order_id, int64_t delta);
db_status sqlite_move_part(db_tx *tx, const db_archive_part *part);

/* sqlite_migrate.c */
db_status sqlite_migrate(const char *address, db_versions *ret, db_error *error);

/* sqlite_audit.c: reads in the connection's snapshot. */
db_status conn_read_money(struct conn *conn, int (*each)(void *arg, const db_ledger_row *row),
                          void *arg);
db_status conn_read_unpaid(struct conn *conn, int64_t *ret);
db_status conn_audit(struct conn *conn, const char *resource,
                     int (*each)(void *arg, const db_audit_row *row), void *arg);

/* sqlite_lists.c */
db_status conn_read_list(struct conn *conn, enum db_list list, const struct value *args, size_t n,
                         int (*each)(void *arg, const void *row), void *arg);
db_status conn_feed_end(struct conn *conn, db_feed_place *ret);
db_status sqlite_feed_transaction(db_reader *reader, int64_t id, int64_t *ret);

#endif
