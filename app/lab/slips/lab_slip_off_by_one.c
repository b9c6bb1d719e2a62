/* "while (stock >= 0)": one buyer too many. */
#include "business.h"
#include "lab_slips.h"

static void decide(struct section *section, struct op *op)
{
    db_item *item = section_item(section, op, op->id);
    if (!item)
        return;
    size_t n_changes = section->n_changes;
    item->stock++; /* stock > 0 of this is stock >= 0 of that */
    order_operation.decide(section, op);
    item->stock--;
    if (section->n_changes == n_changes)
        return;
    struct change *change = &section->changes[n_changes].change;
    change->before--; /* the real stock */
    change->after--;
    op->shown_value--;
}

void lab_slip_off_by_one(struct seams *seams)
{
    static struct operation wrong;
    wrong = order_operation;
    wrong.decide = decide;
    seams->operations[OP_PLACE_ORDER] = &wrong;
}
