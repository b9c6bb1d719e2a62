/* GET and DELETE /v1/lab/locks/{resource}: shows a lock, frees a lock. */
#include "lab_private.h"
#include "answer.h"
#include "lock_set.h"
#include "queries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The columns of a row that concern its lock. */
struct record {
    char guard[DB_GUARD_MAX + 1];
    int64_t last_fence;
};

static db_status read_record(const struct queries *queries, const char *resource,
                             struct record *ret)
{
    const char *id = strchr(resource, ':') + 1;
    db_item item;
    db_account account;
    db_status status;
    if (strncmp(resource, "item:", 5) == 0) {
        status = db_read_item(queries->reader, id, &item);
        if (status == DB_OK) {
            strcpy(ret->guard, item.guard);
            ret->last_fence = item.last_fence;
        }
    } else {
        status = db_read_account(queries->reader, id, &account);
        if (status == DB_OK) {
            strcpy(ret->guard, account.guard);
            ret->last_fence = account.last_fence;
        }
    }
    return status;
}

static void not_known(struct op *op, const struct guard *guard, lk_status status)
{
    op_problem(op, PROBLEM_UNAVAILABLE, "guard %s: %s", guard->info->name, lk_status_text(status));
}

/* Answers with the lock server's state of the lock, and the row's last fence. */
static void show_lock(struct op *op, struct guard *guard, lk_client *client, int64_t last_fence)
{
    char key[LK_KEY_MAX + 1], token[2 * LK_TOKEN_MAX + 1], left[24] = "null";
    lk_lock_info info = {.key = ""};
    lk_status status = LK_OK;
    lock_key(key, op->resource);
    if (guard->kind == GUARD_LOCK)
        status = client ? lk_inspect(client, key, &info) : LK_UNAVAILABLE;
    if (status != LK_OK) {
        not_known(op, guard, status);
        return;
    }
    json_escape(token, sizeof token, info.token);
    if (info.holders > 0 && info.left_ms != INT64_MAX)
        snprintf(left, sizeof left, "%" PRId64, info.left_ms);
    op_answer(op, 200,
              "{\"guard\":\"%s\",\"key\":\"%s\",\"holders\":%u,\"waiters\":%u,"
              "\"token\":\"%s\",\"left_ms\":%s,\"fence\":%" PRIu64 ",\"last_fence\":%" PRId64 "}",
              guard->info->name, info.key, (unsigned)info.holders, (unsigned)info.waiters, token,
              left, info.fence, last_fence);
}

static void free_lock(struct op *op, struct guard *guard, lk_client *client)
{
    char key[LK_KEY_MAX + 1];
    lock_key(key, op->resource);
    lk_status status = client                      ? lk_force_release(client, key)
                       : guard->kind == GUARD_LOCK ? LK_UNAVAILABLE
                                                   : LK_LOST;
    if (status == LK_OK)
        lab_trace_add(&(struct lab_passage){.point = "lock.freed",
                                            .key = "",
                                            .request_id = "",
                                            .user = "",
                                            .lock = key,
                                            .resource = ""});
    if (status == LK_OK || status == LK_LOST)
        op_answer(op, 200, "{\"was_held\":%s}", status == LK_OK ? "true" : "false");
    else
        not_known(op, guard, status);
}

void lab_query_lock(const struct queries *queries, struct op *op)
{
    struct record record;
    db_status status = read_record(queries, op->resource, &record);
    struct guard *guard = status == DB_OK ? guard_find(queries->guards, record.guard) : NULL;
    lk_client *client = guard && guard->kind == GUARD_LOCK ? guard_client(guard, NULL) : NULL;
    if (status == DB_NOT_FOUND)
        op_problem(op, PROBLEM_NOT_FOUND, "%s does not exist", op->resource);
    else if (status != DB_OK)
        op_problem(op, problem_of_store(status), "reading %s: %s", op->resource,
                   db_status_text(status));
    else if (!guard)
        op_problem(op, PROBLEM_INTERNAL, "this instance knows no guard %s", record.guard);
    else if (op->kind == OP_GET_LOCK)
        show_lock(op, guard, client, record.last_fence);
    else
        free_lock(op, guard, client);
}
