/* How a section gets its fences, reads its rows and decides. section_write.c commits. */
#include "point.h"
#include "section.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- fences ----------------------------------------------------------------------------------- */

/* Rows with one counter have one fence. */
static db_status fence_from_store(struct section *section, struct section_row *row)
{
    for (const struct section_row *other = section->rows; other < row; other++) {
        if (strcmp(other->counter, row->counter) == 0 && other->fence > row->seen_fence) {
            row->fence = other->fence;
            return DB_OK;
        }
    }
    section->error.message[0] = '\0';
    db_status status =
        db_next_fence(section->db, row->counter, row->seen_fence, &row->fence, &section->error);
    if (status == DB_OK)
        counter_add(&section->counters->fences, 1);
    /* After an unknown outcome the counter may have risen. Nobody uses that number. */
    return status == DB_UNKNOWN ? DB_UNAVAILABLE : status;
}

db_status section_take_fences(struct section *section)
{
    db_status status = DB_OK;
    for (size_t i = 0; i < section->n_rows && status == DB_OK; i++) {
        struct section_row *row = &section->rows[i];
        if (!row->hold)
            continue;
        if (!section->config->fence_database)
            row->fence = (int64_t)row->hold->fence;
        else if (section->config->fence)
            status = fence_from_store(section, row);
    }
    return status;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* A limit per user is a second condition. One UPDATE of the item does not hold it: two orders of
 * one user would both pass. So the item is locked. */
static db_status read_item_inside(db_tx *tx, struct section_row *row, bool for_update)
{
    db_item *item = &row->read.item;
    db_status status = db_tx_read_item(tx, row->id, for_update, item);
    if (status == DB_OK && item->per_user_limit > 0 && !for_update)
        status = db_tx_read_item(tx, row->id, true, item);
    return status;
}

static db_status read_value(struct section *section, struct section_row *row)
{
    db_reader *reader = section->reader;
    db_tx *tx = guard_reads_in_transaction(row->guard) ? section->tx : NULL;
    bool for_update = row->guard->kind == GUARD_ROW || section->n_rows > 1;
    switch (row->kind) {
    case ROW_ITEM:
        return tx ? read_item_inside(tx, row, for_update)
                  : db_read_item(reader, row->id, &row->read.item);
    case ROW_ACCOUNT:
        return tx ? db_tx_read_account(tx, row->id, for_update, &row->read.account)
                  : db_read_account(reader, row->id, &row->read.account);
    case ROW_ORDER:
        break;
    }
    return tx ? db_tx_read_order(tx, row->id, for_update, &row->read.order)
              : db_read_order(reader, row->id, &row->read.order);
}

/* An order has its item's guard: section_epoch() looks at that, and so does the store when it
 * writes the order. */
static bool guard_changed(const struct section_row *row)
{
    if (row->kind == ROW_ORDER)
        return false;
    const char *name = row->kind == ROW_ITEM ? row->read.item.guard : row->read.account.guard;
    return strcmp(name, row->named) != 0;
}

static db_status read_row(struct section *section, struct section_row *row)
{
    db_status status = read_value(section, row);
    row->now = row->read;
    if (status == DB_OK && guard_changed(row)) {
        section->guard_changed = true;
        return DB_CONFLICT;
    }
    return status;
}

/* Reads the rows that are read inside the transaction, or the others: all of them, in the order of
 * their names. If the business read them one by one, two transfers in opposite directions would
 * deadlock. */
static db_status load(struct section *section, bool inside)
{
    db_status status = DB_OK;
    for (size_t i = 0; i < section->n_rows && status == DB_OK; i++) {
        struct section_row *row = &section->rows[i];
        if (guard_reads_in_transaction(row->guard) != inside)
            continue;
        row->status = read_row(section, row);
        if (row->status != DB_NOT_FOUND)
            status = row->status;
    }
    return status;
}

void section_share_snapshot(struct section *section, const struct section *first)
{
    section->guard_changed = section->outcome_unknown = false;
    section->lost = NULL;
    section->refused = NULL;
    section->error.message[0] = '\0';
    section->status = first->status;
}

void section_open_snapshot(struct section *section)
{
    section->status = db_reader_begin(section->reader);
    section->snapshot = section->status == DB_OK;
    section_share_snapshot(section, section);
}

void section_close_snapshot(struct section *section)
{
    if (section->snapshot)
        db_reader_end(section->reader);
    section->snapshot = false;
}

void section_read(struct section *section)
{
    if (section->status == DB_OK)
        section->status = load(section, section->tx != NULL);
}

/* -- deciding --------------------------------------------------------------------------------- */

/* Each run starts from what was read. */
static void restart(struct section *section)
{
    section->n_changes = section->n_orders = 0;
    section->bought_read = false;
    for (size_t i = 0; i < section->n_rows; i++) {
        struct section_row *row = &section->rows[i];
        row->changed = row->added_to = row->former_sale = false;
        row->now = row->read;
    }
}

/* For the trace: what each operation has read. */
static void show_read(struct section *section)
{
    for (size_t i = 0; i < section->n_ops; i++) {
        struct op *op = section->ops[i];
        const struct section_row *row = section_row_of(section, op);
        int64_t value = row->kind == ROW_ITEM      ? row->read.item.stock
                        : row->kind == ROW_ACCOUNT ? row->read.account.balance
                                                   : 0;
        op->shown_value = row->status == DB_OK ? value : 0;
        op->shown_fence = row->fence;
    }
}

void section_decide(struct section *section)
{
    const bool inside = section->tx != NULL;
    if (section->status != DB_OK || section_reads_inside(section) != inside)
        return;
    restart(section);
    show_read(section);
    op_pass_all(section->ops, section->n_ops, OP_READ);
    for (size_t i = 0; i < section->n_ops && section->status == DB_OK; i++) {
        struct op *op = section->ops[i];
        section->operation->decide(section, op);
        if (op->answer.problem == PROBLEM_OVERLOADED) { /* no memory for an answer to store */
            section->status = DB_UNAVAILABLE;
            snprintf(section->error.message, sizeof section->error.message, "out of memory");
        }
    }
    if (section->status == DB_OK)
        op_pass_all(section->ops, section->n_ops, OP_DECIDED);
}

/* -- life ------------------------------------------------------------------------------------- */

int section_init(struct section *section, const struct section_base *base, size_t batch)
{
    *section = (struct section){.config = base->config,
                                .guards = base->guards,
                                .db = base->db,
                                .keeper = base->keeper,
                                .counters = base->counters,
                                .batch = batch};
    section->changes = calloc(batch * SECTION_CHANGES_PER_OP, sizeof *section->changes);
    section->orders = calloc(batch, sizeof *section->orders);
    if (lock_set_init(&section->locks) == 0 && section->changes && section->orders)
        return 0;
    section_free(section);
    return -1;
}

void section_free(struct section *section)
{
    free(section->changes);
    free(section->orders);
    lock_set_free(&section->locks);
    db_reader_close(section->reader);
    section->changes = NULL;
    section->orders = NULL;
    section->reader = NULL;
}

db_reader *section_reader(struct section *section)
{
    if (!section->reader)
        section->status = db_reader_open(section->db, &section->reader, &section->error);
    return section->reader;
}

void section_clear(struct section *section)
{
    section->n_rows = 0;
    section->guard_changed = section->outcome_unknown = false;
    section->lost = NULL;
    section->refused = NULL;
    lock_set_clear(&section->locks);
}
