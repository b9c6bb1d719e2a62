/* Changing a balance: the textbook's 1000 - 200 - 300. */
#include "answer.h"
#include "business.h"

#include <inttypes.h>

static bool uses(struct section *section, struct op *op)
{
    return section_uses_account(section, op, op->id);
}

static void decide(struct section *section, struct op *op)
{
    db_account *account = section_account(section, op, op->id); /* read */
    if (!account)
        return;

    int64_t after; /* decide */
    if (__builtin_add_overflow(account->balance, op->amount, &after)) {
        op_problem(op, PROBLEM_OUT_OF_RANGE, "account %s: balance %" PRId64 ", change %" PRId64,
                   op->id, account->balance, op->amount);
        return;
    }
    if (after < 0) {
        op_problem(op, PROBLEM_FUNDS, "account %s: balance %" PRId64 ", change %" PRId64, op->id,
                   account->balance, op->amount);
        return;
    }

    struct change balance; /* write */
    if (!section_change_account(section, op, account, op->amount, "", DB_SHOP_CASH, &balance)) {
        op_problem(op, PROBLEM_FUNDS, "account %s has too little for %" PRId64, op->id, op->amount);
        return;
    }
    char key[2 * OP_KEY_MAX + 1];
    json_escape(key, sizeof key, op_client_key(op));
    op_answer(op, 201,
              "{\"transaction_id\":\"%s\",\"account_id\":\"%s\",\"amount\":%" PRId64
              ",\"balance_before\":%" PRId64 ",\"balance_after\":%" PRId64 ",\"version\":%" PRId64
              ",\"fence\":%" PRId64 ",\"instance\":\"%s\"}",
              key, op->id, op->amount, balance.before, balance.after, balance.version,
              balance.fence, section_instance(section));
}

const struct operation account_operation = {"transaction", DB_KIND_CHANGE, uses, decide};
