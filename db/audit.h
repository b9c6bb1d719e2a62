/*
 * The audit's judgement, common to all engines: fed with one resource's ledger rows since its last
 * reset, in the order (version_before, id), it finds forks, gaps and wrong sums. Constant memory.
 *
 *     audit_start(&audit, &head);
 *     for each row: audit_add(&audit, &row);
 *     audit_finish(&audit, duplicates);          audit.row is the result
 */
#ifndef DB_AUDIT_H
#define DB_AUDIT_H

#include "db.h"

enum {
    /* Of a fork with more rows than this only the first ones are remembered; what follows it is
     * then not held against it. No honest workload has as many writers in one gap. */
    AUDIT_FORK_WIDTH_MAX = 64
};

struct audit_head {
    char resource[DB_RESOURCE_MAX + 1];
    char guard[DB_GUARD_MAX + 1];
    bool is_item;
    int64_t initial, current, version, epoch;
    int64_t sold; /* items: pieces in reserved and paid orders of the epoch */
};

/* All rows with one version_before: one when unharmed, more in a fork. */
struct audit_step {
    int64_t version_before, rows;
    int64_t after[AUDIT_FORK_WIDTH_MAX];
};

struct audit {
    db_audit_row row;
    struct audit_head head;
    __int128 ledger_sum;
    bool any;
    struct audit_step previous, step; /* of the chain: the last finished one and the present one */
    bool has_previous;
    db_ledger_row first; /* of the present step */
};

void audit_start(struct audit *audit, const struct audit_head *head);
void audit_add(struct audit *audit, const db_ledger_row *row);
/* duplicates: ledger rows beyond the first of one txn_id, counted by the engine. */
void audit_finish(struct audit *audit, int64_t duplicates);

/* txn_id of the row that a reset writes: the first of its epoch. */
void audit_reset_txn(char (*ret)[DB_KEY_MAX + 1], const char *resource, int64_t epoch);

#endif
