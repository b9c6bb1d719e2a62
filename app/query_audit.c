/* GET /v1/audit: ledger, current values and orders, compared by the store. */
#include "answer.h"
#include "queries.h"
#include "service.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit {
    const char *default_guard;
    FILE *out;
    size_t n; /* resources written */
    bool ok;
};

static json_t *ledger_json(const db_ledger_row *row)
{
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:I}", "id", row->id,
                     "resource", row->resource, "txn_id", row->txn_id, "delta", row->delta,
                     "before", row->before, "after", row->after, "version_before",
                     row->version_before, "fence", row->fence, "epoch", row->epoch, "guard",
                     row->guard, "instance", row->instance, "at_us", row->at_us);
}

static int add_resource(void *arg, const db_audit_row *row)
{
    struct audit *audit = arg;
    json_t *forks = json_array();
    for (size_t i = 0; i < row->n_forks; i++)
        json_array_append_new(forks, json_pack("[o, o]", ledger_json(&row->forks[i][0]),
                                               ledger_json(&row->forks[i][1])));
    json_t *resource = json_pack(
        "{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "resource",
        row->resource, "ok", row->ok, "guard", row->guard[0] ? row->guard : audit->default_guard,
        "initial", row->initial, "current", row->current, "ledger_sum", row->ledger_sum, "sold",
        row->sold, "oversold", row->oversold, "negative", row->negative, "lost_updates",
        row->lost_updates, "lost_amount", row->lost_amount, "duplicates", row->duplicates, "broken",
        row->broken, "forks", forks);
    audit->ok &= row->ok;
    if (audit->n++ > 0)
        fputc(',', audit->out);
    int result = resource ? json_dumpf(resource, audit->out, JSON_COMPACT) : -1;
    json_decref(resource);
    return result; /* -1 without memory: stops */
}

/* Written as it is found: a store may have millions of resources. The verdict stands first, where
 * room is left for it. */
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
    fputs(start, audit.out);
    db_status status = db_audit(queries->reader, resource, add_resource, &audit);
    fputs("]}", audit.out);
    bool whole = !ferror(audit.out);
    whole = fclose(audit.out) == 0 && whole;
    if (status != DB_OK) {
        op_problem(op, status == DB_NOT_FOUND ? PROBLEM_NOT_FOUND : PROBLEM_UNAVAILABLE,
                   "audit of %s: %s", resource ? resource : "all", db_status_text(status));
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
