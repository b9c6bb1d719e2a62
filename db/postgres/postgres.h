/*
 * The PostgreSQL engine: any number of instances of the service on one database.
 *
 *   postgres.c          open, close, the engine's table of functions
 *   postgres_url.c      the address, and our own parameters in it
 *   postgres_session.c  one connection: connecting, settings, schema, prepared statements
 *   postgres_wire.c     sends statements, reads answers: pipelining, deadlines
 *   postgres_error.c    records errors of a connection
 *   postgres_bulk.c     sends consecutive statements of one kind as one
 *   postgres_pool.c     the connections, each handed out for one use
 *   postgres_run.c      write transactions: commit, retries, what is known after a failure
 *   postgres_settle.c   the outcome of a COMMIT without an answer
 *   postgres_reader.c   readers and snapshots
 *   postgres_read.c     reading rows
 *   postgres_write.c    changing rows, new rows, resets
 *   postgres_audit.c    the rows that the audit reads
 *
 * A thread has a connection only while it uses one, so no more are open than threads are busy.
 *
 * Writes are pipelined. They are sent without waiting for their answers. The answers are read
 * together, at the next read or before COMMIT. Consecutive new rows of one table are sent as one
 * statement. If a write was refused, the work is undone and run again one statement at a time, to
 * learn which one and why.
 */
#ifndef DB_POSTGRES_H
#define DB_POSTGRES_H

#include "engine.h"
#include "postgres_sql.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    PG_URI_MAX = 1024,
    PG_POOL_MAX = 1024,         /* of the parameter pool=N */
    PG_POOL_DEFAULT = 40,       /* two instances fit a server with its 100 connections */
    PG_QUEUE_MAX = 256,         /* statements sent before their answers are read */
    PG_ARGS_MAX = 24,           /* of one statement */
    PG_GATHER_MAX = 128,        /* statements that are sent as one */
    PG_CONNECT_MS = 2000,       /* until a new connection is ready for use */
    PG_READ_MS = 3000,          /* an answer that waits for no lock */
    PG_ANSWER_SLACK_MS = 1000,  /* waited beyond the server's own limits; then it counts as dead */
    PG_AUDIT_ANSWER_MS = 60000, /* one statement of an audit */
    PG_RERUNS_MAX = 20          /* of one work, after serialization failures and deadlocks */
};

enum { /* of pg_type.dat */
       PG_TYPE_BIGINT = 20,
       PG_TYPE_TEXT = 25,
       PG_TYPE_TEXTS = 1009,
       PG_TYPE_BIGINTS = 1016
};

/* -- postgres_bulk.c -------------------------------------------------------------------------- */

/* The values of one argument, as they are sent. */
struct pg_column {
    char *bytes;
    size_t used, room;
};

struct gather {
    enum postgres_sql sql;
    int n; /* statements */
    bool expects_one;
    struct pg_column columns[PG_ARGS_MAX];
};

/* Adds a statement's arguments. False: no memory. */
bool gather_add(struct gather *gather, const struct value *args, size_t n);
/* The arguments of its only statement. The values point into the gather. */
void gather_one(const struct gather *gather, const char *types, const char **values, int *lengths);
/* The arguments of all its statements, each as an array. The values point into the gather. */
void gather_arrays(struct gather *gather, const char *types, const char **values, int *lengths);
void gather_free(struct gather *gather);

/* -- postgres_wire.c -------------------------------------------------------------------------- */

/* pg_advisory_xact_lock(): one instance at a time checks, creates or migrates the tables. */
#define SCHEMA_LOCK "1589735741"

struct session {
    PGconn *handle;
    int64_t backend, backend_start_us; /* the server's process, see db_commit_id */
    int64_t clock_us;                  /* the server's clock minus db_now_us() */
    int64_t answer_ms;                 /* wait for an answer at most */
    const db_reader *asks;             /* its stop() is asked while waiting; NULL: nobody's */
    struct gather gather;              /* statements that are not sent yet */
    int queued;                        /* statements sent, their answers not read yet */
    int expects[PG_QUEUE_MAX];         /* rows that each must change (0: any number) */
    bool missed;                       /* one changed another number of rows */
    int unread_ends; /* synchronisation points of session_send_end() not read yet */
    bool lost;       /* unusable */
    bool again;      /* trouble is a serialization failure or a deadlock */
    /* The first database error since session_clear(); sticky, so that no work can overlook it. */
    db_error trouble;
};

/* Sends a prepared statement, at once or together with the next ones of its kind. The next
 * session_sync(), session_read() or session_ask() reads its answer. expects_one: if it does not
 * change exactly one row, session->missed is set. */
void session_queue(struct session *session, enum postgres_sql sql, const struct value *args,
                   size_t n, bool expects_one);
/* Reads all answers: DB_OK or trouble. */
db_status session_sync(struct session *session);
/* Sends a statement, reads all answers and gives the answer of this one: DB_OK with *ret (the
 * caller clears it), DB_NOT_FOUND for no rows, or trouble. */
db_status session_ask(struct session *session, enum postgres_sql sql, const struct value *args,
                      size_t n, PGresult **ret);
