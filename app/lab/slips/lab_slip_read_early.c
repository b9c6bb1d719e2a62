/* The balance is read before the lock is acquired, as by a transaction whose snapshot is older than
 * its lock. The write of the previous holder is not in it. */
#include "business.h"
#include "lab_slips.h"

static _Thread_local db_account early;

static bool uses(struct section *section, struct op *op)
{
    return account_operation.uses(section, op) &&
           db_read_account(section->reader, op->id, &early) == DB_OK;
}

static void decide(struct section *section, struct op *op)
{
    db_account *account = section_account(section, op, op->id);
    if (account)
        *account = early;
    account_operation.decide(section, op);
}

void lab_slip_read_early(struct seams *seams)
{
    static const struct operation wrong = {"transaction", DB_KIND_CHANGE, uses, decide};
    seams->operations[OP_CHANGE_BALANCE] = &wrong;
}
