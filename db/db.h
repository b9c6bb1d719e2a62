/*
 * The store: items, accounts, orders, the append-only ledger and the idempotency table.
 *
 * Two kinds of access, kept apart on purpose:
 *
 *   db_reader  read-only, one per worker thread. What a lock-guarded operation reads and decides on
 *              comes from here, OUTSIDE the write transaction: that gap is what the lock is for.
 *   db_tx      inside a write transaction. db_run() hands one to a function; everything that the
 *              function does through it is committed whole or not at all.
 *
 * Nothing in here hides a race: db_tx_put_item() stores the absolute value it is given, whatever
 * the row has by then. Only the fence, the epoch and (sql-version) the version can refuse it.
 *
 * Fence: a fenced write lands only on the row state that its own holder read, and never after a
 * write of a newer holder. One UPDATE tests that the row has the version that was read and that its
 * last_fence is not above the holder's own. A newer holder has written: DB_STALE_FENCE. Another one
 * has written since the read: DB_CONFLICT; the holder may read again and write again. A holder that
 * is alone is never refused. A reset begins anew: it clears last_fence, and its epoch refuses what
 * was read before it. The fence holds between fenced writers: an unfenced write to the same row
 * tests nothing and may store an old version. tests/db/test_fence_order.c tries every order of two
 * turns of two and of three holders.
 *
 * Guard: a write of an item or account also tests that the row still names the guard, and has the
 * fence flag, under which it was read; a write of an order, that its item still names the guard
 * under which the item was read (not its fence flag). So nothing that was read under a former guard
 * lands after a change of the guard (db_tx_set_...()), with or without the former guard's lock. If
 * the guard changes and changes back, these tests do not stop an unfenced write that was read
 * before both changes. So a caller that changes a guard holds the former guard's lock. A fence and
 * a version do stop such a write, as each change of the guard raises the version. A payment or a
 * cancellation holds the lock of its order, not that of the item: under a lock without a fence it
 * may write over an order that others have written between two changes of the guard.
 * tests/db/test_setting_order.c tries every order of two holders and up to two changes.
 *
 * A fence is compared with those of the same guard only, as each lock server counts by itself. So a
 * change of an item's guard also clears last_fence of its orders that may still change, and raises
 * their version: what was read of them before, under a fence, is not written.
 *
 * Undecided: DB_UNKNOWN says that a work may be committed already, may be committed later, or
 * never. A caller that keeps others away from the rows by a lock keeps the lock until db_settle()
 * says DB_OK: no lock is released before its transaction is known to be committed or known never
 * to commit. Every other status is such knowledge.
 *
 * Values are signed 64-bit integers in minor units or pieces. Times are Unix microseconds.
 * Threading: db is shared; a db_reader belongs to one thread at a time; a db_tx lives only inside
 * its db_work function, which may run on another caller's thread while db_run() waits.
 * Ownership: the caller owns every struct, all text is in fixed arrays, nothing to free but
 * handles.
 */
#ifndef DB_H
#define DB_H

#include "db_rows.h"

#include <stddef.h>

#define DB_STATUS_MAP(X)                                                                           \
    X(OK, "ok")                                                                                    \
    X(NOT_FOUND, "no such row")                                                                    \
    X(DUPLICATE, "idempotency key already used") /* the stored answer is the outcome */            \
    X(STALE_FENCE, "fence older than the last one seen")                                           \
    X(CONFLICT, "row changed since it was read") /* sql-version; or the row was reset (epoch) */   \
    X(REFUSED, "condition not met")              /* sql-atomic: would fall below zero */           \
    X(INVALID, "invalid argument")                                                                 \
    X(BUSY, "database locked for too long")        /* certainly nothing was written */             \
    X(UNAVAILABLE, "database away")                /* certainly nothing was written */             \
    X(FULL, "no room on the disk of the database") /* rolled back, as the next two */              \
    X(READ_ONLY, "database takes no writes")       /* a standby, a read-only file */               \
    X(CROWDED, "database takes no further connection")                                             \
    X(RENUMBERED, "restored to a server whose transactions have lower numbers; see db/README.md")  \
    X(UNKNOWN, "outcome of the commit unknown")                                                    \
    X(ARCHIVED, "moved to an archive")    /* db_archive.h */                                       \
    X(INTERRUPTED, "ended by its caller") /* db_reader_stop_when() */                              \
    X(FAILED, "database failed")          /* I/O error, corrupt, no memory: rolled back */

