#include "section.h"
#include "answer.h"
#include "resource.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {
    [ROW_ITEM] = "item", [ROW_ACCOUNT] = "account", [ROW_ORDER] = "order"};

/* -- which rows ------------------------------------------------------------------------------- */

static struct section_row *find_row(struct section *section, enum row_kind kind, const char *id)
{
    for (size_t i = 0; i < section->n_rows; i++) {
        if (section->rows[i].kind == kind && strcmp(section->rows[i].id, id) == 0)
            return &section->rows[i];
    }
    return NULL;
}

/* Tells op why a row was not read. */
static bool not_read(struct section *section, struct op *op, enum row_kind kind, const char *id,
                     db_status status)
{
    if (status == DB_NOT_FOUND) {
        op_problem(op, PROBLEM_NOT_FOUND, "%s %s does not exist", kind_names[kind], id);
        return false;
    }
    section->status = status;
    op_problem(op, problem_of_store(status), "reading %s %s: %s", kind_names[kind], id,
               db_status_text(status));
    return false;
}

/* Makes room for a row, in the order of the names. The database locks rows in this order, so no two
 * sections wait for each other in a circle. */
static struct section_row *make_room(struct section *section, const char *resource)
{
    size_t i = section->n_rows++;
    for (; i > 0 && strcmp(section->rows[i - 1].resource, resource) > 0; i--)
        section->rows[i] = section->rows[i - 1];
    return &section->rows[i];
}

static struct section_row *add_row(struct section *section, struct op *op, enum row_kind kind,
                                   const char *id, const char *guard_name, int64_t seen_fence)
{
    struct guard *guard = guard_find(section->guards, guard_name);
    if (!guard) {
        op_problem(op, PROBLEM_UNKNOWN_GUARD, "%s %s names guard %s, which is not built in",
                   kind_names[kind], id, guard_name);
        return NULL;
    }
    char resource[DB_RESOURCE_MAX + 1];
    assert(section->n_rows < SECTION_ROWS_MAX && !find_row(section, kind, id));
    resource_name(resource, kind_names[kind], id);
    struct section_row *row = make_room(section, resource);
    row->kind = kind;
    row->guard = guard;
    snprintf(row->named, sizeof row->named, "%s", guard_name);
    row->changed = false;
    row->fence = 0;
    row->seen_fence = seen_fence;
    snprintf(row->id, sizeof row->id, "%s", id);
    memcpy(row->resource, resource, sizeof row->resource);
    memcpy(row->counter, resource, sizeof row->counter);
    row->hold =
        guard->kind == GUARD_LOCK ? lock_set_add(&section->locks, guard, row->resource) : NULL;
    return row;
}

bool section_uses_item(struct section *section, struct op *op, const char *id)
{
    db_item item;
    db_status status = db_read_item(section->reader, id, &item);
    if (status != DB_OK)
        return not_read(section, op, ROW_ITEM, id, status);
    return add_row(section, op, ROW_ITEM, id, item.guard, item.last_fence) != NULL;
}

bool section_uses_account(struct section *section, struct op *op, const char *id)
{
    db_account account;
    db_status status = db_read_account(section->reader, id, &account);
    if (status != DB_OK)
        return not_read(section, op, ROW_ACCOUNT, id, status);
    return add_row(section, op, ROW_ACCOUNT, id, account.guard, account.last_fence) != NULL;
}

bool section_uses_order(struct section *section, struct op *op, const char *id, db_order *ret)
{
    db_item item;
    db_status status = db_read_order(section->reader, id, ret);
    if (status == DB_OK && !op_may_see(op, ret->user_id))
        status = DB_NOT_FOUND;
    if (status != DB_OK)
        return not_read(section, op, ROW_ORDER, id, status);
    status = db_read_item(section->reader, ret->item_id, &item);
    if (status != DB_OK)
        return not_read(section, op, ROW_ITEM, ret->item_id, status);
    struct section_row *row = add_row(section, op, ROW_ORDER, id, item.guard, ret->last_fence);
    if (row) /* orders are many: none has its own counter */
        resource_name(row->counter, kind_names[ROW_ITEM], ret->item_id);
    return row != NULL;
}

/* -- read ------------------------------------------------------------------------------------- */

