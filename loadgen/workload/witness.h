/*
 * The verdict has two witnesses: the service's audit, and the ledger rows and values that the judge
 * fetches and adds up himself, each accepted answer against its row. Where they disagree, the worse
 * of the two counts and the disagreement is a breach of its own: one of them does not tell the
 * truth.
 */
#ifndef WITNESS_H
#define WITNESS_H

#include "balances.h"
#include "rows.h"

/* What there is to be judged: n resources of one kind, and the requests that changed them. */
struct witness {
    uint64_t n;
    int64_t initial; /* of each, as the run created it */
    bool is_item;
    bool one_each; /* see struct rows_resource */
    const struct tally *tally;
    /* The i-th resource's name: "item:1". */
    void (*name)(const void *ctx, uint64_t i, char ret[100]);
    /* Which request bears this key; ROWS_FOREIGN: none of the run's. */
    int64_t (*origin)(const void *ctx, const char *key);
    /* What a request changes: which resources (their numbers) by how much. */
    void (*effect)(const void *ctx, uint64_t origin,
                   struct balances_change ret[BALANCES_CHANGES_MAX]);
    /* Told of each resource's own figures once it is judged; may be NULL. */
    void (*judged)(void *ctx, uint64_t i, const struct audit_row *own,
                   const struct verdict *verdict, const struct client_count *client);
    void *ctx;
};

/* Adds to *verdict what both witnesses say, and to run its counter-example and disagreements.
 * Returns 0, or -1 with run->message: a witness could not be heard. */
int witness_judge(struct run *run, const struct witness *witness, struct verdict *verdict);

/* Notes the end of the ledger before the run's first change: what is read of it begins there, or
 * with its first row when the service does not say. */
void witness_begin(struct run *run);

#endif
