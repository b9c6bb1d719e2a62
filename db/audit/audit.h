/*
 * The audit, common to all engines. audit.c judges one resource by its ledger rows since its last
 * reset; audit_run.c finds the rows of each resource among all of them. Constant memory.
 */
#ifndef DB_AUDIT_H
#define DB_AUDIT_H

#include "columns.h"

enum {
    /* Of a fork with more rows than this only the first ones are remembered; what follows it is
     * then not held against it. No honest workload has as many writers in one gap. */
    AUDIT_FORK_WIDTH_MAX = 64
};

/* What there is of a resource beside the ledger. */
struct audit_head {
    char resource[DB_RESOURCE_MAX + 1];
    char guard[DB_GUARD_MAX + 1];
    int64_t initial, current, version, epoch; /* all 0 for one that is missing */
    bool missing; /* no row in items or accounts: only orders or the ledger name it */
    int64_t sold; /* items: pieces in reserved and paid orders of the epoch; missing: of all */
    int64_t over_limit;   /* items: pieces of the epoch beyond the limit per user */
    int64_t former_paid;  /* items: minor units of paid orders of former epochs */
    int64_t stray_orders; /* items: reserved and paid orders of a later epoch; missing: all */
};

#define AUDIT_HEAD_ROW(FIRST, NEXT)                                                                \
    FIRST(TEXT, resource)                                                                          \
    NEXT(TEXT, guard)                                                                              \
    NEXT(INT, initial)                                                                             \
    NEXT(INT, current)                                                                             \
    NEXT(INT, version)                                                                             \
    NEXT(INT, epoch)                                                                               \
    NEXT(FLAG, missing)                                                                            \
    NEXT(INT, sold)                                                                                \
    NEXT(INT, stray_orders)                                                                        \
    NEXT(INT, over_limit)                                                                          \
    NEXT(INT, former_paid)
extern const struct row_type audit_head_type;

/* -- one resource: audit.c ----------------------------------------------------------------------
 */

/* All rows with one version_before: one when unharmed, more in a fork. */
struct audit_step {
    int64_t version_before, rows;
    int64_t after[AUDIT_FORK_WIDTH_MAX];
};

struct audit {
    db_audit_row row; /* the result, once finished */
    struct audit_head head;
    __int128 ledger_sum;
    bool any;
    struct audit_step previous, step; /* of the chain: the last finished one and the present one */
    bool has_previous;
    db_ledger_row first; /* of the present step */
};

void audit_start(struct audit *audit, const struct audit_head *head);
/* Each of its ledger rows, in the order (epoch, version_before, id). */
void audit_add(struct audit *audit, const db_ledger_row *row);
/* duplicates: ledger rows of the epoch beyond the first of one txn_id. */
void audit_finish(struct audit *audit, int64_t duplicates);

/* -- all of them: audit_run.c -------------------------------------------------------------------
 */

struct audit_repeats {
    char resource[DB_RESOURCE_MAX + 1];
    int64_t epoch, rows; /* beyond the first of one txn_id */
};
#define AUDIT_REPEATS_ROW(FIRST, NEXT)                                                             \
    FIRST(TEXT, resource)                                                                          \
    NEXT(INT, epoch)                                                                               \
    NEXT(INT, rows)
extern const struct row_type audit_repeats_type;

/* An engine's three lists, of audit_sql.h: the next of each, or DB_NOT_FOUND at its end. The heads
 * are open; the other two open when the epoch of the only resource is known. */
struct audit_lists {
    db_status (*next_head)(void *engine, struct audit_head *ret);
    void (*open_ledger)(void *engine, int64_t epoch);
    db_status (*next_row)(void *engine, db_ledger_row *ret);
    db_status (*next_repeats)(void *engine, struct audit_repeats *ret);
};

/* db_audit() of what the lists hold. DB_NOT_FOUND: they are empty. */
db_status audit_run(const struct audit_lists *lists, void *engine,
                    int (*each)(void *arg, const db_audit_row *row), void *arg);

#endif