typedef enum db_status {
#define DB_STATUS_ENUM(name, text) DB_##name,
    DB_STATUS_MAP(DB_STATUS_ENUM)
#undef DB_STATUS_ENUM
} db_status;

const char *db_status_text(db_status status);

typedef struct db db;
typedef struct db_reader db_reader;
typedef struct db_tx db_tx;

typedef struct db_error {
    db_status status;
    char message[DB_MESSAGE_MAX];
} db_error;

enum db_sync { DB_SYNC_FULL, DB_SYNC_NORMAL }; /* FULL: an answered commit survives power loss */

typedef struct db_options {
    /* "sqlite:FILE", or "postgres://USER@HOST:PORT/DATABASE" with libpq's parameters and two more:
     * isolation=read-committed (default) | repeatable-read | serializable, of the writes; pool=N,
     * connections at most (default 40) */
    const char *url;
    enum db_sync sync; /* PostgreSQL, NORMAL: a crash of its server may lose the last commits */
    bool shared_file;  /* SQLite: several processes on one file: rollback journal instead of
                          WAL; for lessons only */
    int64_t busy_ms;   /* wait for another's write at most (PostgreSQL: lock_timeout); default 5000,
                          up to DB_BUSY_MS_MAX */
    int32_t group_max; /* SQLite: works per commit at most; default 256 */
    bool existing;     /* DB_INVALID if there is no store yet, instead of a new one */
    int32_t log_pages; /* SQLite: new pages in its log call for a checkpoint; default 1000 */
} db_options;

/* Opens, creating file and schema when missing. Returns DB_OK, DB_INVALID (unknown scheme, a schema
 * of another version), or what db_run() returns when the database fails; error (may be NULL) says
 * why. */
db_status db_open(const db_options *options, db **ret, db_error *error);
/* Ends: waits for running db_run() calls; all readers must be closed. NULL is allowed. */
void db_close(db *db);
/* Whether the store answers now. One cheap read. After the database has failed a write, db_ping()
 * writes, too, until that succeeds:
 *   - a small row, if a server was away;
 *   - else (full, read-only, broken) 4 MB, as much as the largest commit needs. */
db_status db_ping(db *db);

/* -- reading ---------------------------------------------------------------------------------- */

db_status db_reader_open(db *db, db_reader **ret, db_error *error);
void db_reader_close(db_reader *reader);

/* Everything between begin and end sees one snapshot, taken at the first read after begin. Reads
 * outside such a pair each see the newest committed state. */
db_status db_reader_begin(db_reader *reader);
void db_reader_end(db_reader *reader);

/* For reads that may take minutes: db_audit(). From now on such a read asks stop(arg) many times a
 * second, on its own thread. Once stop() is true, the read returns DB_INTERRUPTED. PostgreSQL: the
 * connection is closed, and the server ends the statement within half a second. stop NULL: the read
 * is not asked. Call it between reads; what stop() looks at may be set by any thread. */
void db_reader_stop_when(db_reader *reader, bool (*stop)(void *arg), void *arg);

/* Each returns DB_OK, DB_NOT_FOUND, DB_BUSY, DB_UNAVAILABLE, DB_CROWDED or DB_FAILED; DB_FULL where
 * there is no room for temporary files. A name that is too long to have been stored is not found.
 */
db_status db_read_item(db_reader *reader, const char *id, db_item *ret);
db_status db_read_account(db_reader *reader, const char *id, db_account *ret);
db_status db_read_order(db_reader *reader, const char *id, db_order *ret);
db_status db_read_answer(db_reader *reader, const char *key, db_answer *ret);
/* Which of 1 to DB_KEYS_MAX keys have an answer: DB_OK with ret_found[i] of each, or as above. */
db_status db_find_answers(db_reader *reader, const char *const *keys, size_t n, bool *ret_found);
/* Pieces of this item's epoch in reserved and paid orders, the limited ones, of each of 1 to
 * DB_KEYS_MAX users. */
db_status db_read_bought(db_reader *reader, const db_item *item, const char *const *user_ids,
                         size_t n, int64_t *ret_quantities);
/* Pieces in reserved and paid orders of the item's epoch. */
db_status db_read_sold(db_reader *reader, const db_item *item, int64_t *ret_quantity);
typedef struct db_expired {
    int64_t expires_us;
    char id[DB_ID_MAX + 1], item_id[DB_ID_MAX + 1];
} db_expired;
/* Reserved orders with expires_us <= now_us that come after `after` (NULL: from the oldest on), by
 * expires_us and id; at most max and DB_EXPIRED_MAX of them. */
