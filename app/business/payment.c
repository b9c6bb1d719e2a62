/* Paying an order: the account of its buyer is debited, and the reservation becomes final. */
#include "answer.h"
#include "business.h"
#include "point.h"

#include <inttypes.h>

static bool uses(struct section *section, struct op *op)
{
    db_order order;
    return section_uses_order(section, op, op->id, &order) &&
           section_uses_account(section, op, order.user_id);
}

/* A reservation ends at its time, even if the task has not closed it yet: its stock may go to
 * another buyer at any moment. */
static bool is_open(struct section *section, struct op *op, const db_order *order)
{
    int64_t epoch;
    if (!section_epoch(section, op, order, &epoch))
        return false;
    const char *why = order->state != DB_RESERVED      ? db_order_state_text(order->state)
                      : order->item_epoch != epoch     ? "of a sale that was reset"
                      : order->expires_us <= wall_us() ? "expired"
                                                       : NULL;
    if (why)
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is %s", op->id, why);
    return !why;
}

static void decide(struct section *section, struct op *op)
{
    db_order *order = section_order(section, op, op->id); /* read */
    if (!order)
        return;
    db_account *account = section_account(section, op, order->user_id);
    if (!account)
        return;

    if (!is_open(section, op, order)) /* decide */
        return;
    if (order->amount < 0) {
        op_problem(op, PROBLEM_OUT_OF_RANGE, "order %s costs %" PRId64, op->id, order->amount);
        return;
    }
    if (account->balance < order->amount) {
        op_problem(op, PROBLEM_FUNDS, "account %s: balance %" PRId64 ", order %s costs %" PRId64,
                   order->user_id, account->balance, op->id, order->amount);
        return;
    }

    struct change balance; /* write */
    if (!section_change_account(section, op, account, -order->amount, order->id, DB_SHOP_REVENUE,
                                &balance)) {
        op_problem(op, PROBLEM_FUNDS,
                   "account %s has too little for order %s, which costs %" PRId64, order->user_id,
                   op->id, order->amount);
        return;
    }
    if (!section_insist(section, section_move_order(section, order, DB_PAID)))
        return;
    op_answer(op, 201,
              "{\"order_id\":\"%s\",\"item_id\":\"%s\",\"user_id\":\"%s\",\"quantity\":%" PRId64
              ",\"amount\":%" PRId64 ",\"state\":\"paid\",\"balance_before\":%" PRId64
              ",\"balance_after\":%" PRId64 ",\"version\":%" PRId64 ",\"fence\":%" PRId64
              ",\"instance\":\"%s\"}",
              order->id, order->item_id, order->user_id, order->quantity, order->amount,
              balance.before, balance.after, balance.version, balance.fence,
              section_instance(section));
}

const struct operation payment_operation = {"payment", DB_KIND_PAYMENT, uses, decide};
