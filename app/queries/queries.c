#include "queries.h"
#include "answer.h"
#include "resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *guard_shown(const struct queries *queries, const char *column)
{
    return column[0] ? column : guard_default(queries->guards)->info->name;
}

/* Answers a read that did not return DB_OK. */
static void not_read(struct op *op, const char *what, db_status status)
{
    if (status == DB_NOT_FOUND)
        op_problem(op, PROBLEM_NOT_FOUND, "%s %s does not exist", what, op->id);
    else
        op_problem(op, problem_of_store(status), "reading %s %s: %s", what, op->id,
                   db_status_text(status));
}

void query_item(const struct queries *queries, struct op **ops, size_t n)
{
    db_item item;
    int64_t sold = 0;
    db_status status = db_reader_begin(queries->reader); /* stock and sold from one snapshot */
    if (status == DB_OK) {
        status = db_read_item(queries->reader, ops[0]->id, &item);
        if (status == DB_OK)
            status = db_read_sold(queries->reader, &item, &sold);
        db_reader_end(queries->reader);
    }
    for (size_t i = 0; i < n; i++) {
        if (status == DB_OK)
            answer_item(ops[i], &item, sold, guard_shown(queries, item.guard));
        else
            not_read(ops[i], "item", status);
    }
}

static void get_account(const struct queries *queries, struct op *op)
{
    db_account account;
    db_status status =
        op_may_see(op, op->id) ? db_read_account(queries->reader, op->id, &account) : DB_NOT_FOUND;
    if (status == DB_OK)
        answer_account(op, &account, guard_shown(queries, account.guard));
    else
        not_read(op, "account", status);
}

static void get_order(const struct queries *queries, struct op *op)
{
    db_order order;
    db_status status = db_read_order(queries->reader, op->id, &order);
    if (status == DB_OK && !op_may_see(op, order.user_id))
        status = DB_NOT_FOUND;
    if (status == DB_OK)
        answer_order(op, &order);
    else
        not_read(op, "order", status);
}

static bool is_shop_side(const char *id)
{
    return strcmp(id, "revenue") == 0 || strcmp(id, "cash") == 0 || strcmp(id, "equity") == 0;
}

/* What does not exist has no empty statement. */
static void get_statement(const struct queries *queries, struct op *op)
{
    union {
        db_item item;
        db_account account;
    } row;
    db_status status = DB_NOT_FOUND;
    const char *kind = op->kind == OP_GET_ITEM_LEDGER      ? "item"
                       : op->kind == OP_GET_ACCOUNT_LEDGER ? "account"
                                                           : "shop";
    if (op->kind == OP_GET_ITEM_LEDGER)
        status = db_read_item(queries->reader, op->id, &row.item);
    else if (op->kind == OP_GET_SHOP_LEDGER)
        status = is_shop_side(op->id) ? DB_OK : DB_NOT_FOUND;
    else if (op_may_see(op, op->id))
        status = db_read_account(queries->reader, op->id, &row.account);
    resource_name(op->resource, kind, op->id);
    if (status == DB_OK)
        query_statement(queries, op);
    else
        not_read(op, kind, status);
}

static void get_transaction(const struct queries *queries, struct op *op)
{
    db_answer stored;
    /* In this order: a request that has ended by now has stored its answer. */
    if (inflight_has(queries->inflight, op->key)) {
        op_problem(op, PROBLEM_IN_FLIGHT, "its request is running; ask again");
        return;
    }
    db_status status = db_read_answer(queries->reader, op->key, &stored);
    if (status == DB_OK && op_is_pruned(op, &stored))
        return;
    if (status == DB_OK) {
        op_answer(op, 200, "%s", stored.body);
    } else if (status == DB_NOT_FOUND) {
        op_problem(op, PROBLEM_NOT_FOUND, "nothing happened under this key");
    } else {
        op_problem(op, problem_of_store(status), "reading the key's answer: %s",
                   db_status_text(status));
    }
}

static void get_ready(const struct queries *queries, struct op *op)
{
    struct guard *guard = guard_default(queries->guards);
    db_status store = db_ping(queries->db);
    lk_error error;
    lk_client *client = guard->kind == GUARD_LOCK ? guard_client(guard, &error) : NULL;
    lk_status locks = client ? lk_ping(client) : LK_OK;
    if (store != DB_OK)
        op_problem(op, problem_of_store(store), "store: %s", db_status_text(store));
    else if (locks != LK_OK)
        op_problem(op, PROBLEM_UNAVAILABLE, "guard %s: %s", guard->info->name,
                   lk_status_text(locks));
    else
        op_answer(op, 200, "{\"status\":\"ready\",\"instance\":\"%s\",\"guard\":\"%s\"}",
                  queries->config->instance, guard->info->name);
}

void query_run(const struct queries *queries, struct op *op)
{
    switch (op->kind) {
    case OP_GET_ITEM:
        query_item(queries, &op, 1);
        return;
    case OP_GET_ACCOUNT:
        get_account(queries, op);
        return;
    case OP_GET_ORDER:
        get_order(queries, op);
        return;
    case OP_GET_TRANSACTION:
        get_transaction(queries, op);
        return;
    case OP_GET_LEDGER:
        query_ledger(queries, op);
        return;
    case OP_GET_ITEM_LEDGER:
    case OP_GET_ACCOUNT_LEDGER:
    case OP_GET_SHOP_LEDGER:
        get_statement(queries, op);
        return;
    case OP_LIST_ORDERS:
        query_orders(queries, op);
        return;
    case OP_AUDIT:
        query_audit(queries, op);
        return;
    case OP_GUARDS:
        query_guards(queries, op);
        return;
    case OP_GET_LOCK:
    case OP_FREE_LOCK:
        queries->seams->query(queries, op);
        return;
    case OP_READY:
        get_ready(queries, op);
        return;
    default:
        break;
    }
    assert(false && "not a query");
}
