/*
 * A run is judged twice: by the service's audit, and by the ledger rows and values. The rows are
 * fetched and added up here, and each accepted answer is compared with its row. The worse result
 * counts. A difference between the two is a breach by itself: one of them is wrong.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include "balances.h"
#include "rows.h"

/* The subject: n resources of one kind, and the requests that changed them. */
struct witness {
    uint64_t n;
    int64_t initial; /* of each, as the run created it */
    bool is_item;
    bool one_each; /* see struct rows_resource */
    const struct tally *tally;
    /* The i-th resource's name: "item:1". */
    void (*name)(const void *ctx, uint64_t i, char ret[100]);
    /* The request with this key; ROWS_FOREIGN: none of the run. */
    int64_t (*origin)(const void *ctx, const char *key);
    /* The changes of a request: numbers of resources, and amounts. */
    void (*effect)(const void *ctx, uint64_t origin,
                   struct balances_change ret[BALANCES_CHANGES_MAX]);
    /* Called for each resource once it is judged; may be NULL. */
    void (*judged)(void *ctx, uint64_t i, const struct audit_row *own,
                   const struct verdict *verdict, const struct client_count *client);
    void *ctx;
};

/* Adds the result to *verdict, and counter-example and disagreements to run. Returns 0, or -1 with
 * run->message if the audit or the ledger cannot be read to its end: rows that an open transaction
 * holds back are awaited for a while, and are never taken for missing. */
int witness_judge(struct run *run, const struct witness *witness, struct verdict *verdict);

/* Records the end of the ledger before the run's first change. Reading starts there, or at the
 * first row if the service does not report the end. */
void witness_begin(struct run *run);

#endif
