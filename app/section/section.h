/*
 * A critical section as the business sees it: it reads rows, changes them in memory, and one
 * transaction writes them at the end. The same code serves one operation or a batch of them. In a
 * batch, an operation reads what the operations before it left.
 *
 * Only the guard of a row decides how the row is read and written:
 *
 *   none, locks   Read from a snapshot before the transaction. The new value is written over
 *                 whatever is there by then. Only the lock, if there is one, makes this right.
 *   sql-version   The same, but written only over the version that was read.
 *   sql-row       Read for update inside the write transaction. The two rows of a transfer under
 *                 sql-atomic are read so as well, before they are changed one after the other.
 *   sql-atomic    Changed by one conditional UPDATE inside the write transaction.
 */
#ifndef SECTION_H
#define SECTION_H

#include "counters.h"
#include "keeper.h"
#include "op.h"

#include <stddef.h>

enum {
    SECTION_ROWS_MAX = LOCK_SET_MAX,
    SECTIONS_MAX = DB_JOBS_MAX, /* run together */
    SECTION_CHANGES_PER_OP = 2  /* a transfer's, a refund's */
};

struct section;

/* -- for the business: which rows, before any lock. False: op has its problem ------------------ */

bool section_uses_item(struct section *section, struct op *op, const char *id);
bool section_uses_account(struct section *section, struct op *op, const char *id);
/* An order has its item's guard. Fills *ret: item, buyer and amount never change; read the rest
 * again in the section. */
bool section_uses_order(struct section *section, struct op *op, const char *id, db_order *ret);

/* -- for the business: read, decide, write ----------------------------------------------------- */

/* The row with the changes so far. NULL: missing, or the store failed; op has its problem. */
db_item *section_item(struct section *section, struct op *op, const char *id);
db_account *section_account(struct section *section, struct op *op, const char *id);
db_order *section_order(struct section *section, struct op *op, const char *id);

/* The epoch of the order's item now: an order of an earlier one is history. False: the store
 * failed, or the item's guard has changed, and all begins again. */
bool section_epoch(struct section *section, struct op *op, const db_order *order,
                   int64_t *ret_epoch);
/* Pieces of the item that op's buyer has ordered and not given back. False: the store failed. */
bool section_bought(struct section *section, struct op *op, const db_item *item,
                    int64_t *ret_quantity);

/* What a change did; goes into answer and ledger. */
struct change {
    int64_t before, after, version, fence;
};

/* Adds delta to a row's stock or balance. The caller has checked that it fits. False: refused, and
 * nothing is changed; only sql-atomic refuses. The ledger row names the order, if there is one, and
 * for money the counterpart: "account:2", which has its own change, or a side of the shop, which
 * gets its row here. Both are copied. */
bool section_change_item(struct section *section, struct op *op, db_item *item, int64_t delta,
                         const char *order_id, struct change *ret);
bool section_change_account(struct section *section, struct op *op, db_account *account,
                            int64_t delta, const char *order_id, const char *counterpart,
                            struct change *ret);
/* reserved -> state; false as above. */
bool section_move_order(struct section *section, db_order *order, db_order_state state);
/* paid -> refunded; false as above. former_sale: its item was reset, see section_retire_order(). */
bool section_refund_order(struct section *section, db_order *order, bool former_sale);
/* Closes an order of a sale that was reset; it moves no stock. A request under the item's former
 * guard may write the order at the same time, so it is written only over what was read. */
bool section_retire_order(struct section *section, db_order *order);
/* For a change that cannot be a decision of the business: an operation's second change, or one that
 * the decision has allowed. If it is refused, nothing is written, and all runs again from fresh
 * reads. Returns done. */
bool section_insist(struct section *section, bool done);
void section_insert_order(struct section *section, const db_order *order);

/* For answers: the item's guard, and the instance that serves. */
const char *section_guard_of(const struct section *section, const db_item *item);
const char *section_instance(const struct section *section);

/* -- for the steps around it (attempt.h) ------------------------------------------------------- */

enum row_kind { ROW_ITEM, ROW_ACCOUNT, ROW_ORDER };

union row_value {
    db_item item;
    db_account account;
    db_order order;
};

struct section_row {
    enum row_kind kind;
    char id[DB_ID_MAX + 1];
    char resource[DB_RESOURCE_MAX + 1];
    struct guard *guard;
    char named[DB_GUARD_MAX + 1];      /* that guard, as its row (an order's item) names it */
    const lk_hold *hold;               /* NULL: the guard is no lock */
    char counter[DB_RESOURCE_MAX + 1]; /* of its fences in the store; an order uses its item's */
    int64_t seen_fence;                /* the newest in the row when its guard was looked up */
    int64_t fence;                     /* of this hold; 0: none */
    bool changed;
    bool added_to;    /* by sql-atomic: the store has the change, but not its hash */
    bool former_sale; /* an order whose item was reset: written only over the version that was read,
                         whatever its guard */
    db_status status; /* of reading it */
    union row_value read, now; /* as it was read; with the changes so far */
};