db_status db_read_expired(db_reader *reader, int64_t now_us, const db_expired *after,
                          db_expired *ret, size_t max, size_t *ret_n);

/* Lists are read page by page: at most max rows and DB_PAGE_MAX of them, from one snapshot, along
 * an index. ret_more: there are more by now. */
enum { DB_PAGE_MAX = 1000 };

/* A place in the ledger, as the feed has it: behind a row, or 0, 0 before the first. */
typedef struct db_feed_place {
    int64_t transaction; /* SQLite: 0 */
    int64_t id;
} db_feed_place;
/* The feed: rows of all resources behind a place, in an order that never changes: a row that is
 * committed later comes behind every row that a reader has seen. So a reader that always goes on
 * from *ret_next misses none and sees none twice, whatever instances and crashes there are.
 *
 * SQLite has one writer, so ids rise in the order of commits. PostgreSQL gives ids before commits.
 * There the order is that of transactions, then ids, and rows come once no transaction runs that
 * began to write before theirs. A transaction that stays open holds the feed up: ret_more tells.
 * DB_ARCHIVED: rows behind `after` were moved to an archive; *ret_next is behind the last of them.
 * DB_RENUMBERED: the database was restored to a server that gives out numbers below those in the
 * ledger. New rows would come before old ones, so there is no feed until README.md is followed. */
db_status db_read_ledger(db_reader *reader, const db_feed_place *after, size_t max,
                         int (*each)(void *arg, const db_ledger_row *row), void *arg,
                         db_feed_place *ret_next, bool *ret_more);
/* The end of the feed as it is now. */
db_status db_feed_end(db_reader *reader, db_feed_place *ret);

/* A place among the rows of one resource: behind a row, or 0, 0, 0 before the first. */
typedef struct db_chain_place {
    int64_t epoch, version_before, id;
} db_chain_place;
/* The ledger rows of one resource, the oldest first, as its chain has them. A resource without rows
 * has an empty list. DB_ARCHIVED: rows behind `after` were moved to an archive;
 * db_read_chain_start() has the place behind the last of them. */
db_status db_read_statement(db_reader *reader, const char *resource, const db_chain_place *after,
                            size_t max, int (*each)(void *arg, const db_ledger_row *row), void *arg,
                            bool *ret_more);
/* The orders of one user with an id below `before` (NULL: from the newest on), in descending order
 * of ids, which is from new to old. */
db_status db_read_orders(db_reader *reader, const char *user_id, const char *before, size_t max,
                         int (*each)(void *arg, const db_order *row), void *arg, bool *ret_more);

/* -- writing ---------------------------------------------------------------------------------- */

/* Every db_tx_ function that takes a row returns DB_INVALID for text that does not end within its
 * array, for an empty id or key, and for a negative fence. Nothing is ever cut. If the database
 * itself fails in a work, the work is undone whatever it returns. */

/* Runs in a write transaction. DB_OK keeps what was done; anything else undoes all of it and is
 * what db_run() returns. It must not block on anything but the database. It may be run again after
 * an undone run, so it starts from its inputs each time. */
typedef db_status db_work(db_tx *tx, void *arg);

/* Runs work and returns when it is durably committed, or undone. Returns what work returned, or
 * DB_BUSY, DB_UNAVAILABLE, DB_FULL, DB_READ_ONLY, DB_CROWDED, DB_FAILED, or DB_UNKNOWN from the
 * commit.
 * SQLite: calls from many threads are committed as one group, each in a savepoint of its own, in
 * order of arrival. PostgreSQL: each is a transaction of its own on the caller's thread; after a
 * serialization failure or a deadlock work is run again, a bounded number of times, then DB_BUSY.
 * A db_tx_ function may return DB_OK too early: for a new row whose key is taken, and on PostgreSQL
 * for any write that changes no row. The work is then undone and run again. In that run the same
 * function returns the refusal, unless an earlier one of the work is refused first. */
db_status db_run(db *db, db_work *work, void *arg, db_error *error);

/* A transaction whose commit was not answered: what db_settle() asks about. PostgreSQL: its number,
 * and the server's process that ran it. A crash that loses the end of the server's log lets a
 * number be given again. SQLite: 0. */
