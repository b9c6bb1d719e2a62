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

static db_status next(struct session *session, struct list *list, const struct row_type *type,
                      void *ret)
{
    db_status status = DB_OK;
    if (++list->at >= PQntuples(list->page)) {
        PQclear(list->page);
        list->page = NULL;
        list->at = 0;
        status = session_ask(session, list->fetch, NULL, 0, &list->page);
    }
    return status == DB_OK ? session_row(session, list->page, list->at, type, ret) : status;
}

static db_status next_head(void *arg, struct audit_head *ret)
{
    struct feed *feed = arg;
    return next(feed->session, &feed->heads, &audit_head_type, ret);
}

/* The cursors are opened together with the first fetch. */
static void open_ledger(void *arg, int64_t epoch)
{
    struct feed *feed = arg;
    const struct value args[] = {VALUE_TEXT(feed->resource), VALUE_INT(epoch)};
    session_queue(feed->session, SQL_AUDIT_ROWS, args, VALUE_COUNT(args), false);
    session_queue(feed->session, SQL_AUDIT_REPEATS, args, VALUE_COUNT(args), false);
}

static db_status next_row(void *arg, db_ledger_row *ret)
{
    struct feed *feed = arg;
    return next(feed->session, &feed->rows, &row_types[TABLE_LEDGER], ret);
}

static db_status next_repeats(void *arg, struct audit_repeats *ret)
{
    struct feed *feed = arg;
    return next(feed->session, &feed->repeats, &audit_repeats_type, ret);
}

int64_t session_take_longer(struct session *session)
{
    int64_t answer_ms = session->answer_ms;
    session_queue(session, SQL_TAKE_LONGER, NULL, 0, false);
    session->answer_ms = PG_AUDIT_ANSWER_MS + PG_ANSWER_SLACK_MS;
    return answer_ms;
}

/* One statement may read the whole ledger. */
static int64_t take_longer(struct session *session, const db_reader *asks)
{
    session->asks = asks;
    return session_take_longer(session);
}

static void as_before(struct session *session, int64_t answer_ms)
{
    session->answer_ms = answer_ms;
    session->asks = NULL;
}

db_status session_audit(struct session *session, const db_reader *asks, const char *resource,
                        int (*each)(void *arg, const db_audit_row *row), void *arg)
{
    static const struct audit_lists lists = {next_head, open_ledger, next_row, next_repeats};
    struct feed feed = {.session = session,
                        .resource = resource ? resource : "",
                        .heads.fetch = SQL_FETCH_HEADS,
                        .rows.fetch = SQL_FETCH_ROWS,
                        .repeats.fetch = SQL_FETCH_REPEATS};
    const struct value args[] = {VALUE_TEXT(feed.resource)};
    int64_t answer_ms = take_longer(session, asks);
    session_queue(session, SQL_AUDIT_HEADS, args, VALUE_COUNT(args), false);
    db_status status = audit_run(&lists, &feed, !feed.resource[0], each, arg);
    session_queue(session, SQL_CLOSE_LISTS, NULL, 0, false);
    as_before(session, answer_ms);
    PQclear(feed.heads.page);
    PQclear(feed.rows.page);
    PQclear(feed.repeats.page);
    return status;
}

db_status session_read_money(struct session *session, const db_reader *asks,
                             int (*each)(void *arg, const db_ledger_row *row), void *arg)
{
    struct list list = {.fetch = SQL_FETCH_MONEY};
    db_ledger_row row;
    db_status status;
    int64_t answer_ms = take_longer(session, asks);
    session_queue(session, SQL_AUDIT_MONEY, NULL, 0, false);
    while ((status = next(session, &list, &row_types[TABLE_LEDGER], &row)) == DB_OK &&
           each(arg, &row) == 0)
        continue;
    session_queue(session, SQL_CLOSE_LISTS, NULL, 0, false);
    as_before(session, answer_ms);
    PQclear(list.page);
    return status == DB_NOT_FOUND ? DB_OK : status;
}

db_status session_read_unpaid(struct session *session, const db_reader *asks, int64_t *ret)
{
    PGresult *result = NULL;
    int64_t answer_ms = take_longer(session, asks);
    db_status status = session_ask(session, SQL_UNPAID, NULL, 0, &result);
    as_before(session, answer_ms);
    if (status == DB_OK)
        *ret = cell_int(session, result, 0, 0);
    PQclear(result);
    return session->trouble.status == DB_OK ? status : session->trouble.status;
}
