/* GET /v1/audit: ledger, current values and orders, compared by the store. */
#include "answer.h"
#include "queries.h"
#include "service.h"

#include <jansson.h>

struct audit {
    const char *default_guard;
    json_t *resources;
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
    return json_array_append_new(audit->resources, resource); /* -1 without memory: stops */
}

void query_audit(const struct queries *queries, struct op *op)
{
    struct audit audit = {.default_guard = guard_default(queries->guards)->info->name,
                          .resources = json_array(),
                          .ok = true};
    const char *resource = op->resource[0] ? op->resource : NULL;
    db_status status = db_audit(queries->reader, resource, add_resource, &audit);
    if (status != DB_OK) {
        json_decref(audit.resources);
        op_problem(op, status == DB_NOT_FOUND ? PROBLEM_NOT_FOUND : PROBLEM_UNAVAILABLE,
                   "audit of %s: %s", resource ? resource : "all", db_status_text(status));
        return;
    }
    op_answer_json(op, json_pack("{s:b, s:o}", "ok", audit.ok, "resources", audit.resources));
}
