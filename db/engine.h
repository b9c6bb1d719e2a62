/*
 * What an engine of the store implements: one table of functions for each URL scheme.
 *
 *   public, db.h       checked by            asks the engine for
 *   db_open() ...      db_open.c             open, close, ping, stats, settle
 *   db_read_*()        db_read.c             read_row and the other reads
 *   db_run(), db_tx_*  db_write.c            run and the tx_ functions
 *   ... resets, terms  db_reset.c            tx_reset, tx_set_item, tx_set_account,
 *                                            tx_clear_fences
 *   upkeep.h           db_upkeep.c           backup, migrate, read_bite, tx_prune_bite,
 *                                            read_refusals, tx_prune_refusals
 *
 * The files check every argument first: text ends within its array, ids are not empty,
 * numbers are in range. An engine relies on that. What a function must do stands in db.h, beside
 * the public function it serves. Rows are read and inserted by their columns (columns.h). How the
 * audit judges ledger rows is common to all engines (audit/audit.h).
 *
 * An engine's structs begin with the base structs below. README.md has the recipe for a new engine.
 */
#ifndef DB_ENGINE_H
#define DB_ENGINE_H

#include "db_archive.h"
#include "db_audit.h"
#include "columns.h"
#include "upkeep.h"

#include <stdatomic.h>

/* A row's new value, absolute; for the row's id and epoch. */
struct new_value {
    const char *id;
    int64_t value, version, epoch; /* an order: its state, and its item's epoch */
    const char *chain;             /* NULL: an order has none */
    const char *guard;             /* that it was read under; NULL: an order has none */
    bool fenced;                   /* likewise */
};

/* A conditional change: value += delta if least <= value <= most. */
struct addition {
    const char *id, *guard;
    int64_t epoch, delta, least, most;
};

/* Lists that are read page by page, and what follows from which arguments. */
enum db_list {
    LIST_FEED,           /* transaction, id, rows at most: ledger rows behind that place */
    LIST_STATEMENT,      /* resource, epoch, version, id, rows at most: ledger rows */
    LIST_ORDERS,         /* user, id, rows at most: orders below that id */
    LIST_CARRIED,        /* resource, rows at most: carried rows above that one */
    LIST_CARRIED_OF,     /* resource: its carried row */
    LIST_CARRIED_ORDERS, /* order, rows at most: carried orders above that one */
    LIST_PARTS,          /* part, rows at most: parts above that one */
    LIST_NEWEST_PART,    /* rows at most: parts, the newest first */
    LISTS
};

