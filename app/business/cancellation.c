/* Giving a reservation back: the buyer cancels it, or the scheduled task closes it when it expires.
 */
#include "answer.h"
#include "business.h"
#include "point.h"

#include <assert.h>
#include <inttypes.h>

static bool uses(struct section *section, struct op *op)
{
    db_order order;
    return section_uses_order(section, op, op->id, &order) &&
           section_uses_item(section, op, order.item_id);
}

static void return_stock(struct section *section, struct op *op, db_order_state state)
{
    db_order *order = section_order(section, op, op->id); /* read */
    db_item *item = order ? section_item(section, op, order->item_id) : NULL;
    if (!item)
        return;

    int64_t after; /* decide */
    if (order->state != DB_RESERVED) {
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is %s", op->id,
                   db_order_state_text(order->state));
        return;
    }
    if (order->item_epoch != item->epoch) {
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is of a sale that was reset", op->id);
        return;
    }
    if (__builtin_add_overflow(item->stock, order->quantity, &after) || after < 0) {
        op_problem(op, PROBLEM_OUT_OF_RANGE,
                   "item %s has %" PRId64 ", order %s gives back %" PRId64, item->id, item->stock,
                   op->id, order->quantity);
        return;
    }

    struct change stock; /* write */
    if (!section_move_order(section, order, state)) {
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is no longer reserved", op->id);
        return;
    }
    if (!section_insist(section,
                        section_change_item(section, op, item, order->quantity, order->id, &stock)))
        return;
    op_answer(op, 201,
              "{\"order_id\":\"%s\",\"item_id\":\"%s\",\"user_id\":\"%s\",\"quantity\":%" PRId64
              ",\"amount\":%" PRId64 ",\"state\":\"%s\",\"stock_before\":%" PRId64
              ",\"stock_after\":%" PRId64 ",\"version\":%" PRId64 ",\"fence\":%" PRId64
              ",\"guard\":\"%s\",\"instance\":\"%s\"}",
              order->id, order->item_id, order->user_id, order->quantity, order->amount,
              db_order_state_text(state), stock.before, stock.after, stock.version, stock.fence,
              section_guard_of(section, item), section_instance(section));
}

/* A reservation ends at its time for its buyer, as in payment.c: the task returns the stock. */
static void cancel(struct section *section, struct op *op)
{
    const db_order *order = section_order(section, op, op->id);
    if (!order)
        return;
    if (order->state == DB_RESERVED && order->expires_us <= wall_us())
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s is expired", op->id);
    else
        return_stock(section, op, DB_CANCELLED);
}

static void close_expired(struct section *section, struct op *op)
{
    db_order *order = section_order(section, op, op->id);
    db_item *item = order ? section_item(section, op, order->item_id) : NULL;
    if (!item)
        return;
    if (order->state == DB_RESERVED && order->expires_us > wall_us())
        op_problem(op, PROBLEM_ORDER_CLOSED, "order %s has time left", op->id);
    else if (order->state == DB_RESERVED && order->item_epoch != item->epoch)
        section_retire_order(section, order); /* of a sale that was reset: no stock */
    else
        return_stock(section, op, DB_CLOSED);
}

const struct operation cancellation_operation = {"cancellation", DB_KIND_CANCELLATION, uses,
                                                 cancel};
const struct operation close_operation = {"close", DB_KIND_EXPIRY, uses, close_expired};
