/* Placing an order: the flash sale's one critical section. */
#include "answer.h"
#include "business.h"
#include "order_id.h"
#include "point.h"

#include <inttypes.h>
#include <stdio.h>

static bool uses(struct section *section, struct op *op)
{
    return section_uses_item(section, op, op->id);
}

static db_order new_order(const struct op *op, const db_item *item, int64_t amount, int64_t now,
                          int64_t expires_us)
{
    db_order order = {
        .quantity = op->amount,
        .amount = amount,
        .state = DB_RESERVED,
        .version = 1,
        .item_epoch = item->epoch,
        .created_us = now,
        .expires_us = expires_us,
        .limited = item->per_user_limit > 0,
    };
    order_id_make(order.id, now);
    snprintf(order.item_id, sizeof order.item_id, "%s", item->id);
    snprintf(order.user_id, sizeof order.user_id, "%s", op->other);
    return order;
}

static void decide(struct section *section, struct op *op)
{
    db_item *item = section_item(section, op, op->id); /* read */
    if (!item)
        return;

    int64_t bought = 0, left, amount, reserved_us, expires_us; /* decide */
    const int64_t now = wall_us();
    if (item->stock < op->amount) {
        op_problem(op, PROBLEM_SOLD_OUT, "item %s has %" PRId64 " left, %" PRId64 " wanted", op->id,
                   item->stock, op->amount);
        return;
    }
    if (item->per_user_limit > 0 && !section_bought(section, op, item, &bought))
        return;
    if (__builtin_sub_overflow(item->per_user_limit, bought, &left))
        left = INT64_MAX; /* a row of another program may hold a negative sum */
    if (item->per_user_limit > 0 && op->amount > left) {
        op_problem(op, PROBLEM_USER_LIMIT,
                   "user %s has %" PRId64 " of item %s, %" PRId64 " allowed", op->other, bought,
                   op->id, item->per_user_limit);
        return;
    }
    if (__builtin_mul_overflow(op->amount, item->price, &amount) ||
        __builtin_mul_overflow(item->reserve_s, 1000000, &reserved_us) ||
        __builtin_add_overflow(now, reserved_us, &expires_us)) {
        op_problem(op, PROBLEM_OUT_OF_RANGE,
                   "%" PRId64 " pieces at %" PRId64 ", reserved for %" PRId64 " s", op->amount,
                   item->price, item->reserve_s);
        return;
    }

    db_order order = new_order(op, item, amount, now, expires_us);
    struct change stock; /* write */
    if (!section_change_item(section, op, item, -op->amount, order.id, &stock)) {
        op_problem(op, PROBLEM_SOLD_OUT, "item %s has fewer than %" PRId64 " left", op->id,
                   op->amount);
        return;
    }
    section_insert_order(section, &order);
    op_answer(op, 201,
              "{\"order_id\":\"%s\",\"item_id\":\"%s\",\"user_id\":\"%s\",\"quantity\":%" PRId64
              ",\"amount\":%" PRId64 ",\"state\":\"reserved\",\"stock_before\":%" PRId64
              ",\"stock_after\":%" PRId64 ",\"version\":%" PRId64 ",\"fence\":%" PRId64
              ",\"guard\":\"%s\",\"instance\":\"%s\",\"expires_us\":%" PRId64 "}",
              order.id, order.item_id, order.user_id, order.quantity, order.amount, stock.before,
              stock.after, stock.version, stock.fence, section_guard_of(section, item),
              section_instance(section), order.expires_us);
}

const struct operation order_operation = {"order", DB_KIND_ORDER, uses, decide};