typedef struct db_engine {
    const char *scheme; /* of the URL, without the colon */

    /* address: what follows "scheme:". Options have their defaults filled in. */
    db_status (*open)(const char *address, const db_options *options, db **ret, db_error *error);
    /* upkeep.h: of a store that this process has not opened. */
    db_status (*backup)(const char *address, const char *file, db_error *error);
    db_status (*migrate)(const char *address, db_versions *ret, db_error *error);
    void (*close)(db *db);
    db_status (*ping)(db *db);
    void (*stats)(const db *db, db_stats *ret);

    db_status (*reader_open)(db *db, db_reader **ret, db_error *error);
    void (*reader_close)(db_reader *reader);
    db_status (*reader_begin)(db_reader *reader);
    void (*reader_end)(db_reader *reader);
    /* The row with this key; not of the ledger. ret: the row's struct. */
    db_status (*read_row)(db_reader *reader, enum db_table table, const char *key, void *ret);
    /* Sets those that are true. */
    db_status (*find_answers)(db_reader *reader, const char *const *keys, size_t n,
                              bool *ret_found);
    db_status (*read_bought)(db_reader *reader, const db_item *item, const char *const *user_ids,
                             size_t n, int64_t *ret_quantities);
    db_status (*read_sold)(db_reader *reader, const db_item *item, int64_t *ret_quantity);
    db_status (*read_expired)(db_reader *reader, int64_t now_us, const db_expired *after,
                              db_expired *ret, size_t max, size_t *ret_n);
    db_status (*read_bite)(db_reader *reader, const char *after, int64_t before_us, db_bite *ret);
    db_status (*read_refusals)(db_reader *reader, int64_t keep, db_refusals *ret);
    db_status (*read_money)(db_reader *reader, int (*each)(void *arg, const db_ledger_row *row),
                            void *arg, db_error *error);
    /* See db_books. */
    db_status (*read_unpaid)(db_reader *reader, int64_t *ret);
    /* In a snapshot. Calls each() with the list's rows until it returns non-zero. */
    db_status (*read_list)(db_reader *reader, enum db_list list, const struct value *args, size_t n,
                           int (*each)(void *arg, const void *row), void *arg);
    /* The transaction of the ledger row with this id. */
    db_status (*feed_transaction)(db_reader *reader, int64_t id, int64_t *ret);
    db_status (*feed_end)(db_reader *reader, db_feed_place *ret);
    /* There are rows that the feed does not show yet. NULL: never. DB_RENUMBERED: see db.h. */
    db_status (*feed_waits)(db_reader *reader, bool *ret);
    /* What the feed waits for, in words; "" if nothing is known. NULL: it never waits. */
    db_status (*feed_blocker)(db_reader *reader, char ret[DB_MESSAGE_MAX]);
    db_status (*audit)(db_reader *reader, const char *resource,
                       int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error);

    bool commits_in_groups;
    void (*run)(db *db, db_job *jobs, size_t n);
    /* NULL: a commit that succeeds decides all before it. */
    db_status (*settle)(db *db, const db_commit_id *commit, int64_t wait_ms, db_error *error);
    /* Items, accounts and orders. */
    db_status (*tx_read_row)(db_tx *tx, enum db_table table, const char *id, bool for_update,
                             void *ret);
    db_status (*tx_read_bought)(db_tx *tx, const db_item *item, const char *user_id,
                                int64_t *ret_quantity);
    /* The order's item has this epoch and this guard, and keeps them until the transaction ends.
     * Else DB_CONFLICT; no such order: DB_NOT_FOUND. */
    db_status (*tx_hold_epoch)(db_tx *tx, const char *order_id, int64_t item_epoch,
                               const char *item_guard);
    /* Reads an item and locks it: it keeps its epoch and guard, and changes in no other
     * transaction, until this one ends. */
    db_status (*tx_hold_item)(db_tx *tx, const char *id, db_item *ret);
    /* Stores guard, price, per_user_limit, reserve_s, fence, version, last_fence and chain of a row
     * that is held. */
    db_status (*tx_set_item)(db_tx *tx, const db_item *row);
    db_status (*tx_set_account)(db_tx *tx, const db_account *row);
    /* Of the orders that may still change, of whatever sale of the item: clears last_fence, where
     * there is one, and raises version. */
    db_status (*tx_clear_fences)(db_tx *tx, const char *item_id);
    /* The most pieces that one user has in limited orders of this epoch. */
    db_status (*tx_most_bought)(db_tx *tx, const db_item *item, int64_t *ret_quantity);
    /* Items, accounts and orders. */
    db_status (*tx_put)(db_tx *tx, enum db_table table, const struct new_value *row,
                        const db_put *how);
    /* Items and accounts. */
    db_status (*tx_add)(db_tx *tx, enum db_table table, const struct addition *what,
                        struct added *ret);
    db_status (*tx_chain)(db_tx *tx, enum db_table table, const char *id, const char *chain);
    db_status (*tx_move_order)(db_tx *tx, const db_order *row, db_order_state from,
                               db_order_state to, int64_t *ret_version);
    /* Orders, answers and ledger rows. DB_REFUSED: not inserted, because its key is taken. */
    db_status (*tx_insert)(db_tx *tx, enum db_table table, const void *row);
    /* Items and accounts. fresh: the row as it is if there is none yet. *ret_old: as it was, if
     * there was one; untouched else. ret: as it is now. */
    db_status (*tx_reset)(db_tx *tx, enum db_table table, const void *fresh, void *ret_old,
                          void *ret);
    db_status (*tx_put_task)(db_tx *tx, const char *name, const char *instance, int64_t at_us,
                             int64_t done);
    db_status (*tx_prune_bite)(db_tx *tx, const char *after, const char *last, int64_t before_us);
    db_status (*tx_prune_refusals)(db_tx *tx, int64_t before_us, int64_t *ret_n);
    /* See db_archive.h. NULL: the engine cannot move rows. */
    db_status (*tx_put_carried)(db_tx *tx, const db_carried *carried);
    db_status (*tx_carry_order)(db_tx *tx, const char *order_id, int64_t delta);
    db_status (*tx_move_part)(db_tx *tx, const db_archive_part *part);
    int64_t (*tx_now_us)(const db_tx *tx);
    db_status (*tx_next_fence)(db_tx *tx, const char *resource, int64_t seen, int64_t *ret);
} db_engine;

