/* The one transaction of a section: the locks are tested, then all or nothing is written. */
#include "point.h"
#include "section.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static db_status write_section(db_tx *tx, void *arg);
static bool has_something_to_write(const struct section *section);
static bool looks_before(const struct section *section);
static void look_at_locks(struct section *section);

void section_commit(struct section *section)
{
    section_commit_many(&section, 1);
}

bool section_reads_inside(const struct section *section)
{
    for (size_t i = 0; i < section->n_rows; i++) {
        if (guard_reads_in_transaction(section->rows[i].guard))
            return true;
    }
    return false;
}

static bool wants_to_write(const struct section *section)
{
    return section->status == DB_OK &&
           (section_reads_inside(section) || has_something_to_write(section));
}

void section_commit_many(struct section *const *sections, size_t n)
{
    db_job jobs[SECTIONS_MAX];
    struct section *of[SECTIONS_MAX]; /* the section of each job */
    size_t n_jobs = 0;
    assert(n >= 1 && n <= SECTIONS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (!wants_to_write(sections[i]))
            continue;
        if (looks_before(sections[i]))
            look_at_locks(sections[i]);
        of[n_jobs] = sections[i];
        jobs[n_jobs++] =
            (db_job){.work = write_section, .arg = sections[i], .error = &sections[i]->error};
    }
    if (n_jobs > 0)
        db_run_many(sections[0]->db, jobs, n_jobs);
    for (size_t job = 0; job < n_jobs; job++) {
        of[job]->status = jobs[job].status;
        of[job]->commit_id = jobs[job].commit_id;
    }
}

/* -- what is written -------------------------------------------------------------------------- */

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

/* Called many times for each order, so without a format. A text that does not fit gets no NUL, and
 * the store refuses it. */
static void copy_text(char *out, size_t size, const char *text)
{
    memccpy(out, text, '\0', size);
}

/* Written first, because a key that has an answer refuses the whole transaction. */
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

/* With a fence, and under sql-version, a row is written only over the version that was read. Every
 * other guard writes over whatever is there. */
static db_put how_to_put(const struct section *section, const struct section_row *row, bool fenced,
                         int64_t version)
{
    const int64_t fence = fenced && section->config->fence ? row->fence : 0;
    const bool over_read = fence > 0 || row->guard->kind == GUARD_VERSION || row->former_sale;
    return (db_put){.fence = fence,
                    .expected_version = over_read ? version : -1,
                    .item_guard = row->named,
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
        if (status == DB_OK && row->added_to)
            status = row->kind == ROW_ITEM ? db_tx_chain_item(tx, &row->now.item)
                                           : db_tx_chain_account(tx, &row->now.account);
        if (status != DB_OK) {
            section->refused = row;
            return status;
        }
    }
    return DB_OK;
}

static void ledger_row(const struct section *section, const struct section_change *change,
                       int64_t at_us, db_ledger_row *ret)
{
    const struct section_row *row = change->row;
    const struct op *op = change->op;
    *ret = (db_ledger_row){
        .kind = section->operation->kind,
        .delta = change->delta,
        .before = change->change.before,
        .after = change->change.after,
        .version_before = change->change.version - 1,
        .fence = change->change.fence,
        .epoch = row->kind == ROW_ITEM ? row->now.item.epoch : row->now.account.epoch,
        .at_us = at_us,
    };
    copy_text(ret->resource, sizeof ret->resource, row->resource);
    if (op->key[0] != '\0')
        copy_text(ret->txn_id, sizeof ret->txn_id, op->key);
    else /* of a task; no client can send a tab */
        snprintf(ret->txn_id, sizeof ret->txn_id, "task\t%s:%s", section->operation->name, op->id);
    copy_text(ret->guard, sizeof ret->guard, row->guard->info->name);
    copy_text(ret->instance, sizeof ret->instance, section->config->instance);
    copy_text(ret->order_id, sizeof ret->order_id, change->order_id);
    copy_text(ret->counterpart, sizeof ret->counterpart, change->counterpart);
    copy_text(ret->reason, sizeof ret->reason, op->reason);
    copy_text(ret->reference, sizeof ret->reference, op->reference);
}

