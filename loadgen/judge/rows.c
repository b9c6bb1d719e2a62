#include "rows.h"
#include "wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- from JSON --------------------------------------------------------------------------------- */

static bool take_integer(const json_t *object, const char *name, int64_t *ret,
                         const char **ret_missing)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        *ret = json_integer_value(value);
    else
        *ret_missing = name;
    return json_is_integer(value);
}

static bool take_text(const json_t *object, const char *name, char **ret, const char **ret_missing)
{
    const char *value = json_string_value(json_object_get(object, name));
    if (value == NULL) {
        *ret_missing = name;
        return false;
    }
    *ret = strdup(value);
    return *ret != NULL;
}

static bool grow(struct rows *rows)
{
    if (rows->n < rows->room)
        return true;
    size_t room = rows->room == 0 ? 64 : 2 * rows->room;
    struct rows_row *more = realloc(rows->rows, room * sizeof *more);
    if (more == NULL)
        return false;
    rows->rows = more;
    rows->room = room;
    return true;
}

int rows_add(struct rows *rows, const json_t *object, const char **ret_missing)
{
    struct rows_row row = {.origin = ROWS_FOREIGN};
    *ret_missing = NULL;
    bool taken = take_integer(object, "id", &row.id, ret_missing) &&
                 take_integer(object, "version_before", &row.version_before, ret_missing) &&
                 take_integer(object, "before", &row.before, ret_missing) &&
                 take_integer(object, "after", &row.after, ret_missing) &&
                 take_integer(object, "delta", &row.delta, ret_missing) &&
                 take_integer(object, "at_us", &row.at_us, ret_missing) &&
                 take_text(object, "txn_id", &row.txn_id, ret_missing) &&
                 take_text(object, "instance", &row.instance, ret_missing) && grow(rows);
    if (!taken) {
        free(row.txn_id);
        free(row.instance);
        return -1;
    }
    const char *kind = json_string_value(json_object_get(object, "kind")); /* optional */
    row.restocks = kind != NULL && strcmp(kind, "restock") == 0;
    row.opens = strncmp(row.txn_id, "reset\t", strlen("reset\t")) == 0;
    rows->rows[rows->n++] = row;
    return 0;
}

void rows_free(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->rows[i].txn_id);
        free(rows->rows[i].instance);
    }
    free(rows->rows);
    *rows = (struct rows){0};
}

/* -- judging ----------------------------------------------------------------------------------- */

static int by_origin(const void *a, const void *b)
{
    const struct rows_row *x = a, *y = b;
    return (x->origin > y->origin) - (x->origin < y->origin);
}

static int by_version(const void *a, const void *b)
{
    const struct rows_row *x = a, *y = b;
    if (x->version_before != y->version_before)
        return x->version_before < y->version_before ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* qsort() wants an array, also for no row. */
static void sort(struct rows *rows, int (*order)(const void *, const void *))
{
    if (rows->n > 0)
        qsort(rows->rows, rows->n, sizeof *rows->rows, order);
}

static int64_t duplicates_of(struct rows *rows)
{
    int64_t n = 0;
    sort(rows, by_origin);
    for (size_t i = 1; i < rows->n; i++)
        n += rows->rows[i].origin != ROWS_FOREIGN &&
             rows->rows[i].origin == rows->rows[i - 1].origin;
    return n;
}

static struct ledger_row ledger_row_of(const char *resource, const struct rows_row *row)
{
    struct ledger_row ret = {.delta = row->delta,
                             .before = row->before,
                             .after = row->after,
                             .version_before = row->version_before,
                             .at_us = row->at_us};
    snprintf(ret.resource, sizeof ret.resource, "%s", resource);
    snprintf(ret.txn_id, sizeof ret.txn_id, "%s", row->txn_id);
    snprintf(ret.instance, sizeof ret.instance, "%s", row->instance);
    return ret;
}

/* Keeps the first fork whose two changes began from the same value, else the first fork. */
static void keep_fork(struct audit_row *audit, const struct rows_row *first,
                      const struct rows_row *row)
{
    bool better = first->before == row->before && audit->fork[0].before != audit->fork[1].before;
    if (audit->has_fork && !better)
        return;
    audit->has_fork = true;
    audit->fork[0] = ledger_row_of(audit->resource, first);
    audit->fork[1] = ledger_row_of(audit->resource, row);
}

/* from..to: the rows of the previous version. */
static bool continues(const struct rows_row *row, const struct rows_row *from,
                      const struct rows_row *to)
{
    if (from == to || (wide)row->version_before - from->version_before != 1)
        return false;
    for (; from < to; from++)
        if (from->after == row->before)
            return true;
    return false;
}

static bool opens_chain(const struct rows_row *row, int64_t initial)
{
    return row->opens && row->after == initial;
}

/* Sums of the deltas after the creation. */
struct sums {
    wide all, restocked;
};

static struct sums walk(const struct rows *rows, const struct rows_resource *resource,
                        struct audit_row *audit)
{
    const struct rows_row *all = rows->rows, *before = all, *same = all;
    struct sums sums = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const struct rows_row *row = &all[i];
        if (row->version_before != same->version_before) {
            before = same;
            same = row;
        } else if (row != same) {
            audit->lost_updates++;
            keep_fork(audit, same, row);
        }
        bool fits = same == all ? opens_chain(row, resource->initial)
                                : !row->opens && continues(row, before, same);
        audit->broken += !fits || (wide)row->before + row->delta != row->after;
        audit->negative |= row->after < 0;
        sums.all += row->opens ? 0 : row->delta;
        sums.restocked += row->restocks ? row->delta : 0;
    }
    return sums;
}

