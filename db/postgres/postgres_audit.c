/* The audit's lists: cursors, fetched page by page, so that no answer is larger than a page. */
#include "audit.h"
#include "postgres.h"

struct list {
    enum postgres_sql fetch;
    PGresult *page;
    int at; /* row of the page */
};

struct feed {
    struct session *session;
    const char *resource; /* "" for all */
    struct list heads, rows, repeats;
};

/* The list's next row stands in its page, at its `at`. */
static db_status next(struct session *session, struct list *list)
{
    if (++list->at < PQntuples(list->page))
        return DB_OK;
    PQclear(list->page);
    list->page = NULL;
    list->at = 0;
    return session_ask(session, list->fetch, NULL, 0, &list->page);
}

static db_status next_head(void *arg, struct audit_head *ret)
{
    struct feed *feed = arg;
    struct list *list = &feed->heads;
    struct session *session = feed->session;
    db_status status = next(session, list);
    const PGresult *page = list->page;
    int at = list->at;
    if (status != DB_OK ||
        (status = cell_text(session, page, at, 0, ret->resource, sizeof ret->resource)) ||
        (status = cell_text(session, page, at, 1, ret->guard, sizeof ret->guard)))
        return status;
    ret->initial = cell_int(session, page, at, 2);
    ret->current = cell_int(session, page, at, 3);
    ret->version = cell_int(session, page, at, 4);
    ret->epoch = cell_int(session, page, at, 5);
    ret->missing = cell_int(session, page, at, 6) != 0;
    ret->sold = cell_int(session, page, at, 7);
    ret->stray_orders = cell_int(session, page, at, 8);
    ret->over_limit = cell_int(session, page, at, 9);
    ret->former_paid = cell_int(session, page, at, 10);
    return session->trouble.status;
}

/* The cursors are opened together with the first fetch. */
static void open_ledger(void *arg, int64_t epoch)
{
    struct feed *feed = arg;
    const struct arg args[] = {ARG_TEXT(feed->resource), ARG_INT(epoch)};
    session_queue(feed->session, SQL_AUDIT_ROWS, args, ARG_COUNT(args), false);
    session_queue(feed->session, SQL_AUDIT_REPEATS, args, ARG_COUNT(args), false);
}

/* Columns as in AUDIT_ROW_COLUMNS. */
static db_status row_at(struct session *session, const PGresult *page, int at, db_ledger_row *ret)
{
    db_status status;
    if ((status = cell_text(session, page, at, 1, ret->resource, sizeof ret->resource)) ||
        (status = cell_text(session, page, at, 2, ret->txn_id, sizeof ret->txn_id)) ||
        (status = cell_text(session, page, at, 9, ret->guard, sizeof ret->guard)) ||
        (status = cell_text(session, page, at, 10, ret->instance, sizeof ret->instance)))
        return status;
    ret->id = cell_int(session, page, at, 0);
    ret->delta = cell_int(session, page, at, 3);
    ret->before = cell_int(session, page, at, 4);
    ret->after = cell_int(session, page, at, 5);
    ret->version_before = cell_int(session, page, at, 6);
    ret->fence = cell_int(session, page, at, 7);
    ret->epoch = cell_int(session, page, at, 8);
    ret->at_us = cell_int(session, page, at, 11);
    return session->trouble.status;
}

static db_status next_row(void *arg, db_ledger_row *ret)
{
    struct feed *feed = arg;
    struct list *list = &feed->rows;
    db_status status = next(feed->session, list);
    return status == DB_OK ? row_at(feed->session, list->page, list->at, ret) : status;
}

static db_status next_repeats(void *arg, struct audit_repeats *ret)
{
    struct feed *feed = arg;
    struct list *list = &feed->repeats;
    struct session *session = feed->session;
    db_status status = next(session, list);
    if (status != DB_OK ||
        (status = cell_text(session, list->page, list->at, 0, ret->resource, sizeof ret->resource)))
        return status;
    ret->epoch = cell_int(session, list->page, list->at, 1);
    ret->rows = cell_int(session, list->page, list->at, 2);
    return session->trouble.status;
}

/* A statement may read a whole ledger. */
db_status session_audit(struct session *session, const char *resource,
                        int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    static const struct audit_lists lists = {next_head, open_ledger, next_row, next_repeats};
    struct feed feed = {.session = session,
                        .resource = resource ? resource : "",
                        .heads.fetch = SQL_FETCH_HEADS,
                        .rows.fetch = SQL_FETCH_ROWS,
                        .repeats.fetch = SQL_FETCH_REPEATS};
    const struct arg args[] = {ARG_TEXT(feed.resource)};
    int64_t answer_ms = session->answer_ms;
    session_queue(session, SQL_TAKE_LONGER, NULL, 0, false);
    session->answer_ms = PG_AUDIT_ANSWER_MS + PG_ANSWER_SLACK_MS;
    session_queue(session, SQL_AUDIT_HEADS, args, ARG_COUNT(args), false);
    db_status status = audit_run(&lists, &feed, each, arg);
    session_queue(session, SQL_CLOSE_LISTS, NULL, 0, false);
    session->answer_ms = answer_ms;
    PQclear(feed.heads.page);
    PQclear(feed.rows.page);
    PQclear(feed.repeats.page);
    return status;
}

/* The end is asked for first, in the same snapshot. */
db_status session_read_ledger(struct session *session, int64_t after, size_t max,
                              int (*each)(void *arg, const db_ledger_row *row), void *arg,
                              int64_t *ret_last)
{
    const struct arg args[] = {ARG_INT(after), ARG_INT((int64_t)max)};
    PGresult *end = NULL, *page = NULL;
    db_ledger_row row;
    db_status status = session_ask(session, SQL_LEDGER_END, NULL, 0, &end);
    if (status == DB_OK) {
        *ret_last = cell_int(session, end, 0, 0);
        status = session_ask(session, SQL_LEDGER_PAGE, args, ARG_COUNT(args), &page);
    }
    for (int i = 0; status == DB_OK && i < PQntuples(page); i++) {
        status = row_at(session, page, i, &row);
        if (status == DB_OK && each(arg, &row) != 0)
            break;
    }
    PQclear(end);
    PQclear(page);
    return status == DB_NOT_FOUND ? DB_OK : status;
}