/* As it was read: the store may run an undone transaction again. Under sql-atomic the store has
 * just told it. */
static void restart_chain(struct section_row *row)
{
    if (row->changed && row->kind == ROW_ITEM)
        memcpy(row->now.item.chain, row->read.item.chain, sizeof row->now.item.chain);
    else if (row->changed && row->kind == ROW_ACCOUNT)
        memcpy(row->now.account.chain, row->read.account.chain, sizeof row->now.account.chain);
}

/* Each change's hash, and the chain that each row has after all of them. */
static void seal_changes(struct section *section, int64_t at_us)
{
    db_ledger_row row;
    for (size_t i = 0; i < section->n_rows; i++)
        restart_chain(&section->rows[i]);
    for (size_t i = 0; i < section->n_changes; i++) {
        struct section_change *change = &section->changes[i];
        union row_value *now = &change->row->now;
        ledger_row(section, change, at_us, &row);
        db_ledger_seal(&row, change->row->kind == ROW_ITEM ? now->item.chain : now->account.chain);
        copy_text(change->hash, sizeof change->hash, row.hash);
    }
}

static db_status write_ledger(const struct section *section, db_tx *tx, int64_t at_us)
{
    db_ledger_row row, leg;
    db_status status = DB_OK;
    for (size_t i = 0; i < section->n_changes && status == DB_OK; i++) {
        ledger_row(section, &section->changes[i], at_us, &row);
        copy_text(row.hash, sizeof row.hash, section->changes[i].hash);
        status = db_tx_append_ledger(tx, &row);
        if (status != DB_OK || strncmp(row.counterpart, "shop:", 5) != 0)
            continue;
        db_ledger_shop_leg(&row, &leg);
        status = db_tx_append_ledger(tx, &leg);
    }
    return status;
}

/* The rows first: a resource's ledger rows get their ids under the lock of its row. */
static db_status write_all(struct section *section, db_tx *tx)
{
    int64_t at_us = db_tx_now_us(tx);
    db_status status = write_answers(section, tx, at_us);
    seal_changes(section, at_us);
    if (status == DB_OK)
        status = write_rows(section, tx);
    for (size_t i = 0; i < section->n_orders && status == DB_OK; i++)
        status = db_tx_insert_order(tx, &section->orders[i]);
    return status == DB_OK ? write_ledger(section, tx, at_us) : status;
}

/* In a lesson, see seams.h. A service that sells looks inside the transaction: nearer to the write.
 */
static bool looks_before(const struct section *section)
{
    return section->n_rows > 0 && guard_seams(section->rows[0].guard)->looks_before &&
           !section_reads_inside(section);
}

/* The last look before the write: if a lock is lost by now, nothing is written. */
static void look_at_locks(struct section *section)
{
    section->lost = lock_set_lost(&section->locks);
    if (section->status == DB_OK && !section->lost)
        op_pass_all(section->ops, section->n_ops, OP_CHECKED);
}

/* The store may run an undone transaction again, so nothing that a run found out is left from the
 * one before. Only sections with DB_OK are handed over: see wants_to_write(). */
static db_status write_section(db_tx *tx, void *arg)
{
    struct section *section = arg;
    section->status = DB_OK;
    section->guard_changed = false;
    section->refused = NULL;
    section->tx = tx;
    if (section_reads_inside(section)) {
        section_read(section);
        section_decide(section);
    }
    if (!looks_before(section))
        look_at_locks(section);
    if (section->status == DB_OK)
        section->status = section->lost ? DB_CONFLICT : write_all(section, tx);
    section->tx = NULL;
    return section->status;
}

bool section_find_out(struct section *section)
{
    section->outcome_unknown = !keeper_find_out(section->keeper, &section->commit_id);
    return !section->outcome_unknown;
}

void section_unlock(struct section *section)
{
    if (section->outcome_unknown)
        keeper_take(section->keeper, &section->locks, &section->commit_id);
    else
        lock_set_release(&section->locks);
}