/* The resource's version is one more than the newest row's. After a fork a late writer may have
 * set it lower, but never higher. */
static bool version_fits(const struct rows *rows, int64_t version, bool forked)
{
    wide newest = rows->n == 0 ? 0 : (wide)rows->rows[rows->n - 1].version_before + 1;
    return forked ? version <= newest : rows->n > 0 && version == newest;
}

void rows_audit(struct rows *rows, const struct rows_resource *resource, struct audit_row *ret)
{
    struct audit_row audit = {.initial = resource->initial, .current = resource->current};
    snprintf(audit.resource, sizeof audit.resource, "%s", resource->name);
    audit.negative = resource->current < 0;
    audit.duplicates = duplicates_of(rows);
    sort(rows, by_version);
    const struct sums sums = walk(rows, resource, &audit);
    wide lost = resource->initial + sums.all - resource->current;
    audit.ledger_sum = wide_clip(sums.all);
    audit.lost_amount = wide_clip(lost < 0 ? -lost : lost);
    audit.broken += !version_fits(rows, resource->version, audit.lost_updates > 0);
    if (resource->is_item) {
        wide sold = sums.restocked - sums.all, over = sold - resource->initial - sums.restocked;
        audit.sold = wide_clip(sold);
        audit.restocked = wide_clip(sums.restocked);
        audit.oversold = over > 0 ? wide_clip(over) : 0;
        audit.over_limit = resource->one_each ? audit.duplicates : 0;
        audit.broken += resource->sold != audit.sold;
    }
    *ret = audit;
}

/* -- comparing two audits ---------------------------------------------------------------------- */

static bool any(int64_t count)
{
    return count != 0;
}

int rows_disagreements(const struct audit_row *service, const struct audit_row *own,
                       void (*each)(void *ctx, const char *figure, int64_t service, int64_t own),
                       void *ctx)
{
    int n = 0;
#define ROWS_COMPARE(name, agree)                                                                  \
    if (!(agree)) {                                                                                \
        n++;                                                                                       \
        each(ctx, #name, service->name, own->name);                                                \
    }
#define ROWS_SAME(name) ROWS_COMPARE(name, service->name == own->name)
    ROWS_SAME(initial)
    ROWS_SAME(current)
    ROWS_SAME(ledger_sum)
    ROWS_SAME(sold)
    ROWS_SAME(restocked)
    ROWS_SAME(oversold)
    ROWS_SAME(over_limit)
    ROWS_SAME(lost_updates)
    ROWS_SAME(lost_amount)
    ROWS_SAME(duplicates)
    ROWS_COMPARE(negative, any(service->negative) == any(own->negative))
    ROWS_COMPARE(broken, any(service->broken) == any(own->broken))
#undef ROWS_SAME
#undef ROWS_COMPARE
    return n;
}