typedef struct db_commit_id {
    int64_t transaction;
    int64_t backend, backend_start_us; /* process id; when it began, by the server's clock */
} db_commit_id;

/* One of several works that are handed over together. */
typedef struct db_job {
    db_work *work;
    void *arg;
    db_error *error;        /* may be NULL */
    db_status status;       /* out: what db_run() would return */
    db_commit_id commit_id; /* out, with DB_UNKNOWN: for db_settle() */
} db_job;

/* db_run() of each of 1 to DB_JOBS_MAX works, in their order. Returns when all are decided. One
 * that is undone undoes no other. SQLite: they are queued at once. So they share one commit, also
 * with works of other callers; if more than group_max wait, they take a few. A commit that fails
 * fails all that share it. PostgreSQL: one after the other. */
void db_run_many(db *db, db_job *jobs, size_t n);
/* Finds out about a DB_UNKNOWN. Asks until wait_ms are over, at least once. DB_OK: decided. Readers
 * see the work by now, or never will: the answer under its idempotency key tells which. Any other
 * status: not decided, or nobody can be asked. Ask again; error (may be NULL) says why.
 *
 * PostgreSQL asks on another connection. A transaction that still runs is ended there; it is
 * decided once the server has done so.
 *   - A transaction that waits for a synchronous standby is committed then, though no standby may
 *     have it.
 *   - A server that does not know the transaction will not commit it: a standby that took over
 *     without it, a restored backup, a server that lost the end of its log in a crash.
 *   - After such a loss the number may belong to another transaction. That one is left alone: only
 *     the process that ran the work is ended, known by its id and the time when it began.
 * One call may also wait for a connection and for an answer, see db_options.busy_ms.
 *
 * SQLite writes a small row. A commit that succeeds is written over the unanswered one, which is
 * then void. */
db_status db_settle(db *db, const db_commit_id *commit, int64_t wait_ms, db_error *error);
/* True: the works of one db_run_many() share a commit. False: each has its own. */
bool db_commits_in_groups(const db *db);

/* Reads inside the transaction. for_update: lock the row until the end (sql-row); on SQLite the
 * whole transaction is BEGIN IMMEDIATE, so the flag changes nothing there. */
db_status db_tx_read_item(db_tx *tx, const char *id, bool for_update, db_item *ret);
db_status db_tx_read_account(db_tx *tx, const char *id, bool for_update, db_account *ret);
db_status db_tx_read_order(db_tx *tx, const char *id, bool for_update, db_order *ret);
/* Of one user. */
db_status db_tx_read_bought(db_tx *tx, const db_item *item, const char *user_id,
                            int64_t *ret_quantity);

/* How an absolute value is stored. Everything is tested in the statement that stores it. */
typedef struct db_put {
    int64_t fence;            /* 0: unfenced. Else DB_STALE_FENCE when a newer holder has written
                                 (stored last_fence > fence); on success it becomes last_fence. The
                                 same fence may write again. Needs an expected version, without
                                 which it is DB_INVALID */
    int64_t expected_version; /* the version that was read: DB_CONFLICT unless the row still has it
                                 (fences, sql-version). -1: store whatever stands there (none, and
                                 locks without a fence) */
    const char *item_guard;   /* orders: the guard that the item named when its lock was taken.
                                 DB_INVALID without it, unless former_sale */
    bool former_sale;         /* orders: the item may have been reset since the order */
} db_put;

/* Store stock/balance, version and chain of *row as they stand in it, for the row's id and epoch:
 * DB_CONFLICT when the row was reset since, or names another guard than *row, or has another fence
 * flag; DB_NOT_FOUND when it is gone. */
db_status db_tx_put_item(db_tx *tx, const db_item *row, const db_put *how);
db_status db_tx_put_account(db_tx *tx, const db_account *row, const db_put *how);
/* Order state and version, absolute like the others; other columns never change. DB_CONFLICT also
 * when the item was reset since the order or has another guard, unless how says former_sale; no
 * reset of the item and no change of its guard commits until this transaction ends. */
db_status db_tx_put_order(db_tx *tx, const db_order *row, const db_put *how);

/* sql-atomic: one conditional UPDATE adds delta if the value stays >= 0, raises version by 1 and
 * fills stock/balance, version and chain of *row with what the row has now. The chain is still that
 * of the row before this change: db_tx_chain_item() stores the next one. DB_REFUSED when it would
 * fall below zero or leave 64 bits, DB_CONFLICT when the row is no longer of row->epoch
 * and row->guard, DB_NOT_FOUND.
 */
