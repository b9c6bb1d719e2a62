/* Operations that only read. */
#ifndef QUERIES_H
#define QUERIES_H

#include "guard.h"
#include "inflight.h"
#include "op.h"

struct queries {
    const struct config *config;
    const struct seams *seams;
    db *db;
    db_reader *reader; /* of the calling thread */
    struct guards *guards;
    struct inflight *inflight;
    const atomic_bool *closing; /* true: audits end */
};

/* Answers op, OP_GET_ITEM or one after it. */
void query_run(const struct queries *queries, struct op *op);
/* Answers n >= 1 OP_GET_ITEM of one item, from one read that begins after all of them came. */
void query_item(const struct queries *queries, struct op **ops, size_t n);

/* query_audit.c, query_guards.c */
void query_audit(const struct queries *queries, struct op *op);
/* query_lists.c: the feed; the ledger of op->resource; the orders of op->other */
void query_ledger(const struct queries *queries, struct op *op);
void query_statement(const struct queries *queries, struct op *op);
void query_orders(const struct queries *queries, struct op *op);
/* A ledger row as every answer shows it; NULL like json_pack(): no memory, or text that is not
 * UTF-8. */
struct json_t;
struct json_t *query_ledger_row(const db_ledger_row *row);
void query_guards(const struct queries *queries, struct op *op);

#endif
