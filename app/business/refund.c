/* Refunding a paid order: its buyer gets the money back. While the sale lasts, its pieces go back
 * to the stock; after a reset of the item they do not, as the new stock was counted without them.
 */
#include "answer.h"
#include "business.h"

#include <inttypes.h>

static bool uses(struct section *section, struct op *op)
{
    db_order order;
    return section_uses_order(section, op, op->id, &order) &&
           section_uses_account(section, op, order.user_id) &&
           section_uses_item(section, op, order.item_id);
}

static bool fits(struct op *op, int64_t value, int64_t delta, const char *what)
{
    int64_t after;
    if (delta >= 0 && !__builtin_add_overflow(value, delta, &after) && after >= 0)
        return true;
    op_problem(op, PROBLEM_OUT_OF_RANGE, "%s: %" PRId64 ", order %s gives back %" PRId64, what,
               value, op->id, delta);
    return false;
}

static void decide(struct section *section, struct op *op)
{
    db_order *order = section_order(section, op, op->id); /* read */
    db_account *account = order ? section_account(section, op, order->user_id) : NULL;
    db_item *item = account ? section_item(section, op, order->item_id) : NULL;
    if (!item)
        return;

    const bool lasts = order->item_epoch == item->epoch; /* decide */
    if (order->state != DB_PAID) {
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is %s, not paid", op->id,
                   db_order_state_text(order->state));
        return;
    }
    if (!fits(op, account->balance, order->amount, "balance") ||
        (lasts && !fits(op, item->stock, order->quantity, "stock")))
        return;

    struct change balance, stock; /* write */
    if (!section_insist(section, section_refund_order(section, order, !lasts)) ||
        !section_insist(section, section_change_account(section, op, account, order->amount,
                                                        order->id, DB_SHOP_REVENUE, &balance)))
        return;
    if (lasts && !section_insist(section, section_change_item(section, op, item, order->quantity,
                                                              order->id, &stock)))
        return;
    op_answer(op, 201,
              "{\"order_id\":\"%s\",\"item_id\":\"%s\",\"user_id\":\"%s\",\"quantity\":%" PRId64
              ",\"amount\":%" PRId64 ",\"state\":\"refunded\",\"balance_before\":%" PRId64
              ",\"balance_after\":%" PRId64 ",\"version\":%" PRId64 ",\"fence\":%" PRId64
              ",\"restocked\":%s,\"instance\":\"%s\"}",
              order->id, order->item_id, order->user_id, order->quantity, order->amount,
              balance.before, balance.after, balance.version, balance.fence,
              lasts ? "true" : "false", section_instance(section));
}

const struct operation refund_operation = {"refund", DB_KIND_REFUND, uses, decide};
