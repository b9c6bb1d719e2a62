/* GET /v1/audit: ledger, current values and orders, compared by the store. */
#include "db_audit.h"
#include "answer.h"
#include "queries.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit {
    const char *default_guard;
    FILE *out;
    size_t n; /* resources written */
    bool ok;
    db_books books;                       /* of an audit of all */
    char unwritable[DB_RESOURCE_MAX + 1]; /* the resource that could not be written; "": none */
};

/* NULL like json_pack(): no memory, or text that is not UTF-8. */
static json_t *forks_json(const db_audit_row *row)
{
    json_t *forks = json_array();
    for (size_t i = 0; i < row->n_forks; i++)
        if (json_array_append_new(forks, json_pack("[o, o]", query_ledger_row(&row->forks[i][0]),
                                                   query_ledger_row(&row->forks[i][1]))) != 0) {
            json_decref(forks);
            return NULL;
        }
    return forks;
}

static json_t *resource_json(const db_audit_row *row, const char *default_guard)
{
    return json_pack("{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
                     "s:I, s:I, s:I, s:o}",
                     "resource", row->resource, "ok", row->ok, "guard",
                     row->guard[0] ? row->guard : default_guard, "missing", row->missing, "initial",
                     row->initial, "current", row->current, "ledger_sum", row->ledger_sum, "sold",
                     row->sold, "restocked", row->restocked, "oversold", row->oversold,
                     "over_limit", row->over_limit, "former_paid", row->former_paid, "negative",
                     row->negative, "lost_updates", row->lost_updates, "lost_amount",
                     row->lost_amount, "duplicates", row->duplicates, "broken", row->broken,
                     "unchained", row->unchained, "forks", forks_json(row));
}

static int add_resource(void *arg, const db_audit_row *row)
{
    struct audit *audit = arg;
    json_t *resource = resource_json(row, audit->default_guard);
    audit->ok &= row->ok;
    if (audit->n++ > 0)
        fputc(',', audit->out);
    int result = resource ? json_dumpf(resource, audit->out, JSON_COMPACT) : -1;
    json_decref(resource);
    if (result != 0)
        memcpy(audit->unwritable, row->resource, sizeof audit->unwritable);
    return result;
}

/* Also logs it for the operator: it may be damage or a full disk. */
static void fail(struct op *op, db_status status, const char *resource, const char *what,
                 const char *why)
{
    char text[2 * DB_MESSAGE_MAX], escaped[2 * DB_MESSAGE_MAX];
    snprintf(text, sizeof text, "audit of %s: %s: %s", resource, what, why);
    op_problem(op, problem_of_store(status), "%s", text);
    json_escape(escaped, sizeof escaped, text);
    fprintf(stderr, "level=error event=audit-failed message=\"%s\"\n", escaped);
}

/* What an audit's end may come from. */
struct ending {
    const atomic_bool *abandoned, *closing;
};

static bool is_to_end(void *arg)
{
    const struct ending *ending = arg;
    return atomic_load_explicit(ending->abandoned, memory_order_relaxed) ||
           atomic_load_explicit(ending->closing, memory_order_relaxed);
}

static db_status run(const struct queries *queries, const struct op *op, const char *resource,
                     struct audit *audit, db_error *error)
{
    struct ending ending = {&op->abandoned, queries->closing};
    db_reader_stop_when(queries->reader, is_to_end, &ending);
    db_status status = db_reader_begin(queries->reader);
    const bool began = status == DB_OK;
    error->message[0] = '\0';
    if (began)
        status = db_audit(queries->reader, resource, add_resource, audit, error);
    if (status == DB_OK && !resource)
        status = db_audit_books(queries->reader, &audit->books, error);
    if (began)
        db_reader_end(queries->reader);
    db_reader_stop_when(queries->reader, NULL, NULL);
    return status;
}

static void write_books(const db_books *books, FILE *out)
{
    fprintf(out,
            ",\"books\":{\"ok\":%s,\"transactions\":%" PRId64 ",\"unbalanced\":%" PRId64
            ",\"unchained\":%" PRId64 ",\"total\":%" PRId64 ",\"unpaid\":%" PRId64 "}",
            books->ok ? "true" : "false", books->transactions, books->unbalanced, books->unchained,
            books->total, books->unpaid);
}

/* Writes each resource as it is found: a store may have millions. The verdict comes first, so it is
 * written over its placeholder at the end. */
void query_audit(const struct queries *queries, struct op *op)
{
    static const char start[] = "{\"ok\":false,\"resources\":[", verdict[] = " true";
    const size_t verdict_at = strlen("{\"ok\":");
    const char *resource = op->resource[0] ? op->resource : NULL;
    char *text = NULL;
    size_t size;
    struct audit audit = {.default_guard = guard_default(queries->guards)->info->name,
                          .out = open_memstream(&text, &size),
                          .ok = true};
    if (!audit.out) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    db_error error;
    fputs(start, audit.out);
    db_status status = run(queries, op, resource, &audit, &error);
    fputc(']', audit.out);
    if (!resource && status == DB_OK) {
        audit.ok &= audit.books.ok;
        write_books(&audit.books, audit.out);
    }
    fputc('}', audit.out);
    bool whole = !ferror(audit.out);
    whole = fclose(audit.out) == 0 && whole;
    if (status == DB_NOT_FOUND) {
        op_problem(op, PROBLEM_NOT_FOUND, "audit of %s: %s", resource, db_status_text(status));
    } else if (status == DB_INTERRUPTED) {
        if (!atomic_load(&op->abandoned)) /* else it has no answer */
            op_problem(op, PROBLEM_DRAINING, "this instance is shutting down");
    } else if (status != DB_OK) {
        fail(op, status, resource ? resource : "all", db_status_text(status), error.message);
    } else if (audit.unwritable[0]) {
        fail(op, DB_FAILED, audit.unwritable, "it cannot be written",
             "text that is not UTF-8, or no memory");
    } else if (!whole) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
    } else {
        if (audit.ok)
            memcpy(text + verdict_at, verdict, strlen(verdict));
        op_answer_text(op, text);
        text = NULL;
    }
    free(text);
}