struct section_change {
    const struct op *op;
    struct section_row *row;
    int64_t delta;
    struct change change;
    char order_id[DB_ID_MAX + 1], counterpart[DB_RESOURCE_MAX + 1];
    char hash[DB_HASH_LENGTH + 1]; /* of its ledger row */
};

/* What a kind of operation does. */
struct operation {
    const char *name;
    db_kind kind;                                         /* of its ledger rows */
    bool (*uses)(struct section *section, struct op *op); /* names the rows */
    void (*decide)(struct section *section, struct op *op);
};

/* What a section works with. All of it is borrowed. */
struct section_base {
    const struct config *config;
    const struct seams *seams;
    struct guards *guards;
    db *db;
    struct keeper *keeper;
    struct counters *counters;
};

/* What a service does: a table that its caller hands in. */
struct business {
    const struct operation *changes[OP_PUT_ITEM];        /* by kind */
    void (*put)(struct section *section, struct op *op); /* answers an OP_PUT_* or OP_PATCH_* */
    /* Starts the scheduled tasks; NULL: no memory or threads. Ends them; tasks may be NULL. */
    struct tasks *(*tasks_open)(const struct section_base *base);
    void (*tasks_close)(struct tasks *tasks);
};

struct section {
    const struct config *config;
    struct guards *guards;
    db *db;
    struct keeper *keeper;
    struct counters *counters;
    db_reader *reader; /* opened at the first use */
    db_tx *tx;         /* inside the write transaction */
    const struct operation *operation;

    struct op **ops; /* not yet answered */
    size_t n_ops, batch;
    struct section_row rows[SECTION_ROWS_MAX];
    size_t n_rows;
    struct lock_set locks;
    bool snapshot;    /* open in reader */
    bool bought_read; /* each op's bought */

    /* what the transaction is to write */
    struct section_change *changes; /* batch * SECTION_CHANGES_PER_OP */
    size_t n_changes;
    db_order *orders; /* batch */
    size_t n_orders;

    /* the outcome of reading, deciding and committing; why nothing was written */
    db_status status;
    bool guard_changed;                /* the row names another guard than was taken */
    const lk_hold *lost;               /* this lock was lost before the write */
    const struct section_row *refused; /* stale fence, conflict */
    size_t duplicate;                  /* index of the op whose key has an answer already */
    db_error error;                    /* the store's */
    db_commit_id commit_id;            /* with DB_UNKNOWN: the transaction to ask about */
    bool outcome_unknown;              /* the store was asked, and did not tell in time */
};

/* For sections of up to batch operations. 0, or -1 without memory. */
int section_init(struct section *section, const struct section_base *base, size_t batch);
void section_free(struct section *section);

/* The section's own connection. NULL: status and error say why. */
db_reader *section_reader(struct section *section);
void section_clear(struct section *section); /* no rows, no locks */
/* The row that op is named after: of a transfer, the account that pays. */
const struct section_row *section_row_of(const struct section *section, const struct op *op);

/* Under the locks and before the read: each row's fence, from where --fence-source says. DB_OK, or
 * why the store gave none. */
db_status section_take_fences(struct section *section);

/*
 * Read, decide, commit: in this order, and again from the first if attempt_again() says so. Each
 * sets status, and does nothing if status is not DB_OK. Rows under sql-row and sql-atomic are read
 * inside the transaction; section_commit() then reads and decides there.
 */
void section_open_snapshot(struct section *section);
void section_read(struct section *section);
void section_decide(struct section *section);
void section_close_snapshot(struct section *section);
/* Tests the locks, then writes all or nothing in one transaction, which tests fence and version. */
void section_commit(struct section *section);

/* Many sections, 1 to SECTIONS_MAX, with one reader: each reads from the snapshot that first has
 * open. One commit writes them all, if the store can; each has its own outcome. */
void section_share_snapshot(struct section *section, const struct section *first);
void section_commit_many(struct section *const *sections, size_t n);

/* Whether some row is read inside the transaction, so that the decision is made there. */
bool section_reads_inside(const struct section *section);

/* After DB_UNKNOWN: asks the store for a short time. True: the transaction is committed, and
 * readers see it, or it never will be. False: outcome_unknown is set. */
bool section_find_out(struct section *section);
/* Releases the locks. If the outcome is unknown the keeper takes them instead. */
void section_unlock(struct section *section);

#endif
