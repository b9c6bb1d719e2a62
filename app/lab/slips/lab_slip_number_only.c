/* The store compares the fence with the last one and with the one that was read, but it does not
 * compare the version. A holder that writes twice under one fence changes only the version. */
#include "lab_slips.h"
#include "section.h"

static bool number_holds(const struct section_row *row, int64_t last_fence, int64_t read)
{
    return last_fence == row->fence || (last_fence < row->fence && last_fence == read);
}

/* Replaces the version that was read by the present one. */
static void forget_version(db_tx *tx, struct section_row *row)
{
    union row_value now;
    switch (row->kind) {
    case ROW_ITEM:
        if (db_tx_read_item(tx, row->id, true, &now.item) == DB_OK &&
            number_holds(row, now.item.last_fence, row->read.item.last_fence))
            row->read.item.version = now.item.version;
        return;
    case ROW_ACCOUNT:
        if (db_tx_read_account(tx, row->id, true, &now.account) == DB_OK &&
            number_holds(row, now.account.last_fence, row->read.account.last_fence))
            row->read.account.version = now.account.version;
        return;
    case ROW_ORDER:
        if (db_tx_read_order(tx, row->id, true, &now.order) == DB_OK &&
            number_holds(row, now.order.last_fence, row->read.order.last_fence))
            row->read.order.version = now.order.version;
        return;
    }
}

static void at(struct op *op, enum op_point point)
{
    struct section *section = op->section;
    for (size_t i = 0; point == OP_CHECKED && i < section->n_rows; i++) {
        struct section_row *row = &section->rows[i];
        if (row->changed && row->fence > 0)
            forget_version(section->tx, row);
    }
}

void lab_slip_number_only(struct seams *seams)
{
    seams->looks_before = false; /* it reads inside the transaction */
    lab_at(at);
}
