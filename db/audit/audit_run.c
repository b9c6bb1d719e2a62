/* Merges an engine's lists, which are all sorted by resource. A resource that has ledger rows but
 * no head gets a head marked missing, so that no ledger row is skipped. */
#include "audit.h"

#include <string.h>

#define HEAD_COLUMN(kind, name)    COLUMN(struct audit_head, kind, name)
#define REPEATS_COLUMN(kind, name) COLUMN(struct audit_repeats, kind, name)
static const struct column heads[] = {AUDIT_HEAD_ROW(HEAD_COLUMN, HEAD_COLUMN)};
static const struct column repeats[] = {AUDIT_REPEATS_ROW(REPEATS_COLUMN, REPEATS_COLUMN)};
const struct row_type audit_head_type = ROW_TYPE(struct audit_head, heads);
const struct row_type audit_repeats_type = ROW_TYPE(struct audit_repeats, repeats);

/* The next entry of each list. */
struct merge {
    const struct audit_lists *lists;
    void *engine;
    bool has_head, has_row, has_repeats;
    struct audit_head head;
    db_ledger_row row;
    struct audit_repeats repeats;
    db_status trouble;
};

/* True if the list gave an entry. After trouble no list is read again. */
static bool is_there(struct merge *merge, db_status status)
{
    if (status != DB_OK && status != DB_NOT_FOUND)
        merge->trouble = status;
    return status == DB_OK;
}

static void next_head(struct merge *merge)
{
    merge->has_head = merge->trouble == DB_OK &&
                      is_there(merge, merge->lists->next_head(merge->engine, &merge->head));
}

static void next_row(struct merge *merge)
{
    merge->has_row = merge->trouble == DB_OK &&
                     is_there(merge, merge->lists->next_row(merge->engine, &merge->row));
}

static void next_repeats(struct merge *merge)
{
    merge->has_repeats =
        merge->trouble == DB_OK &&
        is_there(merge, merge->lists->next_repeats(merge->engine, &merge->repeats));
}

static void take_head(struct merge *merge, struct audit_head *ret)
{
    if (merge->has_head &&
        (!merge->has_row || strcmp(merge->head.resource, merge->row.resource) <= 0)) {
        *ret = merge->head;
        next_head(merge);
    } else {
        *ret = (struct audit_head){.missing = true};
        memcpy(ret->resource, merge->row.resource, sizeof ret->resource);
    }
}

static void feed_rows(struct merge *merge, struct audit *audit)
{
    while (merge->has_row && strcmp(merge->row.resource, audit->head.resource) == 0) {
        audit_add(audit, &merge->row);
        next_row(merge);
    }
}

static int64_t take_repeats(struct merge *merge, const struct audit_head *head)
{
    int64_t rows = 0;
    int order;
    while (merge->has_repeats && (order = strcmp(merge->repeats.resource, head->resource)) <= 0) {
        if (order == 0 && merge->repeats.epoch == head->epoch)
            rows = merge->repeats.rows;
        next_repeats(merge);
    }
    return rows;
}

db_status audit_run(const struct audit_lists *lists, void *engine, bool whole,
                    int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    struct merge merge = {.lists = lists, .engine = engine};
    struct audit_head head;
    struct audit audit;
    next_head(&merge);
    lists->open_ledger(engine, merge.has_head ? merge.head.epoch : INT64_MIN);
    next_row(&merge);
    next_repeats(&merge);
    if (merge.trouble == DB_OK && !merge.has_head && !merge.has_row)
        return DB_NOT_FOUND;
    while (merge.trouble == DB_OK && (merge.has_head || merge.has_row)) {
        take_head(&merge, &head);
        audit_start(&audit, &head, whole);
        feed_rows(&merge, &audit);
        audit_finish(&audit, take_repeats(&merge, &head));
        if (merge.trouble == DB_OK && each(arg, &audit.row) != 0)
            break;
    }
    return merge.trouble;
}
