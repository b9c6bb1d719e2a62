/* The machinery of a section: load, decide, commit. */
#include "point.h"
#include "section.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static db_status load(struct section *section, bool inside);
static void decide(struct section *section);
static bool has_something_to_write(const struct section *section);
static db_status write_section(db_tx *tx, void *arg);

/* Some row is read inside the transaction, and so the decision is made there. */
static bool decides_inside(const struct section *section)
{
    for (size_t i = 0; i < section->n_rows; i++) {
        if (guard_reads_in_transaction(section->rows[i].guard))
            return true;
    }
    return false;
}

/* Before the transaction; snapshot: whether there is one to read from. */
static db_status prepare(struct section *section, db_status snapshot)
{
    section->guard_changed = section->undecided = false;
    section->lost = NULL;
    section->refused = NULL;
    section->error.message[0] = '\0';
    section->status = snapshot == DB_OK ? load(section, false) : snapshot;
    if (section->status == DB_OK && !decides_inside(section))
        decide(section);
    return section->status;
}

static bool wants_to_write(const struct section *section)
{
    return section->status == DB_OK && (decides_inside(section) || has_something_to_write(section));
}

void section_run_many(struct section *const *sections, size_t n, db_status *ret_statuses)
{
    db_job jobs[SECTIONS_MAX];
    size_t of[SECTIONS_MAX], n_jobs = 0; /* whose job it is */
    assert(n >= 1 && n <= SECTIONS_MAX);
    db_reader *reader = sections[0]->reader;
    db_status snapshot = db_reader_begin(reader);
    for (size_t i = 0; i < n; i++)
        ret_statuses[i] = prepare(sections[i], snapshot);
    if (snapshot == DB_OK)
        db_reader_end(reader);

    for (size_t i = 0; i < n; i++) {
        if (!wants_to_write(sections[i]))
            continue;
        of[n_jobs] = i;
        jobs[n_jobs++] =
            (db_job){.work = write_section, .arg = sections[i], .error = &sections[i]->error};
    }
    if (n_jobs > 0)
        db_run_many(sections[0]->db, jobs, n_jobs);
    for (size_t job = 0; job < n_jobs; job++) {
        ret_statuses[of[job]] = jobs[job].status;
        sections[of[job]]->doubt = jobs[job].doubt;
    }
}

db_status section_run(struct section *section)
{
    db_status status;
    section_run_many(&section, 1, &status);
    return status;
}

/* -- reading ---------------------------------------------------------------------------------- */

/* A limit per user is a second condition, which one UPDATE of the item does not hold: two orders of
 * one user would both pass. */
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

/* An order's guard is its item's, and whoever changes that also ends the item's epoch: the store
 * then refuses the order's row. */
static bool guard_changed(const struct section *section, const struct section_row *row)
{
    if (row->kind == ROW_ORDER)
        return false;
    const char *name = row->kind == ROW_ITEM ? row->read.item.guard : row->read.account.guard;
    return guard_find(section->guards, name) != row->guard;
}

static db_status read_row(struct section *section, struct section_row *row)
{
    db_status status = read_value(section, row);
    row->now = row->read;
    if (status == DB_OK && guard_changed(section, row)) {
        section->guard_changed = true;
        return DB_CONFLICT;
    }
    return status;
}

/* The rows that are read in the transaction, or the others. All at once, in their order: read one
 * by one as the business comes to them, two transfers that go opposite ways would lock each other
 * out.
 */
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

/* -- deciding --------------------------------------------------------------------------------- */

/* The store may run an undone transaction again: each run starts from what was read. */
static void restart(struct section *section)
{
    section->n_changes = section->n_orders = 0;
    section->bought_read = false;
    section->status = DB_OK;
    section->guard_changed = false;
    for (size_t i = 0; i < section->n_rows; i++) {
        struct section_row *row = &section->rows[i];
        row->changed = row->former_sale = false;
        row->now = row->read;
    }
}

/* For who watches the points. */
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

