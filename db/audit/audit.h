/*
 * The audit, common to all engines. audit.c judges one resource by its ledger rows since its last
 * reset. audit_run.c finds the rows of each resource. Memory is constant.
 */
#ifndef DB_AUDIT_H
#define DB_AUDIT_H

#include "db_audit.h"
#include "columns.h"

enum {
    /* Rows of one fork that are remembered. The row after a larger fork is accepted unchecked. No
     * real workload has so many writers in one gap. */
    AUDIT_FORK_WIDTH_MAX = 64
};

/* A resource without its ledger rows. */
struct audit_head {
    char resource[DB_RESOURCE_MAX + 1];
    char guard[DB_GUARD_MAX + 1];
    int64_t initial, current, version, epoch; /* all 0 if missing */
    char chain[DB_HASH_LENGTH + 1];
    bool missing; /* no row in items or accounts: only orders or the ledger name it */
    int64_t sold; /* items: pieces in reserved and paid orders of the epoch; missing: of all */
    int64_t over_limit;   /* items: pieces of the epoch beyond the limit per user */
    int64_t former_paid;  /* items: minor units of paid orders of former epochs */
    int64_t stray_orders; /* items: reserved and paid orders of a later epoch; missing: all */
    /* Of rows that were moved to an archive, as in db_carried; n 0: none. */
    int64_t carried_epoch, carried_version, carried_id, carried_total, carried_moved;
    int64_t carried_restocked, carried_n;
    char carried_hash[DB_HASH_LENGTH + 1];
};

#define AUDIT_HEAD_ROW(FIRST, NEXT)                                                                \
    FIRST(TEXT, resource)                                                                          \
    NEXT(TEXT, guard)                                                                              \
    NEXT(INT, initial)                                                                             \
    NEXT(INT, current)                                                                             \
    NEXT(INT, version)                                                                             \
    NEXT(INT, epoch)                                                                               \
    NEXT(TEXT, chain)                                                                              \
    NEXT(FLAG, missing)                                                                            \
    NEXT(INT, sold)                                                                                \
    NEXT(INT, stray_orders)                                                                        \
    NEXT(INT, over_limit)                                                                          \
    NEXT(INT, former_paid)                                                                         \
    NEXT(INT, carried_epoch)                                                                       \
    NEXT(INT, carried_version)                                                                     \
    NEXT(INT, carried_id)                                                                          \
    NEXT(TEXT, carried_hash)                                                                       \
    NEXT(INT, carried_total)                                                                       \
    NEXT(INT, carried_moved)                                                                       \
    NEXT(INT, carried_restocked)                                                                   \
    NEXT(INT, carried_n)
extern const struct row_type audit_head_type;

/* -- one resource: audit.c -------------------------------------------------------------------- */

/* All rows with one version_before: normally one, more in a fork. */
struct audit_step {
    int64_t version_before, rows;
    int64_t after[AUDIT_FORK_WIDTH_MAX];
};

/* The hashes of the rows of one step, over all epochs. */
struct audit_hashes {
    int64_t epoch, version_before, rows;
    char hash[AUDIT_FORK_WIDTH_MAX][DB_HASH_LENGTH + 1];
};

struct audit_chain {
    struct audit_hashes
        steps[2]; /* one of them is the step that goes on, the other the one before */
    int now;
    bool any, forked; /* forked: in this epoch */
    bool whole;       /* from the first row on: before it there is nothing */
};

struct audit {
    db_audit_row row; /* the result, once finished */
    struct audit_head head;
    __int128 ledger_sum, restocked;
    bool any;
    struct audit_step previous, step; /* of the chain: the last complete one, the current one */
    bool has_previous;
    db_ledger_row first; /* of the current step */
    bool first_is_kept;  /* false: that row was moved to an archive */
    struct audit_chain chain;
};

/* whole: the rows of older epochs will be added, too. */
void audit_start(struct audit *audit, const struct audit_head *head, bool whole);
/* Adds a ledger row. Call it for each, in the order (epoch, version_before, id). */
void audit_add(struct audit *audit, const db_ledger_row *row);
/* duplicates: ledger rows of the epoch beyond the first of one txn_id. */
void audit_finish(struct audit *audit, int64_t duplicates);

/* audit_chain.c: whether the row's hash follows from a row of the step before it. */
void audit_chain_start(struct audit_chain *chain, bool whole);
/* Goes on from the last row that was moved to an archive. Call it at the start. */
void audit_chain_carry(struct audit_chain *chain, const struct audit_head *head);
bool audit_chain_add(struct audit_chain *chain, const db_ledger_row *row);
/* Whether the resource's chain is what its last row left. A fork may have left another one. */
bool audit_chain_ends(const struct audit_chain *chain, const char *hash);

/* -- all of them: audit_run.c ----------------------------------------------------------------- */

struct audit_repeats {
    char resource[DB_RESOURCE_MAX + 1];
    int64_t epoch, rows; /* beyond the first of one txn_id */
};
#define AUDIT_REPEATS_ROW(FIRST, NEXT)                                                             \
    FIRST(TEXT, resource)                                                                          \
    NEXT(INT, epoch)                                                                               \
    NEXT(INT, rows)
extern const struct row_type audit_repeats_type;

/* An engine's three lists, see audit_sql.h. Each function gives the next entry, or DB_NOT_FOUND at
 * the end. The list of heads is open. open_ledger() opens the other two, from this epoch on. */
struct audit_lists {
    db_status (*next_head)(void *engine, struct audit_head *ret);
    void (*open_ledger)(void *engine, int64_t epoch);
    db_status (*next_row)(void *engine, db_ledger_row *ret);
    db_status (*next_repeats)(void *engine, struct audit_repeats *ret);
};

/* Runs db_audit() on the lists. DB_NOT_FOUND: they are empty. */
db_status audit_run(const struct audit_lists *lists, void *engine, bool whole,
                    int (*each)(void *arg, const db_audit_row *row), void *arg);

#endif