/* The same without a new statement: gives the answer of the last queued one. */
db_status session_read(struct session *session, PGresult **ret);
/* Sends COMMIT or ROLLBACK and does not wait. The connection's next use skips the answer. */
void session_send_end(struct session *session, enum postgres_sql sql);
/* Runs SQL text and gives the last result. Only before pipeline mode. ret may be NULL. */
db_status session_exec(struct session *session, const char *sql, PGresult **ret);
/* Prepares all statements in one round trip. */
db_status session_prepare(struct session *session);

/* Waits for the socket; false at the deadline, or when the reader that asks is to stop: then the
 * session is lost. */
bool session_wait(struct session *session, short events, int64_t deadline_us);

/* postgres_error.c */
void session_clear(struct session *session);
/* Records that the reader ended its read. Nobody reads the answer, so the connection is unusable.
 */
void session_interrupt(struct session *session);
/* Records why a connection is unusable. */
db_status session_lose(struct session *session, const char *why);
/* Records an answer that no server with our tables gives. */
db_status session_bad_answer(struct session *session, const char *what);
/* Records that the work must run again, as after a serialization failure. */
db_status session_run_again(struct session *session, const char *why);
/* Records a column with a value that this program never stores. */
db_status session_damage(struct session *session, const struct column *column);
/* Like session_lose(), with libpq's reason why it could not connect. */
void session_refused(struct session *session);
/* Records the server's error. of_many: in many statements sent as one. There a key that is taken
 * means that one of these writes is refused, but not which one: it sets session->missed. */
void session_note_error(struct session *session, const PGresult *result, bool of_many);

/* Reads a bigint column. Anything else gives 0 and trouble: check session->trouble after the last
 * cell of a row. */

int64_t cell_int(struct session *session, const PGresult *result, int row, int at);
/* -- postgres_url.c, postgres_session.c, postgres_pool.c -------------------------------------- */

struct pg_target {
    char uri[PG_URI_MAX];  /* for libpq */
    const char *isolation; /* SQL name */
    int pool_max;
};

/* "//USER@HOST:PORT/DATABASE?isolation=serializable&pool=40": what follows "postgres:". */
db_status pg_target_parse(const char *address, struct pg_target *ret, db_error *error);

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    struct session *idle[PG_POOL_MAX]; /* used last on top */
    int n_idle, n_open;
    bool away, probing; /* the last attempt to connect failed; one caller is trying again */
    db_error away_error;
};

struct pg_counters {
    _Atomic uint64_t commits, runs, rollbacks, reruns, commit_us_total, waiting;
};

struct pg_store {
    db base;
    db_options options;
    struct pg_target target;
    struct pool pool;
    struct pg_counters counters;
};

/* Connects, and no more: before pipeline mode, without prepared statements. */
db_status session_connect(const struct pg_store *store, struct session **ret, db_error *error);
/* Connects; with_schema: creates or checks the tables first. */
db_status session_open(const struct pg_store *store, bool with_schema, struct session **ret,
                       db_error *error);
void session_close(struct session *session);

void pool_open(struct pool *pool);
void pool_close(struct pg_store *store); /* waits until all connections are given back */
/* Gives a connection without trouble. DB_BUSY: all stayed in use for busy_ms. */
db_status pool_take(struct pg_store *store, int64_t answer_ms, struct session **ret,
                    db_error *error);
void pool_give(struct pg_store *store, struct session *session);

/* -- postgres_run.c --------------------------------------------------------------------------- */

struct pg_tx {
    db_tx base;
    struct session *session;
    bool begun;      /* BEGIN is sent with the first statement */
    bool one_by_one; /* not pipelined */
};

void pg_run(db *db, db_job *jobs, size_t n);
/* postgres_settle.c */
db_status pg_settle(db *db, const db_commit_id *commit, int64_t wait_ms, db_error *error);
/* Gives the transaction's connection, BEGIN queued. Returns its trouble. */
db_status tx_session(db_tx *tx, struct session **ret);
/* As tx_session(), for a transaction that begins by holding an item: at "read committed", whatever
 * the level of the store. Above it the snapshot is older than the lock, and CLEAR_FENCES would miss
 * a fence that was committed meanwhile. */
db_status tx_session_to_hold(db_tx *tx, struct session **ret);
/* Runs a write without results. expects_one: it must change one row. DB_REFUSED: it did not. A
 * pipelined write returns DB_OK at first. */
db_status tx_write(db_tx *tx, enum postgres_sql sql, const struct value *args, size_t n,
                   bool expects_one);

/* postgres_archive.c */
db_status pg_put_carried(db_tx *tx, const db_carried *carried);
db_status pg_carry_order(db_tx *tx, const char *order_id, int64_t delta);
db_status pg_move_part(db_tx *tx, const db_archive_part *part);

/* postgres_migrate.c */
db_status pg_migrate(const char *address, db_versions *ret, db_error *error);

/* -- rows ------------------------------------------------------------------------------------- */

/* postgres_read.c */
/* Reads one row of a result. */
db_status session_row(struct session *session, const PGresult *result, int at,
                      const struct row_type *type, void *ret);
