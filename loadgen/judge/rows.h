/*
 * The judge's own audit: what the ledger rows of one resource say, one by one. It believes nothing
 * that the service says of them. Pure functions: no network, no clock.
 */
#ifndef ROWS_H
#define ROWS_H

#include "verdict.h"

enum { ROWS_FOREIGN = -1 }; /* origin of a row whose txn_id is none of the run's keys */

struct rows_row {
    int64_t id, version_before, before, after, delta, at_us;
    int64_t origin; /* number of the request whose key it bears, or ROWS_FOREIGN */
    bool opens;     /* its txn_id is that of a creation: "reset\t..." */
    char *txn_id, *instance;
};

struct rows {
    struct rows_row *rows;
    size_t n, room;
};

/* What the judge knows of the resource without the ledger. */
struct rows_resource {
    const char *name;         /* "item:1" */
    int64_t initial;          /* as the run created it */
    int64_t current, version; /* as GET shows it */
    int64_t sold;             /* items: as GET shows it */
    bool is_item;
    bool one_each; /* items: no user may have more than one piece; each request is a user's own */
};

/* Copies one ledger row out of JSON, without its origin. 0, or -1 with *ret_missing: the name of a
 * field that is missing or of another type; NULL: no memory. */
int rows_add(struct rows *rows, const json_t *row, const char **ret_missing);
void rows_free(struct rows *rows);

/* Sorts the rows and judges them: the same figures as the service's audit, by the same rules (see
 * db/audit/audit.h). A row belongs to the chain when it begins from the value that a row of the
 * version before it left; the first must be the creation's. */
void rows_audit(struct rows *rows, const struct rows_resource *resource, struct audit_row *ret);

/* Figures in which two audits of one resource disagree. Of `negative` and `broken` only whether
 * there are any counts: what is one breach to the one may be two to the other. Calls each() for
 * every one of them and returns how many. */
int rows_disagreements(const struct audit_row *service, const struct audit_row *own,
                       void (*each)(void *ctx, const char *figure, int64_t service, int64_t own),
                       void *ctx);

#endif
