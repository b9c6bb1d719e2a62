/* Changing an item's stock while it is sold: pieces that came, went, or were counted. */
#include "stock_change.h"
#include "answer.h"
#include "business.h"

#include <inttypes.h>
#include <string.h>

const struct stock_reason stock_reasons[] = {
    {"delivery", true, false},          /* from a supplier */
    {"customer-return", true, false},   /* sold outside of this service, or long ago */
    {"supplier-return", false, true},   /* sent back */
    {"damage", false, true},            /* no longer for sale */
    {"loss", false, true},              /* stolen or missing */
    {"own-use", false, true},           /* samples, gifts, display */
    {"count-correction", true, true},   /* the count differs from the books */
    {"warehouse-transfer", true, true}, /* from or to another place */
};
const size_t n_stock_reasons = sizeof stock_reasons / sizeof stock_reasons[0];

static const struct stock_reason *find_reason(const char *name)
{
    for (size_t i = 0; i < n_stock_reasons; i++)
        if (strcmp(stock_reasons[i].name, name) == 0)
            return &stock_reasons[i];
    return NULL;
}

static bool uses(struct section *section, struct op *op)
{
    const struct stock_reason *reason = find_reason(op->reason);
    if (!reason)
        op_problem(op, PROBLEM_BAD_REQUEST, "reason \"%s\" is not one of those in /openapi.json",
                   op->reason);
    else if (op->amount == 0)
        op_problem(op, PROBLEM_BAD_REQUEST, "delta must not be 0");
    else if (op->amount > 0 ? !reason->comes : !reason->goes)
        op_problem(op, PROBLEM_BAD_REQUEST, "delta must be %s for reason %s",
                   reason->comes ? "positive" : "negative", reason->name);
    else
        return section_uses_item(section, op, op->id);
    return false;
}

static void decide(struct section *section, struct op *op)
{
    db_item *item = section_item(section, op, op->id); /* read */
    if (!item)
        return;

    int64_t after; /* decide */
    if (__builtin_add_overflow(item->stock, op->amount, &after)) {
        op_problem(op, PROBLEM_OUT_OF_RANGE, "item %s: stock %" PRId64 ", change %" PRId64, op->id,
                   item->stock, op->amount);
        return;
    }
    if (after < 0) {
        op_problem(op, PROBLEM_STOCK, "item %s: stock %" PRId64 ", change %" PRId64, op->id,
                   item->stock, op->amount);
        return;
    }

    struct change stock; /* write */
    if (!section_change_item(section, op, item, op->amount, "", &stock)) {
        op_problem(op, PROBLEM_STOCK, "item %s has too few pieces for %" PRId64, op->id,
                   op->amount);
        return;
    }
    char key[2 * OP_KEY_MAX + 1];
    json_escape(key, sizeof key, op_client_key(op));
    op_answer(op, 201,
              "{\"transaction_id\":\"%s\",\"item_id\":\"%s\",\"delta\":%" PRId64
              ",\"reason\":\"%s\",\"stock_before\":%" PRId64 ",\"stock_after\":%" PRId64
              ",\"version\":%" PRId64 ",\"fence\":%" PRId64
              ",\"guard\":\"%s\",\"instance\":\"%s\"}",
              key, op->id, op->amount, op->reason, stock.before, stock.after, stock.version,
              stock.fence, section_guard_of(section, item), section_instance(section));
}

const struct operation stock_change_operation = {"stock-change", DB_KIND_RESTOCK, uses, decide};
