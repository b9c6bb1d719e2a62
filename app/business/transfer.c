/* Moving money between two accounts: both change, or none. */
#include "answer.h"
#include "business.h"

#include "resource.h"

#include <inttypes.h>
#include <string.h>

static bool uses(struct section *section, struct op *op)
{
    if (strcmp(op->id, op->other) == 0) {
        op_problem(op, PROBLEM_BAD_REQUEST, "from and to are the same account");
        return false;
    }
    return section_uses_account(section, op, op->id) &&
           section_uses_account(section, op, op->other);
}

static void decide(struct section *section, struct op *op)
{
    db_account *from = section_account(section, op, op->id); /* read */
    db_account *to = from ? section_account(section, op, op->other) : NULL;
    if (!to)
        return;

    int64_t after; /* decide */
    if (from->balance < op->amount) {
        op_problem(op, PROBLEM_FUNDS, "account %s: balance %" PRId64 ", transfer of %" PRId64,
                   op->id, from->balance, op->amount);
        return;
    }
    if (__builtin_add_overflow(to->balance, op->amount, &after) || after < 0) {
        op_problem(op, PROBLEM_OUT_OF_RANGE,
                   "account %s: balance %" PRId64 ", transfer of %" PRId64, op->other, to->balance,
                   op->amount);
        return;
    }

    char source[DB_RESOURCE_MAX + 1], target[DB_RESOURCE_MAX + 1];
    resource_name(source, "account", op->id);
    resource_name(target, "account", op->other);
    struct change debit, credit; /* write */
    if (!section_change_account(section, op, from, -op->amount, "", target, &debit)) {
        op_problem(op, PROBLEM_FUNDS, "account %s has too little for %" PRId64, op->id, op->amount);
        return;
    }
    if (!section_insist(section,
                        section_change_account(section, op, to, op->amount, "", source, &credit)))
        return;
    char key[2 * OP_KEY_MAX + 1];
    json_escape(key, sizeof key, op_client_key(op));
    op_answer(op, 201,
              "{\"transaction_id\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"amount\":%" PRId64
              ",\"balance_before\":%" PRId64 ",\"balance_after\":%" PRId64 ",\"version\":%" PRId64
              ",\"fence\":%" PRId64 ",\"to_version\":%" PRId64 ",\"instance\":\"%s\"}",
              key, op->id, op->other, op->amount, debit.before, debit.after, debit.version,
              debit.fence, credit.version, section_instance(section));
}

const struct operation transfer_operation = {"transfer", DB_KIND_TRANSFER, uses, decide};
