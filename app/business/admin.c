#include "admin.h"
#include "answer.h"
#include "resource.h"

#include <inttypes.h>
#include <stdio.h>

struct guard *admin_wanted_guard(struct section *section, struct op *op)
{
    lk_error error;
    struct guard *guard = guard_find(section->guards, op->guard);
    if (!guard)
        op_problem(op, PROBLEM_UNKNOWN_GUARD, "no guard %s; GET /v1/guards lists them", op->guard);
    if (guard && guard->kind == GUARD_LOCK && !guard_client(guard, &error)) {
        op_problem(op, PROBLEM_UNKNOWN_GUARD, "guard %s cannot be used here: %s", op->guard,
                   error.message);
        return NULL;
    }
    return guard;
}

void admin_refuse(struct op *op, int64_t version)
{
    if (version == 0)
        op_problem(op, PROBLEM_CHANGED, "%s does not exist; nothing was written", op->id);
    else
        op_problem(op, PROBLEM_CHANGED,
                   "%s exists, and its version is %" PRId64 "; nothing was written", op->id,
                   version);
    op->answer.version = version;
}

/* Guard and version of the row as it is now; no row: version 0. The guard's lock keeps out requests
 * that run under it. A request that slips through, because another PUT creates or resets the row at
 * this moment, finds a new epoch. */
static db_status look(struct section *section, const struct op *op, char *ret_guard,
                      int64_t *ret_version)
{
    union row_value row;
    const bool is_item = !op_is_of_account(op->kind);
    db_status status = is_item ? db_read_item(section->reader, op->id, &row.item)
                               : db_read_account(section->reader, op->id, &row.account);
    *ret_version = 0;
    if (status == DB_OK) {
        *ret_version = is_item ? row.item.version : row.account.version;
        snprintf(ret_guard, DB_GUARD_MAX + 1, "%s", is_item ? row.item.guard : row.account.guard);
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

bool admin_acquire(struct section *section, struct op *op, const struct guard *wanted,
                   char ret_former[DB_GUARD_MAX + 1])
{
    char resource[DB_RESOURCE_MAX + 1];
    int64_t version;
    ret_former[0] = '\0';
    section_clear(section);
    db_status status = look(section, op, ret_former, &version);
    if (status == DB_OK && !condition_holds(&op->condition, version)) {
        admin_refuse(op, version);
        return false;
    }
    if (status == DB_OK && version == 0)
        return true;
    if (status != DB_OK) {
        op_problem(op, problem_of_store(status), "reading %s: %s", op->id, db_status_text(status));
        return false;
    }
    struct guard *guard = guard_find(section->guards, ret_former);
    if (!guard || guard->kind != GUARD_LOCK)
        return true;
    resource_name(resource, op_is_of_account(op->kind) ? "account" : "item", op->id);
    lock_set_add(&section->locks, guard, resource);
    enum problem problem = lock_set_acquire(&section->locks, op->deadline_us);
    if (problem == PROBLEM_UNAVAILABLE && !op_is_patch(op->kind) && wanted != guard)
        problem = PROBLEM_NONE;
    if (problem != PROBLEM_NONE)
        op_problem(op, problem, "%s; nothing was written", section->locks.message);
    return problem == PROBLEM_NONE;
}