/* A row that was named and read. NULL: op has its problem, or the section begins again. */
static struct section_row *use_row(struct section *section, struct op *op, enum row_kind kind,
                                   const char *id)
{
    struct section_row *row = find_row(section, kind, id);
    if (!row) { /* the order is now of another item: look it up again */
        section->guard_changed = true;
        section->status = DB_CONFLICT;
        return NULL;
    }
    if (row->status == DB_OK)
        return row;
    not_read(section, op, kind, id, row->status);
    return NULL;
}

db_item *section_item(struct section *section, struct op *op, const char *id)
{
    struct section_row *row = use_row(section, op, ROW_ITEM, id);
    return row ? &row->now.item : NULL;
}

db_account *section_account(struct section *section, struct op *op, const char *id)
{
    struct section_row *row = use_row(section, op, ROW_ACCOUNT, id);
    return row ? &row->now.account : NULL;
}

db_order *section_order(struct section *section, struct op *op, const char *id)
{
    struct section_row *row = use_row(section, op, ROW_ORDER, id);
    return row ? &row->now.order : NULL;
}

/* Reads what each buyer of the batch has bought, in one query, when the first is asked about. */
static db_status read_bought(struct section *section, const db_item *item)
{
    db_status status = DB_OK;
    for (size_t from = 0, n; from < section->n_ops && status == DB_OK; from += n) {
        struct op **ops = &section->ops[from];
        const char *buyers[DB_KEYS_MAX];
        int64_t bought[DB_KEYS_MAX];
        for (n = 0; from + n < section->n_ops && n < DB_KEYS_MAX; n++)
            buyers[n] = ops[n]->other;
        status = db_read_bought(section->reader, item, buyers, n, bought);
        for (size_t i = 0; i < n && status == DB_OK; i++)
            ops[i]->bought = bought[i];
    }
    section->bought_read = status == DB_OK;
    return status;
}

bool section_bought(struct section *section, struct op *op, const db_item *item,
                    int64_t *ret_quantity)
{
    db_status status = DB_OK;
    if (section->tx)
        status = db_tx_read_bought(section->tx, item, op->other, &op->bought);
    else if (!section->bought_read)
        status = read_bought(section, item);
    if (status != DB_OK)
        return not_read(section, op, ROW_ITEM, item->id, status);
    int64_t bought = op->bought;
    for (size_t i = 0; i < section->n_orders; i++) { /* of this batch: not in the store yet */
        if (strcmp(section->orders[i].user_id, op->other) == 0 &&
            __builtin_add_overflow(bought, section->orders[i].quantity, &bought))
            bought = INT64_MAX;
    }
    *ret_quantity = bought;
    return true;
}

/* -- write ------------------------------------------------------------------------------------ */

/* The row of a value that section_item() and the like returned. */
static struct section_row *row_of(struct section *section, const void *value)
{
    for (size_t i = 0; i < section->n_rows; i++) {
        if ((const void *)&section->rows[i].now == value)
            return &section->rows[i];
    }
    assert(false && "a row of another section");
    return NULL;
}

bool section_epoch(struct section *section, struct op *op, const db_order *order,
                   int64_t *ret_epoch)
{
    const struct section_row *row = row_of(section, order);
    db_item item;
    db_status status = section->tx ? db_tx_read_item(section->tx, order->item_id, false, &item)
                                   : db_read_item(section->reader, order->item_id, &item);
    if (status != DB_OK)
        return not_read(section, op, ROW_ITEM, order->item_id, status);
    if (strcmp(item.guard, row->named) != 0) { /* the lock that is held is the former guard's */
        section->guard_changed = true;
        section->status = DB_CONFLICT;
        return false;
    }
    *ret_epoch = item.epoch;
    return true;
}

/* Returns false. DB_REFUSED is the decision of sql-atomic. Any other status ends the section. */
static bool refused(struct section *section, db_status status)
{
    if (status != DB_REFUSED)
        section->status = status;
    return false;
}

const struct section_row *section_row_of(const struct section *section, const struct op *op)
{
    size_t i = 0;
    while (i + 1 < section->n_rows && strcmp(section->rows[i].id, op->id) != 0)
        i++;
    return &section->rows[i];
}

