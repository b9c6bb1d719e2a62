/* Unlock inside of the transaction: the next holder reads before this one's change is visible. */
#include "lab_slips.h"
#include "section.h"

static void at(struct op *op, enum op_point point)
{
    if (point == OP_DECIDED)
        lock_set_release(&op->section->locks);
}

void lab_slip_unlock_early(struct seams *seams)
{
    (void)seams;
    lab_at(at);
}
