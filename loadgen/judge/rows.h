/*
 * loadgen's own audit of one resource, from its ledger rows. It uses no figure that the service has
 * computed. Pure functions: no network, no clock.
 */
#ifndef ROWS_H
#define ROWS_H

#include "verdict.h"

enum { ROWS_FOREIGN = -1 }; /* origin of a row whose txn_id is not a key of the run */

struct rows_row {
    int64_t id, version_before, before, after, delta, at_us;
    int64_t origin; /* number of the request with this key, or ROWS_FOREIGN */
    bool opens;     /* its txn_id is that of a creation: "reset\t..." */
    bool restocks;  /* its kind is that of a stock change */
    char *txn_id, *instance;
};

struct rows {
    struct rows_row *rows;
    size_t n, room;
};

/* Facts about the resource from outside the ledger. */
struct rows_resource {
    const char *name;         /* "item:1" */
    int64_t initial;          /* as the run created it */
    int64_t current, version; /* as GET shows it */
    int64_t sold;             /* items: as GET shows it */
    bool is_item;
    bool one_each; /* items: at most one piece per user; each request is from another user */
};

/* Copies one ledger row out of JSON, without its origin. Returns 0, or -1. Then *ret_missing names
 * a field that is missing or of another type; NULL: no memory. */
int rows_add(struct rows *rows, const json_t *row, const char **ret_missing);
void rows_free(struct rows *rows);

/* Sorts the rows and judges them. Figures and rules are those of the service's audit
 * (db/audit/audit.h). A row belongs to the chain if it begins with the value that a row of the
 * previous version wrote. The first row must be the creation. */
void rows_audit(struct rows *rows, const struct rows_resource *resource, struct audit_row *ret);

/* Calls each() for every figure that differs between two audits of one resource. Returns how many.
 * `negative` and `broken` are compared only as zero or not zero: the audits count such rows
 * differently. */
int rows_disagreements(const struct audit_row *service, const struct audit_row *own,
                       void (*each)(void *ctx, const char *figure, int64_t service, int64_t own),
                       void *ctx);

#endif
