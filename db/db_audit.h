/*
 * The audit: what is wrong in the rows of the store, judged from the rows alone.
 *
 * db_audit() judges each resource: updates lost, pieces oversold, rows that do not follow from each
 * other. db_audit_books() judges all movements of money.
 */
#ifndef DB_DB_AUDIT_H
#define DB_DB_AUDIT_H

#include "db.h"

enum { DB_FORKS_MAX = 8 }; /* forks shown per resource; all are counted */

typedef struct db_audit_row {
    char resource[DB_RESOURCE_MAX + 1];
    char guard[DB_GUARD_MAX + 1];
    int64_t missing; /* 1: ledger or live orders name it, and there is no such item or account */
    int64_t initial, current; /* missing: 0 */
    int64_t ledger_sum;       /* of the deltas since the reset; missing: of all */
    int64_t sold;             /* items: pieces in reserved and paid orders; missing: of all */
    int64_t restocked;        /* items: of the deltas of kind restock since the reset */
    int64_t oversold;         /* items: max(0, sold - initial - restocked) */
    int64_t over_limit;  /* items: pieces in those orders beyond the limit per user, of all users */
    int64_t former_paid; /* items: minor units that the payments of former epochs have moved; it
                            stays as it is from the answer to a reset until the next reset */
    int64_t negative;    /* 1 if current < 0 or any ledger row's after < 0 */
    int64_t lost_updates; /* ledger rows whose version_before an earlier row has already */
    int64_t lost_amount;  /* |initial + ledger_sum - current| */
    int64_t duplicates;   /* ledger rows beyond the first of one txn_id on this resource */
    int64_t broken;       /* rows with after != before + delta, or gaps in the chain; rows and live
                             orders of a later epoch than the resource's, of a missing one all;
                             items: 1 more when orders and ledger, but for its rows of kind
                             restock, disagree about what was sold */
    int64_t unchained;    /* rows whose hash does not follow from a row before them; 1 more if the
                             resource's chain is not the hash of its last row. An audit of one
                             resource takes the hash of its last reset as given */
    size_t n_forks;       /* filled below */
    db_ledger_row forks[DB_FORKS_MAX][2];
    bool
        ok; /* missing, oversold, over_limit, negative, lost_*, duplicates, broken and unchained are
               0 */
} db_audit_row;

/* Calls each() per resource in ascending order, from one snapshot; resource NULL: all. A non-zero
 * return of each() stops and is not an error. DB_NOT_FOUND: nothing has the name. What
 * else it returns, error (may be NULL) explains. */
db_status db_audit(db_reader *reader, const char *resource,
                   int (*each)(void *arg, const db_audit_row *row), void *arg, db_error *error);

/* Calls each() for each ledger row of a movement of money: of the accounts and of the shop's sides.
 * The rows of one transaction come together. From one snapshot; returns as db_audit(). */
db_status db_read_money(db_reader *reader, int (*each)(void *arg, const db_ledger_row *row),
                        void *arg, db_error *error);

/* Of all movements of money. */
typedef struct db_books {
    int64_t transactions; /* that moved money */
    int64_t unbalanced;   /* those whose legs are not two, or do not name each other, or do not sum
                             to zero */
    int64_t unchained;    /* those whose shop's leg has not the hash that follows from the other */
    int64_t total;        /* sum of all legs */
    int64_t unpaid;       /* orders whose state and whose payments less refunds differ */
    bool ok;              /* all but transactions are 0 */
} db_books;
/* Within db_reader_begin() and db_reader_end() it is of the same snapshot as db_audit(). */
db_status db_audit_books(db_reader *reader, db_books *ret, db_error *error);

#endif
