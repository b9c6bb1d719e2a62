/*
 * A critical section as the business sees it: rows are read, changed in memory, and written at its
 * end in one transaction. The same code serves one operation or a batch of them: what an operation
 * reads is what those before it in the batch left.
 *
 * How a row is read and written depends on its guard, and on that alone:
 *
 *   none, locks   read from a snapshot before the transaction; the new value is written whatever
 *                 stands there by then. Only the lock, if there is one, makes this right.
 *   sql-version   the same, but written only over the version that was read
 *   sql-row       read for update inside the write transaction (so are the two rows of a transfer
 *                 under sql-atomic, before they are changed one after the other)
 *   sql-atomic    changed at once, by one conditional UPDATE inside the write transaction
 */
#ifndef SECTION_H
#define SECTION_H

#include "keeper.h"
#include "op.h"

#include <stddef.h>

enum {
    SECTION_ROWS_MAX = LOCK_SET_MAX,
    SECTIONS_MAX = DB_JOBS_MAX, /* run together */
    SECTION_CHANGES_PER_OP = 2  /* a transfer's */
};

struct section;

/* -- for the business: which rows, before any lock. False: op has its problem ------------------ */

bool section_uses_item(struct section *section, struct op *op, const char *id);
bool section_uses_account(struct section *section, struct op *op, const char *id);
/* An order has its item's guard. Fills *ret; its item, buyer and amount never change, the rest is
 * to be read again in the section. */
bool section_uses_order(struct section *section, struct op *op, const char *id, db_order *ret);

/* -- for the business: read, decide, write ----------------------------------------------------- */

/* The row, as the section has it by now. NULL: missing, or the store failed; op has its problem. */
db_item *section_item(struct section *section, struct op *op, const char *id);
db_account *section_account(struct section *section, struct op *op, const char *id);
db_order *section_order(struct section *section, struct op *op, const char *id);

/* The item's epoch now: an order of an earlier one is history. False: the store failed. */
bool section_epoch(struct section *section, struct op *op, const char *item_id, int64_t *ret_epoch);
/* Pieces of the item that op's buyer has ordered and not given back. False: the store failed. */
bool section_bought(struct section *section, struct op *op, const db_item *item,
                    int64_t *ret_quantity);

/* What a change did; goes into answer and ledger. */
struct change {
    int64_t before, after, version, fence;
};

/* Adds delta to a row's stock or balance; the caller has found it possible. False: refused after
 * all, which only sql-atomic does, and nothing is changed. */
bool section_change_item(struct section *section, struct op *op, db_item *item, int64_t delta,
                         struct change *ret);
bool section_change_account(struct section *section, struct op *op, db_account *account,
                            int64_t delta, struct change *ret);
/* reserved -> state; false as above. */
bool section_move_order(struct section *section, db_order *order, db_order_state state);
/* Closes an order of a sale that was reset, which moves no stock. Whoever runs under the guard that
 * the item had before may write it at the same time: it is written only over what was read. */
bool section_retire_order(struct section *section, db_order *order);
/* For an operation's second change: refused means that none of it is written and all is done again
 * from fresh reads. */
bool section_insist(struct section *section, bool done);
void section_insert_order(struct section *section, const db_order *order);

/* For answers: the guard that the item is under, and who serves. */
const char *section_guard_of(const struct section *section, const db_item *item);
const char *section_instance(const struct section *section);

/* -- for the machinery around it (attempt.c) --------------------------------------------------- */

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
    const lk_hold *hold;               /* NULL: the guard is no lock */
    char counter[DB_RESOURCE_MAX + 1]; /* of its fences in the store; an order's is its item's */
    int64_t seen_fence;                /* the newest in the row when its guard was looked up */
    int64_t fence;                     /* of this turn under the lock; 0: none */
    bool changed;
    bool former_sale; /* an order whose item was reset: to be written only over the version that
                         was read, whatever its guard */
    db_status status; /* of reading it */
    union row_value read, now; /* as it was read; as it is by now */
};

struct section_change {
    const struct op *op;
    const struct section_row *row;
    int64_t delta;
    struct change change;
};

/* What a kind of operation does. */
struct operation {
    const char *name;
    bool (*uses)(struct section *section, struct op *op); /* names the rows */
    void (*decide)(struct section *section, struct op *op);
};

struct section {
    const struct config *config;
    struct guards *guards;
    db *db;
    struct keeper *keeper;
    db_reader *reader; /* opened at the first use */
    db_tx *tx;         /* inside the write transaction */
    const struct operation *operation;

    struct op **ops; /* not yet answered */
    size_t n_ops, batch;
    struct section_row rows[SECTION_ROWS_MAX];
    size_t n_rows;
    struct lock_set locks;
    bool bought_read; /* each op's bought */

    /* what the transaction is to write */
    struct section_change *changes; /* batch * SECTION_CHANGES_PER_OP */
    size_t n_changes;
    db_order *orders; /* batch */
    size_t n_orders;

    /* why it was not written */
    db_status status;
    bool guard_changed;                /* the row names another guard than was taken */
    const lk_hold *lost;               /* this lock was lost before the write */
    const struct section_row *refused; /* stale fence, conflict */
    bool undecided;                    /* its commit, after the last run and all asking */
    db_doubt doubt;                    /* with DB_UNKNOWN */
    size_t duplicate;                  /* index of the op whose key has an answer already */
    db_error error;                    /* the store's */
};

/* For sections of up to batch operations. 0, or -1 without memory. */
int section_init(struct section *section, const struct config *config, struct guards *guards,
                 db *store, struct keeper *keeper, size_t batch);
void section_free(struct section *section);

/* Whether the outcome of a run that was DB_UNKNOWN is known by now: the stored answers tell it.
 * Else the section is undecided. */
bool section_finds_out(struct section *section);
/* Releases its locks; where it is undecided, the keeper takes them. */
void section_give_back(struct section *section);

/* The section's own connection. NULL: status says why. */
db_reader *section_reader(struct section *section);

void section_clear(struct section *section); /* no rows, no locks */
/* The row that op is named after: of a transfer, that of the account which pays. */
const struct section_row *section_row_of(const struct section *section, const struct op *op);
/* Under the locks and before anything is read: each row's fence, from where --fence-source says.
 * DB_OK, or why the store gave none; nothing was written then. *ret_from_store: how many it gave.
 */
db_status section_take_fences(struct section *section, int *ret_from_store);
/* Reads, from one snapshot, what is not read inside the transaction; decides, unless that has to be
 * done there; and commits all or nothing. DB_OK, or why not: see the members above. */
db_status section_run(struct section *section);
/* The same for each of n sections, 1 to SECTIONS_MAX, which share their reader: from one snapshot,
 * and in one commit if the store has such. Each stands for itself, and has its own outcome. */
void section_run_many(struct section *const *sections, size_t n, db_status *ret_statuses);

#endif
