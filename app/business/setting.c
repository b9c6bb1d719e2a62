/* The order of steps is that of every change: lock, read, decide, write. Read and decision are
 * inside the transaction, on the row as it is at the commit. */
#include "setting.h"
#include "admin.h"
#include "answer.h"
#include "attempt.h"
#include "away_log.h"
#include "order_id.h"
#include "point.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct patch {
    const struct op *op;
    const char *guard; /* that the request names; NULL: none */
    char former[DB_GUARD_MAX + 1];
    db_setting setting;
    union row_value row; /* out: as it is after the change */
    bool refused;        /* out: the condition does not hold */
    bool guard_changed;  /* out: the lock is not that of the row's guard */
};

/* Returns whether the limit per user falls. No limit is higher than each. */
static bool apply(const struct patch *patch, db_item *item)
{
    const struct op *op = patch->op;
    const int64_t limit = item->per_user_limit;
    if (op->price != OP_UNCHANGED)
        item->price = op->price;
    if (op->per_user_limit != OP_UNCHANGED)
        item->per_user_limit = op->per_user_limit;
    if (op->reserve_s != OP_UNCHANGED)
        item->reserve_s = op->reserve_s;
    if (op->fence >= 0)
        item->fence = op->fence > 0;
    if (patch->guard)
        snprintf(item->guard, sizeof item->guard, "%s", patch->guard);
    return item->per_user_limit > 0 && (limit == 0 || item->per_user_limit < limit);
}

static void apply_to_account(const struct patch *patch, db_account *account)
{
    if (patch->op->fence >= 0)
        account->fence = patch->op->fence > 0;
    if (patch->guard)
        snprintf(account->guard, sizeof account->guard, "%s", patch->guard);
}

/* Whether the row, as it is inside the transaction, is the one to change. */
static bool fits(struct patch *patch, int64_t version, const char *guard)
{
    patch->refused = !condition_holds(&patch->op->condition, version);
    patch->guard_changed = strcmp(guard, patch->former) != 0;
    return !patch->refused && !patch->guard_changed;
}

static db_status write_item(db_tx *tx, void *arg)
{
    struct patch *patch = arg;
    db_item *item = &patch->row.item;
    db_status status = db_tx_hold_item(tx, patch->op->id, item);
    if (status != DB_OK)
        return status;
    if (!fits(patch, item->version, item->guard))
        return DB_CONFLICT;
    patch->setting.limit_falls = apply(patch, item);
    return db_tx_set_item(tx, item, &patch->setting);
}

static db_status write_account(db_tx *tx, void *arg)
{
    struct patch *patch = arg;
    db_account *account = &patch->row.account;
    db_status status = db_tx_read_account(tx, patch->op->id, true, account);
    if (status != DB_OK)
        return status;
    if (!fits(patch, account->version, account->guard))
        return DB_CONFLICT;
    apply_to_account(patch, account);
    return db_tx_set_account(tx, account, &patch->setting);
}

/* After an unknown outcome that is decided by now: the chain of the row is this change's. */
static bool is_written(struct section *section, const struct patch *patch)
{
    union row_value now;
    if (op_is_of_account(patch->op->kind))
        return db_read_account(section->reader, patch->op->id, &now.account) == DB_OK &&
               strcmp(now.account.chain, patch->row.account.chain) == 0;
    return db_read_item(section->reader, patch->op->id, &now.item) == DB_OK &&
           strcmp(now.item.chain, patch->row.item.chain) == 0;
}

static int64_t version_of(const struct patch *patch)
{
    return op_is_of_account(patch->op->kind) ? patch->row.account.version : patch->row.item.version;
}

static void tell(struct op *op, const struct patch *patch, db_status status, const db_error *error)
{
    if (status == DB_NOT_FOUND)
        admin_refuse(op, 0);
    else if (status == DB_CONFLICT && patch->refused)
        admin_refuse(op, version_of(patch));
    else if (status == DB_CONFLICT)
        op_problem(op, PROBLEM_LOCK_TIMEOUT, "the guard of %s has changed; nothing was written",
                   op->id);
    else if (status == DB_REFUSED)
        op_problem(op, PROBLEM_USER_LIMIT,
                   "a user has %" PRId64 " of item %s; a limit of %" PRId64
                   " needs those orders to end first",
                   patch->setting.bought, op->id, patch->row.item.per_user_limit);
    else
        op_problem(op, problem_of_store(status), "writing %s: %s: %s", op->id,
                   db_status_text(status), error->message);
}

/* If the outcome stays unknown, section_unlock() hands the lock to the keeper. */
static void commit(struct section *section, struct op *op, struct patch *patch)
{
    db_error error = {.message = ""};
    db_job job = {.work = op_is_of_account(op->kind) ? write_account : write_item,
                  .arg = patch,
                  .error = &error};
    if (lock_set_lost(&section->locks)) {
        op_problem(op, PROBLEM_LOCK_LOST, "the lock of %s was lost; nothing was written", op->id);
        return;
    }
    db_run_many(section->db, &job, 1);
    section->commit_id = job.commit_id;
    if (job.status == DB_UNKNOWN && section_find_out(section) && is_written(section, patch))
        job.status = DB_OK;
    if (job.status == DB_OK) {
        op_pass(op, OP_COMMITTED);
        return;
    }
    tell(op, patch, job.status, &error);
    if (op->answer.problem == problem_of_store(job.status))
        away_log("store", error.message);
}

/* Pieces that are sold stand in the orders. To count them takes long, so the lock is free by then:
 * the row is told as it was committed, sold includes orders since. */
static void answer(struct section *section, struct op *op, const struct patch *patch)
{
    int64_t sold = 0;
    if (op_is_of_account(op->kind)) {
        answer_account(op, &patch->row.account, patch->setting.guard_name);
        return;
    }
    db_status status = db_read_sold(section->reader, &patch->row.item, &sold);
    if (status == DB_OK)
        answer_item(op, &patch->row.item, sold, patch->setting.guard_name);
    else
        op_problem(op, problem_of_store(status), "item %s is changed; reading what was sold: %s",
                   op->id, db_status_text(status));
}

void setting_patch(struct section *section, struct op *op)
{
    char id[ORDER_ID_LENGTH + 1], txn_id[ORDER_ID_LENGTH + 16];
    struct patch patch = {.op = op};
    op_pass(op, OP_WAITING);
    if (attempt_too_late(op))
        return;
    if (!section_reader(section)) {
        op_problem(op, problem_of_store(section->error.status), "store: %s",
                   section->error.message);
        return;
    }
    const struct guard *guard = op->guard[0] ? admin_wanted_guard(section, op) : NULL;
    if ((op->guard[0] && !guard) || !admin_acquire(section, op, guard, patch.former))
        return;
    op_pass(op, OP_ACQUIRED);
    const struct guard *former = guard_find(section->guards, patch.former);
    patch.guard = guard ? guard->info->name : NULL;
    order_id_make(id, wall_us());
    snprintf(txn_id, sizeof txn_id, "setting\t%s", id);
    patch.setting = (db_setting){.former_guard = patch.former,
                                 .guard_name = guard    ? guard->info->name
                                               : former ? former->info->name
                                                        : patch.former,
                                 .instance = section->config->instance,
                                 .txn_id = txn_id};
    commit(section, op, &patch);
    section_unlock(section);
    op_pass(op, OP_RELEASED);
    if (op->answer.problem == PROBLEM_NONE)
        answer(section, op, &patch);
}
