/* GET /v1/ledger: the ledger rows, page by page, so that a client can audit them itself. */
#include "answer.h"
#include "queries.h"

#include <jansson.h>
#include <stdio.h>

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
    json_t *rows;
    int64_t last; /* id of the last row in it */
    bool whole;   /* false: a row is missing, see query_ledger_row() */
};

static int add_row(void *arg, const db_ledger_row *row)
{
    struct page *page = arg;
    page->whole = json_array_append_new(page->rows, query_ledger_row(row)) == 0;
    page->last = row->id;
    return page->whole ? 0 : -1;
}

/* next: where the page after this one begins; null: this one ends the ledger. */
void query_ledger(const struct queries *queries, struct op *op)
{
    struct page page = {.rows = json_array(), .last = op->after, .whole = true};
    int64_t last = 0;
    db_status status =
        db_read_ledger(queries->reader, op->after, (size_t)op->limit, add_row, &page, &last);
    if (status != DB_OK) {
        op_problem(op, problem_of_store(status), "reading the ledger: %s", db_status_text(status));
    } else if (!page.whole) {
        op_problem(op, PROBLEM_OVERLOADED,
                   "the ledger row after %lld cannot be written: text that "
                   "is not UTF-8, or no memory",
                   (long long)page.last);
    } else {
        json_t *next = page.last < last ? json_integer(page.last) : json_null();
        op_answer_json(op, json_pack("{s:O, s:o, s:I}", "rows", page.rows, "next", next, "last",
                                     (json_int_t)last));
    }
    json_decref(page.rows);
}
