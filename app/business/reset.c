#include "reset.h"
#include "admin.h"
#include "answer.h"
#include "away_log.h"
#include "attempt.h"
#include "point.h"

#include <stdio.h>
#include <string.h>

/* The row to write: one of the two. */
struct reset {
    const char *guard, *instance;
    const struct condition *condition;
    int64_t found; /* out: the version of the row that it replaces; 0: there was none */
    bool refused;  /* out: the condition does not hold for that version */
    db_item *item;
    db_account *account;
};

/* The store has the row's lock by then, so the condition is tested on the row as it is at the
 * commit. */
static db_status write_reset(db_tx *tx, void *arg)
{
    struct reset *reset = arg;
    db_status status = reset->item
                           ? db_tx_reset_item(tx, reset->item, reset->guard, reset->instance)
                           : db_tx_reset_account(tx, reset->account, reset->guard, reset->instance);
    if (status != DB_OK)
        return status;
    reset->found = (reset->item ? reset->item->version : reset->account->version) - 1;
    reset->refused = !condition_holds(reset->condition, reset->found);
    return reset->refused ? DB_CONFLICT : DB_OK;
}

/* After an unknown outcome that is decided by now. True: the row has the epoch of this reset, and
 * the values that were asked for. Another PUT may have written the same values; that is as good. */
static bool is_reset(struct section *section, const struct reset *reset)
{
    const db_item *item = reset->item;
    const db_account *account = reset->account;
    union row_value now;
    if (item)
        return db_read_item(section->reader, item->id, &now.item) == DB_OK &&
               now.item.epoch == item->epoch && now.item.fence == item->fence &&
               now.item.initial_stock == item->initial_stock && now.item.price == item->price &&
               now.item.per_user_limit == item->per_user_limit &&
               now.item.reserve_s == item->reserve_s && strcmp(now.item.guard, item->guard) == 0;
    return db_read_account(section->reader, account->id, &now.account) == DB_OK &&
           now.account.epoch == account->epoch && now.account.fence == account->fence &&
           now.account.initial_balance == account->initial_balance &&
           strcmp(now.account.guard, account->guard) == 0;
}

/* If the outcome stays unknown, section_unlock() hands the lock to the keeper. */
static bool commit(struct section *section, struct op *op, struct reset *reset)
{
    db_error error = {.message = ""};
    db_job job = {.work = write_reset, .arg = reset, .error = &error};
    if (lock_set_lost(&section->locks)) {
        op_problem(op, PROBLEM_LOCK_LOST, "the lock of %s was lost; nothing was written", op->id);
        return false;
    }
    db_run_many(section->db, &job, 1);
    section->commit_id = job.commit_id;
    if (job.status == DB_UNKNOWN && section_find_out(section) && is_reset(section, reset))
        job.status = DB_OK;
    if (job.status == DB_OK) {
        op_pass(op, OP_COMMITTED);
        return true;
    }
    if (job.status == DB_CONFLICT && reset->refused) {
        admin_refuse(op, reset->found);
        return false;
    }
    op_problem(op, problem_of_store(job.status), "writing %s: %s: %s", op->id,
               db_status_text(job.status), error.message);
    away_log("store", error.message);
    return false;
}

/* RFC 9110 9.3.4 */
static void tell_new(struct op *op)
{
    if (op->answer.status == 200 && op->condition.kind == CONDITION_ABSENT)
        op->answer.status = 201;
}

static void put_item(struct section *section, struct op *op, struct reset *reset)
{
    db_item item = {
        .stock = op->amount,
        .initial_stock = op->amount,
        .price = op->price,
        .per_user_limit = op->per_user_limit,
        .reserve_s = op->reserve_s,
        .fence = op->fence < 0 ? section->config->fence : op->fence > 0,
    };
    snprintf(item.id, sizeof item.id, "%.*s", DB_ID_MAX, op->id);
    snprintf(item.guard, sizeof item.guard, "%s", reset->guard);
    reset->item = &item;
    if (commit(section, op, reset))
        answer_item(op, &item, 0, reset->guard);
    tell_new(op);
}

static void put_account(struct section *section, struct op *op, struct reset *reset)
{
    db_account account = {
        .balance = op->amount,
        .initial_balance = op->amount,
        .fence = op->fence < 0 ? section->config->fence : op->fence > 0,
    };
    snprintf(account.id, sizeof account.id, "%.*s", DB_ID_MAX, op->id);
    snprintf(account.guard, sizeof account.guard, "%s", reset->guard);
    reset->account = &account;
    if (commit(section, op, reset))
        answer_account(op, &account, reset->guard);
    tell_new(op);
}

void reset_put(struct section *section, struct op *op)
{
    struct reset reset = {.instance = section->config->instance, .condition = &op->condition};
    op_pass(op, OP_WAITING);
    if (attempt_too_late(op))
        return;
    if (!section_reader(section)) {
        op_problem(op, problem_of_store(section->error.status), "store: %s",
                   section->error.message);
        return;
    }
    char former[DB_GUARD_MAX + 1];
    const struct guard *guard = admin_wanted_guard(section, op);
    if (!guard || !admin_acquire(section, op, guard, former))
        return;
    op_pass(op, OP_ACQUIRED);
    reset.guard = guard->info->name;
    if (op->kind == OP_PUT_ITEM)
        put_item(section, op, &reset);
    else
        put_account(section, op, &reset);
    section_unlock(section);
    op_pass(op, OP_RELEASED);
}