struct db {
    const db_engine *engine;
    atomic_uint failures; /* writes that the database failed */
    atomic_uint proven;   /* failures when db_ping() last wrote with success; equal: it works */
    atomic_uint room_failures, room_proven; /* the same, if the disk may be full or broken */
};
struct db_reader {
    const db_engine *engine;
    bool (*stop)(void *arg); /* of db_reader_stop_when(); NULL: long reads go on */
    void *stop_arg;
};
struct db_tx {
    const db_engine *engine;
};

/* The engine of an URL, with what follows its scheme. NULL: error (may be NULL) says why. */
const db_engine *db_engine_of(const char *url, const char **ret_address, db_error *error);

/* The engines, in sqlite/ and postgres/. db_engine_of() looks for the URL's scheme among them. */
extern const db_engine db_engine_sqlite;
extern const db_engine db_engine_postgres;

/* -- for the engines -------------------------------------------------------------------------- */

/* Fills *error (may be NULL) and returns status. */
db_status db_fail(db_error *error, db_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A write found its row and changed nothing. Tells why, by the epoch and last_fence that the row
 * has; otherwise: what it is if neither explains it. fence 0: the write had none. */
db_status db_why_refused(int64_t row_epoch, int64_t row_last_fence, int64_t epoch, int64_t fence,
                         db_status otherwise);

/* txn_id of the ledger row that a reset writes, the first of its epoch. No client's key has a tab.
 */
void db_reset_txn(char (*ret)[DB_KEY_MAX + 1], const char *resource, int64_t epoch);

/* Whether the legs of movements of money fit. The rows of one transaction come together. */
enum { DB_LEGS = 2 };

/* The rows of one transaction. */
struct db_movement {
    db_ledger_row legs[DB_LEGS];
    int64_t rows; /* more than two are counted, and not kept */
    __int128 sum;
};
struct db_legs {
    db_books books; /* transactions, unbalanced, unchained */
    struct db_movement now;
    __int128 total;
};
void db_legs_add(struct db_legs *legs, const db_ledger_row *row);
void db_legs_finish(struct db_legs *legs); /* after the last row */

int64_t db_now_us(void); /* monotonic */
void db_sleep_us(int64_t us);
/* The pause after n pauses: first, 2 * first ... most. Written here because db stands on nothing.
 */
int64_t db_backoff_us(int64_t first_us, int64_t most_us, int n);
void db_count(_Atomic uint64_t *counter, uint64_t n);

/* Text that does not fit its array, or is empty where a name is needed: refused, never cut. */
bool db_name_ok(const char *name, size_t max);
bool db_text_ok(const char *text, size_t max);
/* Texts that end and fit, and a name where one is needed. NULL is no guard. */
bool db_item_ok(const db_item *row);
bool db_account_ok(const db_account *row);
bool db_guard_ok(const char *guard);

#endif