static void decide(struct section *section)
{
    restart(section);
    if (section->tx)
        section->status = load(section, true);
    if (section->status != DB_OK)
        return;
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

static bool is_stored(const struct op *op)
{
    return op->answer.decided && op->key[0] != '\0';
}

static bool has_something_to_write(const struct section *section)
{
    bool something = section->n_changes > 0 || section->n_orders > 0;
    for (size_t i = 0; i < section->n_rows && !something; i++)
        something = section->rows[i].changed;
    for (size_t i = 0; i < section->n_ops && !something; i++)
        something = is_stored(section->ops[i]);
    return something;
}

/* -- writing ---------------------------------------------------------------------------------- */

/* Many times an order, so without a format. What does not fit stays without an end, which the store
 * refuses. */
static void copy_text(char *out, size_t size, const char *text)
{
    memccpy(out, text, '\0', size);
}

/* First, since it can refuse everything. */
static db_status write_answers(struct section *section, db_tx *tx, int64_t at_us)
{
    db_answer row = {.at_us = at_us};
    for (size_t i = 0; i < section->n_ops; i++) {
        const struct op *op = section->ops[i];
        if (!is_stored(op))
            continue;
        row.http_status = op->answer.status;
        copy_text(row.key, sizeof row.key, op->key);
        copy_text(row.request, sizeof row.request, op->request);
        copy_text(row.body, sizeof row.body, op->answer.body);
        db_status status = db_tx_insert_answer(tx, &row);
        if (status == DB_DUPLICATE)
            section->duplicate = i;
        if (status != DB_OK)
            return status;
    }
    return DB_OK;
}

/* A fence and sql-version write only over what was read; every other guard writes over whatever
 * stands there. */
static db_put how_to_put(const struct section *section, const struct section_row *row, bool fenced,
                         int64_t version)
{
    const int64_t fence = fenced && section->config->fence ? row->fence : 0;
    const bool over_read = fence > 0 || row->guard->kind == GUARD_VERSION || row->former_sale;
    return (db_put){.fence = fence,
                    .expected_version = over_read ? version : -1,
                    .former_sale = row->former_sale};
}

static db_status write_row(const struct section *section, db_tx *tx, const struct section_row *row)
{
    const union row_value *read = &row->read;
    db_put put;
    switch (row->kind) {
    case ROW_ITEM:
        put = how_to_put(section, row, read->item.fence, read->item.version);
        return db_tx_put_item(tx, &row->now.item, &put);
    case ROW_ACCOUNT:
        put = how_to_put(section, row, read->account.fence, read->account.version);
        return db_tx_put_account(tx, &row->now.account, &put);
    case ROW_ORDER:
        break;
    }
    put = how_to_put(section, row, true, read->order.version); /* no setting of its own */
    return db_tx_put_order(tx, &row->now.order, &put);
}

static db_status write_rows(struct section *section, db_tx *tx)
{
    for (size_t i = 0; i < section->n_rows; i++) {
        const struct section_row *row = &section->rows[i];
        db_status status = row->changed ? write_row(section, tx, row) : DB_OK;
        if (status != DB_OK) {
            section->refused = row;
            return status;
        }
    }
    return DB_OK;
}

static db_status write_ledger(const struct section *section, db_tx *tx, int64_t at_us)
{
    for (size_t i = 0; i < section->n_changes; i++) {
        const struct section_change *change = &section->changes[i];
        const struct section_row *row = change->row;
        db_ledger_row ledger = {
            .delta = change->delta,
            .before = change->change.before,
            .after = change->change.after,
            .version_before = change->change.version - 1,
            .fence = change->change.fence,
            .epoch = row->kind == ROW_ITEM ? row->now.item.epoch : row->now.account.epoch,
            .at_us = at_us,
        };
        copy_text(ledger.resource, sizeof ledger.resource, row->resource);
        if (change->op->key[0] != '\0')
            copy_text(ledger.txn_id, sizeof ledger.txn_id, change->op->key);
        else /* a task's; with the tab it is none that a client can send */
            snprintf(ledger.txn_id, sizeof ledger.txn_id, "task\t%s:%s", section->operation->name,
                     change->op->id);
        copy_text(ledger.guard, sizeof ledger.guard, row->guard->info->name);
        copy_text(ledger.instance, sizeof ledger.instance, section->config->instance);
        db_status status = db_tx_append_ledger(tx, &ledger);
        if (status != DB_OK)
            return status;
    }
    return DB_OK;
}

static db_status write_all(struct section *section, db_tx *tx)
{
    int64_t at_us = wall_us();
    db_status status = write_answers(section, tx, at_us);
    if (status == DB_OK)
        status = write_rows(section, tx);
    for (size_t i = 0; i < section->n_orders && status == DB_OK; i++)
        status = db_tx_insert_order(tx, &section->orders[i]);
    return status == DB_OK ? write_ledger(section, tx, at_us) : status;
}

static db_status write_section(db_tx *tx, void *arg)
{
    struct section *section = arg;
    section->tx = tx;
    if (decides_inside(section))
        decide(section);
    /* As late as this side can know: a lock lost by now means that nothing is written. */
    section->lost = lock_set_lost(&section->locks);
    if (section->status == DB_OK && !section->lost)
        op_pass_all(section->ops, section->n_ops, OP_CHECKED);
    if (section->status == DB_OK)
        section->status = section->lost ? DB_CONFLICT : write_all(section, tx);
    section->tx = NULL;
    return section->status;
}

/* -- life ------------------------------------------------------------------------------------- */

int section_init(struct section *section, const struct config *config, struct guards *guards,
                 db *store, struct keeper *keeper, size_t batch)
{
    *section = (struct section){
        .config = config, .guards = guards, .db = store, .keeper = keeper, .batch = batch};
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

bool section_finds_out(struct section *section)
{
    section->undecided = !keeper_finds_out(section->keeper, &section->doubt);
    return !section->undecided;
}

void section_give_back(struct section *section)
{
    if (section->undecided)
        keeper_take(section->keeper, &section->locks, &section->doubt);
    else
        lock_set_release(&section->locks);
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
    section->undecided = false;
    lock_set_clear(&section->locks);
}
