/* GET and PUT /v1/accounts/{id}/lock: who holds it, for how long; and in the lab, making it free.
 */
#include "answer.h"
#include "queries.h"
#include "service.h"

#include <inttypes.h>
#include <stdio.h>

static void not_known(struct op *op, const struct guard *guard, lk_status status)
{
    op_problem(op, PROBLEM_UNAVAILABLE, "guard %s: %s", guard->info->name, lk_status_text(status));
}

/* What there is of a fence in the row, beside what its lock server says. */
static void answer_lock(struct op *op, const struct guard *guard, const db_account *account,
                        const lk_lock_info *info)
{
    char token[2 * LK_TOKEN_MAX + 1], left[24] = "null";
    json_escape(token, sizeof token, info->token);
    if (info->holders > 0 && info->left_ms != INT64_MAX)
        snprintf(left, sizeof left, "%" PRId64, info->left_ms);
    op_answer(op, 200,
              "{\"guard\":\"%s\",\"key\":\"%s\",\"holders\":%u,\"waiters\":%u,"
              "\"token\":\"%s\",\"left_ms\":%s,\"fence\":%" PRIu64 ",\"last_fence\":%" PRId64 "}",
              guard->info->name, info->key, (unsigned)info->holders, (unsigned)info->waiters, token,
              left, info->fence, account->last_fence);
}

static void look(struct op *op, struct guard *guard, const db_account *account)
{
    char key[LK_KEY_MAX + 1];
    lk_lock_info info = {.key = ""};
    lk_client *client = guard->kind == GUARD_LOCK ? guard_client(guard, NULL) : NULL;
    lk_status status = LK_OK;
    snprintf(key, sizeof key, "lock:account:%s", account->id);
    if (guard->kind == GUARD_LOCK)
        status = client ? lk_inspect(client, key, &info) : LK_UNAVAILABLE;
    if (status == LK_OK)
        answer_lock(op, guard, account, &info);
    else
        not_known(op, guard, status);
}

static void make_free(struct op *op, struct guard *guard, const db_account *account)
{
    char key[LK_KEY_MAX + 1];
    lk_client *client = guard->kind == GUARD_LOCK ? guard_client(guard, NULL) : NULL;
    snprintf(key, sizeof key, "lock:account:%s", account->id);
    lk_status status = client                      ? lk_force_release(client, key)
                       : guard->kind == GUARD_LOCK ? LK_UNAVAILABLE
                                                   : LK_LOST;
    if (status == LK_OK || status == LK_LOST)
        op_answer(op, 200, "{\"was_held\":%s}", status == LK_OK ? "true" : "false");
    else
        not_known(op, guard, status);
}

void query_lock(const struct queries *queries, struct op *op)
{
    db_account account;
    if (op->kind == OP_FREE_LOCK && !queries->config->lab) {
        op_problem(op, PROBLEM_NOT_FOUND, "locks are made free only in a service with --lab");
        return;
    }
    if (op->kind == OP_FREE_LOCK && op->held) {
        op_problem(op, PROBLEM_BAD_REQUEST, "a lock can only be made free: {\"held\":false}");
        return;
    }
    db_status status = db_read_account(queries->reader, op->id, &account);
    struct guard *guard = status == DB_OK ? guard_find(queries->guards, account.guard) : NULL;
    if (status == DB_NOT_FOUND)
        op_problem(op, PROBLEM_NOT_FOUND, "account %s does not exist", op->id);
    else if (status != DB_OK)
        op_problem(op, PROBLEM_UNAVAILABLE, "reading account %s: %s", op->id,
                   db_status_text(status));
    else if (!guard)
        op_problem(op, PROBLEM_INTERNAL, "this instance knows no guard %s", account.guard);
    else if (op->kind == OP_GET_LOCK)
        look(op, guard, &account);
    else
        make_free(op, guard, &account);
}