static void note_change(struct section *section, struct op *op, struct section_row *row,
                        int64_t delta, int64_t after, int64_t version, const char *order_id,
                        const char *counterpart, struct change *ret)
{
    assert(section->n_changes < section->batch * SECTION_CHANGES_PER_OP);
    *ret = (struct change){
        .before = after - delta,
        .after = after,
        .version = version,
        .fence = row->fence,
    };
    struct section_change *change = &section->changes[section->n_changes++];
    change->op = op;
    change->row = row;
    change->delta = delta;
    change->change = *ret;
    memccpy(change->order_id, order_id, '\0', sizeof change->order_id);
    memccpy(change->counterpart, counterpart, '\0', sizeof change->counterpart);
    if (row == section_row_of(section, op))
        op->shown_value = after;
}

/* A decision of this service always fits. Another program may have left any value in the store:
 * then nothing is written. */
static bool add(struct section *section, const struct section_row *row, int64_t *value,
                int64_t delta, int64_t *version)
{
    int64_t after, next;
    if (__builtin_add_overflow(*value, delta, &after) || after < 0 ||
        __builtin_add_overflow(*version, 1, &next)) {
        snprintf(section->error.message, sizeof section->error.message,
                 "%s has %" PRId64 " at version %" PRId64 ", to which %" PRId64 " cannot be added",
                 row->resource, *value, *version, delta);
        return refused(section, DB_INVALID);
    }
    *value = after;
    *version = next;
    return true;
}

bool section_change_item(struct section *section, struct op *op, db_item *item, int64_t delta,
                         const char *order_id, struct change *ret)
{
    struct section_row *row = row_of(section, item);
    if (row->guard->kind == GUARD_ATOMIC) {
        db_status status = db_tx_add_item(section->tx, item, delta);
        if (status != DB_OK)
            return refused(section, status);
        row->added_to = true;
    } else {
        if (!add(section, row, &item->stock, delta, &item->version))
            return false;
        row->changed = true;
    }
    note_change(section, op, row, delta, item->stock, item->version, order_id, "", ret);
    return true;
}

bool section_change_account(struct section *section, struct op *op, db_account *account,
                            int64_t delta, const char *order_id, const char *counterpart,
                            struct change *ret)
{
    struct section_row *row = row_of(section, account);
    if (row->guard->kind == GUARD_ATOMIC) {
        db_status status = db_tx_add_account(section->tx, account, delta);
        if (status != DB_OK)
            return refused(section, status);
        row->added_to = true;
    } else {
        if (!add(section, row, &account->balance, delta, &account->version))
            return false;
        row->changed = true;
    }
    note_change(section, op, row, delta, account->balance, account->version, order_id, counterpart,
                ret);
    return true;
}

static bool move_order(struct section *section, db_order *order, db_order_state state)
{
    struct section_row *row = row_of(section, order);
    if (row->guard->kind == GUARD_ATOMIC && !row->former_sale) {
        db_status status = db_tx_move_order(section->tx, order, row->named, order->state, state);
        return status == DB_OK || refused(section, status);
    }
    int64_t none = 0;
    if (!add(section, row, &none, 0, &order->version))
        return false;
    order->state = state;
    row->changed = true;
    return true;
}

bool section_move_order(struct section *section, db_order *order, db_order_state state)
{
    assert(order->state == DB_RESERVED && state != DB_RESERVED);
    return move_order(section, order, state);
}

bool section_refund_order(struct section *section, db_order *order, bool former_sale)
{
    assert(order->state == DB_PAID);
    row_of(section, order)->former_sale = former_sale;
    return move_order(section, order, DB_REFUNDED);
}

bool section_retire_order(struct section *section, db_order *order)
{
    row_of(section, order)->former_sale = true;
    return section_move_order(section, order, DB_CLOSED);
}

bool section_insist(struct section *section, bool done)
{
    if (!done && section->status == DB_OK)
        section->status = DB_CONFLICT;
    return done;
}

void section_insert_order(struct section *section, const db_order *order)
{
    assert(section->n_orders < section->batch);
    section->orders[section->n_orders++] = *order;
}

/* -- for answers ------------------------------------------------------------------------------ */

const char *section_guard_of(const struct section *section, const db_item *item)
{
    const struct guard *guard = guard_find(section->guards, item->guard);
    assert(guard);
    return guard->info->name;
}

const char *section_instance(const struct section *section)
{
    return section->config->instance;
}
