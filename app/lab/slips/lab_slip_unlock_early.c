/* The lock is released before the commit. The next holder reads before the change is visible. */
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