db_status db_tx_add_item(db_tx *tx, db_item *row, int64_t delta);
db_status db_tx_add_account(db_tx *tx, db_account *row, int64_t delta);
/* Stores the chain of a row that this transaction has changed by db_tx_add_...(). */
db_status db_tx_chain_item(db_tx *tx, const db_item *row);
db_status db_tx_chain_account(db_tx *tx, const db_account *row);
/* One conditional UPDATE of an order's state, which fills state and version of *row; DB_REFUSED
 * when it is not in state `from`, DB_CONFLICT when the item was reset since or has another guard
 * (as above), DB_NOT_FOUND. */
db_status db_tx_move_order(db_tx *tx, db_order *row, const char *item_guard, db_order_state from,
                           db_order_state to);

/* Reads an item that db_tx_set_item() is to change. Nobody else writes it, or an order of it, until
 * the transaction ends. It, or the reset of an item, is the first of its transaction: PostgreSQL
 * then reads at "read committed", so that the fence of an order that it waited for is cleared, too.
 */
db_status db_tx_hold_item(db_tx *tx, const char *id, db_item *ret);
/* A held row: stores its guard, price, per_user_limit, reserve_s and fence. Raises version, clears
 * last_fence if `former_guard`, which it had, is another one, and writes a ledger row of kind
 * setting (delta 0). Stock and epoch stay. Fills version, last_fence and chain of *row. DB_REFUSED,
 * with the pieces that a user has in *ret_bought: some user has more in limited orders than the
 * limit per user allows, and limit_falls. */
typedef struct db_setting {
    const char *former_guard, *guard_name, *instance,
        *txn_id; /* of the ledger row: the last three */
    bool limit_falls;
    int64_t bought; /* out, with DB_REFUSED */
} db_setting;
db_status db_tx_set_item(db_tx *tx, db_item *row, db_setting *setting);
/* The same of an account that db_tx_read_account() has locked: stores its guard and fence. */
db_status db_tx_set_account(db_tx *tx, db_account *row, const db_setting *setting);

/* Now, by the store's clock: of the machine on SQLite, of the server on PostgreSQL. There the
 * offset of the two clocks is measured when a connection opens. Unix microseconds. */
int64_t db_tx_now_us(const db_tx *tx);

/* DB_INVALID when the id is taken. */
db_status db_tx_insert_order(db_tx *tx, const db_order *row);
/* The row is sealed. DB_INVALID also for text with a line feed, which would make its hash
 * ambiguous.
 */
db_status db_tx_append_ledger(db_tx *tx, const db_ledger_row *row);
/* DB_DUPLICATE when the key has an answer already. */
db_status db_tx_insert_answer(db_tx *tx, const db_answer *row);

/* Create or reset. Writes a ledger row of its own (txn_id "reset\t<resource>:<epoch>", guard and
 * instance as given), raises epoch and version (a new row has 1 and 1), clears last_fence; fills
 * *row from the store. The current value becomes the initial one: DB_INVALID when *row has another
 * one that is not 0. The ledger row's delta is the new value minus the old one; of an account,
 * shop:equity has the other leg. DB_INVALID if the difference leaves 64 bits. */
db_status db_tx_reset_item(db_tx *tx, db_item *row, const char *guard, const char *instance);
db_status db_tx_reset_account(db_tx *tx, db_account *row, const char *guard, const char *instance);

/* The scheduled task's record, in a transaction of its own. */
db_status db_tx_put_task(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                         int64_t done);

/* A fence for `resource` from its counter in the store: above every one given before and above
 * `seen`, even if the lock server has lost its count. Take it after the lock is held and before the
 * row is read. It has a transaction of its own and is durable when this returns. Nothing takes it
 * back, not even a reset. Returns as db_run(); DB_INVALID for a name that does not fit. */
db_status db_next_fence(db *db, const char *resource, int64_t seen, int64_t *ret, db_error *error);

/* -- counters --------------------------------------------------------------------------------- */

/* Counters for metrics. */
typedef struct db_stats {
    uint64_t commits, runs, rollbacks, busy_retries, checkpoints;
    uint64_t group_largest;
    uint64_t commit_us_total; /* time spent in COMMIT */
    uint64_t waiting;         /* works that are queued now */
} db_stats;
void db_get_stats(const db *db, db_stats *ret);

#endif
