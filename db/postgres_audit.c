/* Feeds the audit page by page: each statement is bounded, whatever the ledger's length. */
#include "audit.h"
#include "postgres.h"

#include <stdio.h>
#include <string.h>

enum { LEDGER_PAGE = 1000, RESOURCE_PAGE = 100 };

static db_status row_ledger(struct session *session, const PGresult *result, int at,
                            db_ledger_row *ret)
{
    db_status status;
    if ((status = cell_text(session, result, at, 1, ret->resource, sizeof ret->resource)) ||
        (status = cell_text(session, result, at, 2, ret->txn_id, sizeof ret->txn_id)) ||
        (status = cell_text(session, result, at, 9, ret->guard, sizeof ret->guard)) ||
        (status = cell_text(session, result, at, 10, ret->instance, sizeof ret->instance)))
        return status;
    ret->id = cell_int(result, at, 0);
    ret->delta = cell_int(result, at, 3);
    ret->before = cell_int(result, at, 4);
    ret->after = cell_int(result, at, 5);
    ret->version_before = cell_int(result, at, 6);
    ret->fence = cell_int(result, at, 7);
    ret->epoch = cell_int(result, at, 8);
    ret->at_us = cell_int(result, at, 11);
    return DB_OK;
}

/* Feeds all rows of the epoch; *ret_first_id is the reset's row. */
static db_status feed_ledger(struct session *session, const struct audit_head *head,
                             struct audit *audit, int64_t *ret_first_id)
{
    db_ledger_row row = {.version_before = INT64_MIN, .id = INT64_MIN};
    db_status status;
    *ret_first_id = 0;
    do {
        const struct arg args[] = {ARG_TEXT(head->resource), ARG_INT(head->epoch),
                                   ARG_INT(row.version_before), ARG_INT(row.id),
                                   ARG_INT(LEDGER_PAGE)};
        PGresult *page = NULL;
        status = session_ask(session, SQL_LEDGER_AFTER, args, ARG_COUNT(args), &page);
        int n = PQntuples(page);
        for (int i = 0; i < n && status == DB_OK; i++) {
            status = row_ledger(session, page, i, &row);
            if (status != DB_OK)
                break;
            if (*ret_first_id == 0)
                *ret_first_id = row.id;
            audit_add(audit, &row);
        }
        PQclear(page);
    } while (status == DB_OK);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* The reset's row does not count: a client may name its transaction like it. */
static db_status count_duplicates(struct session *session, const struct audit_head *head,
                                  int64_t reset_id, int64_t *ret)
{
    const struct arg args[] = {ARG_TEXT(head->resource), ARG_INT(head->epoch), ARG_INT(reset_id)};
    PGresult *result = NULL;
    db_status status = session_ask(session, SQL_COUNT_DUPLICATES, args, ARG_COUNT(args), &result);
    if (status == DB_OK)
        *ret = cell_int(result, 0, 0);
    PQclear(result);
    return status;
}

struct visit {
    int (*each)(void *arg, const db_audit_row *row);
    void *arg;
    bool stopped;
};

static db_status judge(struct session *session, const struct audit_head *head, struct visit *visit)
{
    struct audit audit;
    int64_t reset_id, duplicates;
    audit_start(&audit, head);
    db_status status = feed_ledger(session, head, &audit, &reset_id);
    if (status == DB_OK)
        status = count_duplicates(session, head, reset_id, &duplicates);
    if (status == DB_OK) {
        audit_finish(&audit, duplicates);
        visit->stopped = visit->each(visit->arg, &audit.row) != 0;
    }
    return status;
}

static db_status judge_item(struct session *session, const db_item *item, struct visit *visit)
{
    struct audit_head head = {.is_item = true,
                              .initial = item->initial_stock,
                              .current = item->stock,
                              .version = item->version,
                              .epoch = item->epoch};
    snprintf(head.resource, sizeof head.resource, "item:%s", item->id);
    memcpy(head.guard, item->guard, sizeof head.guard);
    db_status status = session_read_sold(session, item, &head.sold);
    return status == DB_OK ? judge(session, &head, visit) : status;
}

static db_status judge_account(struct session *session, const db_account *account,
                               struct visit *visit)
{
    struct audit_head head = {.initial = account->initial_balance,
                              .current = account->balance,
                              .version = account->version,
                              .epoch = account->epoch};
    snprintf(head.resource, sizeof head.resource, "account:%s", account->id);
    memcpy(head.guard, account->guard, sizeof head.guard);
    return judge(session, &head, visit);
}

static db_status judge_named(struct session *session, const char *resource, struct visit *visit)
{
    db_status status = DB_NOT_FOUND;
    if (strncmp(resource, "item:", 5) == 0) {
        db_item item;
        status = session_read_item(session, resource + 5, false, &item);
        if (status == DB_OK)
            status = judge_item(session, &item, visit);
    } else if (strncmp(resource, "account:", 8) == 0) {
        db_account account;
        status = session_read_account(session, resource + 8, false, &account);
        if (status == DB_OK)
            status = judge_account(session, &account, visit);
    }
    return status;
}

/* The next resources after the one called id: DB_NOT_FOUND when there are none. */
static db_status ask_page(struct session *session, enum postgres_sql sql, const char *id,
                          PGresult **ret)
{
    const struct arg args[] = {ARG_TEXT(id), ARG_INT(RESOURCE_PAGE)};
    return session_ask(session, sql, args, ARG_COUNT(args), ret);
}

static db_status judge_accounts(struct session *session, struct visit *visit)
{
    db_account account = {.id = ""};
    db_status status = DB_OK;
    while (status == DB_OK && !visit->stopped) {
        PGresult *page = NULL;
        status = ask_page(session, SQL_ACCOUNTS_AFTER, account.id, &page);
        for (int i = 0; status == DB_OK && i < PQntuples(page) && !visit->stopped; i++)
            if ((status = row_account(session, page, i, &account)) == DB_OK)
                status = judge_account(session, &account, visit);
        PQclear(page);
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

static db_status judge_items(struct session *session, struct visit *visit)
{
    db_item item = {.id = ""};
    db_status status = DB_OK;
    while (status == DB_OK && !visit->stopped) {
        PGresult *page = NULL;
        status = ask_page(session, SQL_ITEMS_AFTER, item.id, &page);
        for (int i = 0; status == DB_OK && i < PQntuples(page) && !visit->stopped; i++)
            if ((status = row_item(session, page, i, &item)) == DB_OK)
                status = judge_item(session, &item, visit);
        PQclear(page);
    }
    return status == DB_NOT_FOUND ? DB_OK : status;
}

/* Ascending: "account:..." stands before "item:...". Its statements may read a whole ledger. */
db_status session_audit(struct session *session, const char *resource,
                        int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    struct visit visit = {each, arg, false};
    int64_t answer_ms = session->answer_ms;
    session_queue(session, SQL_TAKE_LONGER, NULL, 0, false);
    session->answer_ms = PG_AUDIT_ANSWER_MS + PG_ANSWER_SLACK_MS;
    db_status status =
        resource ? judge_named(session, resource, &visit) : judge_accounts(session, &visit);
    if (!resource && status == DB_OK)
        status = judge_items(session, &visit);
    session->answer_ms = answer_ms;
    return status;
}
