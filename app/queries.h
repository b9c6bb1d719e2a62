/* Operations that only read. */
#ifndef QUERIES_H
#define QUERIES_H

#include "guard.h"
#include "inflight.h"
#include "op.h"

struct queries {
    const struct config *config;
    db *db;
    db_reader *reader; /* of the calling thread */
    struct guards *guards;
    struct inflight *inflight;
};

/* Answers op, OP_GET_ITEM or one after it. */
void query_run(const struct queries *queries, struct op *op);

/* query_audit.c, query_guards.c, query_lock.c */
void query_audit(const struct queries *queries, struct op *op);
void query_guards(const struct queries *queries, struct op *op);
void query_lock(const struct queries *queries, struct op *op);

#endif
