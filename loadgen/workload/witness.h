/*
 * A run is judged twice: by the service's audit, and by the ledger rows and values, which are
 * fetched and added up here, each accepted answer against its row. The worse result counts. A
 * difference between the two is a breach by itself: one of them is wrong.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include "balances.h"
#include "rows.h"

/* What is judged: n resources of one kind, and the requests that changed them. */
struct witness {
    uint64_t n;
    int64_t initial; /* of each, as the run created it */
    bool is_item;
    bool one_each; /* see struct rows_resource */
    const struct tally *tally;
    /* The i-th resource's name: "item:1". */
    void (*name)(const void *ctx, uint64_t i, char ret[100]);
    /* The request with this key; ROWS_FOREIGN: none of the run's. */
    int64_t (*origin)(const void *ctx, const char *key);
    /* What a request changes: which resources (their numbers) by how much. */
    void (*effect)(const void *ctx, uint64_t origin,
                   struct balances_change ret[BALANCES_CHANGES_MAX]);
    /* Told of each resource's own figures once it is judged; may be NULL. */
    void (*judged)(void *ctx, uint64_t i, const struct audit_row *own,
                   const struct verdict *verdict, const struct client_count *client);
    void *ctx;
};

/* Adds the result to *verdict, and counter-example and disagreements to run. Returns 0, or -1 with
 * run->message when the audit or the ledger cannot be read. */
int witness_judge(struct run *run, const struct witness *witness, struct verdict *verdict);

/* Notes the end of the ledger before the run's first change. Reading begins there, or at its first
 * row when the service does not tell the end. */
void witness_begin(struct run *run);

#endif