/* for_update: see db_tx_read_item(). */
db_status session_read_row(struct session *session, enum db_table table, const char *key,
                           bool for_update, void *ret);
db_status session_find_answers(struct session *session, const char *const *keys, size_t n,
                               bool *ret_found);
db_status session_read_bought(struct session *session, const db_item *item,
                              const char *const *user_ids, size_t n, int64_t *ret_quantities);
db_status session_read_sold(struct session *session, const db_item *item, int64_t *ret_quantity);
db_status session_read_bite(struct session *session, const char *after, int64_t before_us,
                            db_bite *ret);
db_status session_read_refusals(struct session *session, int64_t keep, db_refusals *ret);
db_status session_read_expired(struct session *session, int64_t now_us, const db_expired *after,
                               db_expired *ret, size_t max, size_t *ret_n);

/* postgres_reader.c */
db_status pg_reader_open(db *db, db_reader **ret, db_error *error);
void pg_reader_close(db_reader *reader);
db_status pg_reader_begin(db_reader *reader);
void pg_reader_end(db_reader *reader);
db_status pg_read_row(db_reader *reader, enum db_table table, const char *key, void *ret);
db_status pg_find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret_found);
db_status pg_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                         size_t n, int64_t *ret_quantities);
db_status pg_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity);
db_status pg_read_bite(db_reader *reader, const char *after, int64_t before_us, db_bite *ret);
db_status pg_read_refusals(db_reader *reader, int64_t keep, db_refusals *ret);
db_status pg_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                          db_expired *ret, size_t max, size_t *ret_n);
db_status pg_read_money(db_reader *reader, int (*each)(void *arg, const db_ledger_row *row),
                        void *arg, db_error *error);
db_status pg_read_unpaid(db_reader *reader, int64_t *ret);
db_status pg_read_list(db_reader *reader, enum db_list list, const struct value *args, size_t n,
                       int (*each)(void *arg, const void *row), void *arg);
db_status pg_feed_transaction(db_reader *reader, int64_t id, int64_t *ret);
db_status pg_feed_end(db_reader *reader, db_feed_place *ret);
db_status pg_feed_waits(db_reader *reader, bool *ret);
db_status pg_feed_blocker(db_reader *reader, char ret[DB_MESSAGE_MAX]);
db_status pg_audit(db_reader *reader, const char *resource,
                   int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error);
db_status pg_tx_read_row(db_tx *tx, enum db_table table, const char *id, bool for_update,
                         void *ret);
db_status pg_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                            int64_t *ret_quantity);

/* The status of a read. DB_CONFLICT: a write before it was refused, so the read is useless. */
db_status after_writes(const struct session *session, db_status status);

/* postgres_write.c */
db_status pg_hold_epoch(db_tx *tx, const char *order_id, int64_t item_epoch,
                        const char *item_guard);
db_status pg_hold_item(db_tx *tx, const char *id, db_item *ret);
db_status pg_set_item(db_tx *tx, const db_item *row);
db_status pg_set_account(db_tx *tx, const db_account *row);
db_status pg_clear_fences(db_tx *tx, const char *item_id);
db_status pg_most_bought(db_tx *tx, const db_item *item, int64_t *ret_quantity);
db_status pg_put(db_tx *tx, enum db_table table, const struct new_value *row, const db_put *how);
db_status pg_add(db_tx *tx, enum db_table table, const struct addition *what, struct added *ret);
db_status pg_chain(db_tx *tx, enum db_table table, const char *id, const char *chain);
db_status pg_move_order(db_tx *tx, const db_order *row, db_order_state from, db_order_state to,
                        int64_t *ret_version);
db_status pg_insert(db_tx *tx, enum db_table table, const void *row);
db_status pg_reset(db_tx *tx, enum db_table table, const void *fresh, void *ret_old, void *ret);
int64_t pg_now_us(const db_tx *tx);
db_status pg_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                      int64_t done);
db_status pg_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us);
db_status pg_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n);
db_status pg_next_fence(db_tx *tx, const char *resource, int64_t seen, int64_t *ret);

/* postgres_audit.c. Statements of this transaction may read the whole ledger, so their time limits
 * are longer. Returns the usual answer_ms of the session, to be set again. */
int64_t session_take_longer(struct session *session);
/* Reads in the connection's snapshot. */
db_status session_read_money(struct session *session, const db_reader *asks,
                             int (*each)(void *arg, const db_ledger_row *row), void *arg);
db_status session_read_unpaid(struct session *session, const db_reader *asks, int64_t *ret);
db_status session_audit(struct session *session, const db_reader *asks, const char *resource,
                        int (*each)(void *arg, const db_audit_row *row), void *arg);

/* postgres_lists.c */
db_status session_read_list(struct session *session, enum db_list list, const struct value *args,
                            size_t n, int (*each)(void *arg, const void *row), void *arg);
/* The number in the only column of the first row. */
db_status session_read_number(struct session *session, enum postgres_sql sql,
                              const struct value *args, size_t n, int64_t *ret);

#endif
