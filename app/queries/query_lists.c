/* Lists, page by page: the feed of all changes, the statement of one resource, a user's orders. */
#include "answer.h"
#include "db_archive.h"
#include "queries.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- cursors: "NUMBER.NUMBER..."; clients take them for words ------------------------------------
 */

/* Reads n numbers from op->after, or all zeros from "". */
static bool read_cursor(const char *text, size_t n, int64_t *ret)
{
    memset(ret, 0, n * sizeof *ret);
    if (text[0] == '\0')
        return true;
    for (size_t i = 0; i < n; i++) {
        const size_t length = strspn(text, "0123456789");
        errno = 0;
        ret[i] = strtoll(text, NULL, 10);
        const bool ends = i + 1 == n;
        if (length == 0 || errno != 0 || text[length] != (ends ? '\0' : '.'))
            return false;
        text += length + !ends;
    }
    return true;
}

static bool bad_cursor(struct op *op)
{
    op_problem(op, PROBLEM_BAD_REQUEST, "after must be the \"next\" of another page of this list");
    return false;
}

/* SQLite has no transactions in its places. */
static void show_feed_place(const db_feed_place *place, char ret[DB_ID_MAX + 1])
{
    if (place->transaction == 0)
        snprintf(ret, DB_ID_MAX + 1, "%" PRId64, place->id);
    else
        snprintf(ret, DB_ID_MAX + 1, "%" PRId64 ".%" PRId64, place->transaction, place->id);
}

static bool read_feed_place(struct op *op, db_feed_place *ret)
{
    int64_t numbers[2];
    const bool both = strchr(op->after, '.') != NULL;
    if (!read_cursor(op->after, both ? 2 : 1, numbers))
        return bad_cursor(op);
    *ret = both ? (db_feed_place){numbers[0], numbers[1]} : (db_feed_place){.id = numbers[0]};
    return true;
}

/* -- pages ---------------------------------------------------------------------------------------
 */

json_t *query_ledger_row(const db_ledger_row *row)
{
    return json_pack(
        "{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s,"
        " s:I, s:s}",
        "id", row->id, "resource", row->resource, "txn_id", row->txn_id, "delta", row->delta,
        "before", row->before, "after", row->after, "version_before", row->version_before, "fence",
        row->fence, "epoch", row->epoch, "guard", row->guard, "instance", row->instance, "kind",
        db_kind_text(row->kind), "order_id", row->order_id, "counterpart", row->counterpart,
        "reason", row->reason, "reference", row->reference, "at_us", row->at_us, "hash", row->hash);
}

struct page {
    const struct op *op;
    json_t *rows;
    bool whole;                  /* false: a row is missing, see query_ledger_row() */
    char next[DB_ID_MAX + 1];    /* where the next page begins */
    char missing[DB_ID_MAX + 1]; /* the row that is */
};

/* A buyer sees its own key as it was sent, and "" instead of the key of another caller. Operators
 * see keys as they are stored. */
static void hide_key(const struct op *op, db_ledger_row *row)
{
    const size_t length = strlen(op->caller);
    if (!op->own_only)
        return;
    if (strncmp(row->txn_id, op->caller, length) == 0 && row->txn_id[length] == '\t')
        memmove(row->txn_id, row->txn_id + length + 1, strlen(row->txn_id + length + 1) + 1);
    else
        row->txn_id[0] = '\0';
}

static int add(struct page *page, json_t *row, const char *name)
{
    page->whole = json_array_append_new(page->rows, row) == 0;
    if (!page->whole)
        snprintf(page->missing, sizeof page->missing, "%s", name);
    return page->whole ? 0 : -1;
}

static int add_ledger_row(void *arg, const db_ledger_row *row)
{
    struct page *page = arg;
    db_ledger_row shown = *row;
    char id[24];
    hide_key(page->op, &shown);
    snprintf(page->next, sizeof page->next, "%" PRId64 ".%" PRId64 ".%" PRId64, row->epoch,
             row->version_before, row->id);
    snprintf(id, sizeof id, "%" PRId64, row->id);
    return add(page, query_ledger_row(&shown), id);
}

static int add_order(void *arg, const db_order *order)
{
    struct page *page = arg;
    snprintf(page->next, sizeof page->next, "%s", order->id);
    return add(page, answer_order_json(order), order->id);
}

static struct page page_begin(const struct op *op)
{
    struct page page = {.op = op, .rows = json_array(), .whole = true};
    snprintf(page.next, sizeof page.next, "%s", op->after);
    return page;
}

static void page_end(struct page *page, struct op *op, db_status status, bool more)
{
    if (status == DB_ARCHIVED)
        op_archived(op, page->next);
    else if (status != DB_OK)
        op_problem(op, problem_of_store(status), "reading the list: %s", db_status_text(status));
    else if (!page->whole)
        op_problem(op, PROBLEM_OVERLOADED,
                   "row %s cannot be written: text that is not UTF-8, or no memory", page->missing);
    else
        op_answer_json(
            op, json_pack("{s:O, s:s, s:b}", "rows", page->rows, "next", page->next, "more", more));
    json_decref(page->rows);
}

void query_ledger(const struct queries *queries, struct op *op)
{
    struct page page = page_begin(op);
    db_feed_place place;
    bool more = false;
    db_status status = DB_OK;
    if (strcmp(op->after, "end") == 0) {
        status = db_feed_end(queries->reader, &place);
    } else if (read_feed_place(op, &place)) {
        status = db_read_ledger(queries->reader, &place, (size_t)op->limit, add_ledger_row, &page,
                                &place, &more);
    } else {
        json_decref(page.rows);
        return;
    }
    if (status == DB_OK || status == DB_ARCHIVED)
        show_feed_place(&place, page.next);
    page_end(&page, op, status, more);
}

void query_statement(const struct queries *queries, struct op *op)
{
    int64_t numbers[3];
    bool more = false;
    if (!read_cursor(op->after, 3, numbers)) {
        bad_cursor(op);
        return;
    }
    const db_chain_place after = {numbers[0], numbers[1], numbers[2]};
    struct page page = page_begin(op);
    db_chain_place start;
    db_status status = db_read_statement(queries->reader, op->resource, &after, (size_t)op->limit,
                                         add_ledger_row, &page, &more);
    if (status == DB_ARCHIVED &&
        (status = db_read_chain_start(queries->reader, op->resource, &start)) == DB_OK) {
        snprintf(page.next, sizeof page.next, "%" PRId64 ".%" PRId64 ".%" PRId64, start.epoch,
                 start.version_before, start.id);
        status = DB_ARCHIVED;
    }
    page_end(&page, op, status, more);
}

void query_orders(const struct queries *queries, struct op *op)
{
    bool more = false;
    struct page page = page_begin(op);
    const db_status status =
        db_read_orders(queries->reader, op->other, op->after[0] != '\0' ? op->after : NULL,
                       (size_t)op->limit, add_order, &page, &more);
    page_end(&page, op, status, more);
}
