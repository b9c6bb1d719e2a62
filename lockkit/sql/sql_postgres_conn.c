#include "sql_postgres_rep.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t timeout_us(const lk_pg_conn *conn)
{
    return conn->target->context->options->command_timeout_ms * 1000;
}

/* -- the socket ------------------------------------------------------------------------------- */

int lk_pg_socket(const lk_pg_conn *conn)
{
    return PQsocket(conn->handle);
}

int lk_pg_process(const lk_pg_conn *conn)
{
    return PQbackendPID(conn->handle);
}

/* What it may have said before (a notice) does not matter. */
bool lk_pg_has_ended(const lk_pg_conn *conn)
{
    struct pollfd fd = {.fd = PQsocket(conn->handle), .events = POLLRDHUP};
    return poll(&fd, 1, 0) != 0;
}

bool lk_pg_wait(const lk_pg_conn *conn, short events, int64_t until_us)
{
    struct pollfd fd = {.fd = PQsocket(conn->handle), .events = events};
    for (;;) {
        int64_t left_ms = (until_us - lk_monotonic_us() + 999) / 1000;
        int n = poll(&fd, 1, left_ms > INT_MAX ? INT_MAX : left_ms > 0 ? (int)left_ms : 0);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* The first line of what libpq or the server says; what ends a pipeline says nothing. */
lk_status lk_pg_failed(lk_pg_conn *conn, lk_status status, const char *text)
{
    if (text[0] != '\0')
        snprintf(conn->message, sizeof conn->message, "%.*s", (int)strcspn(text, "\n"), text);
    return status;
}

lk_status lk_pg_hung_up(lk_pg_conn *conn)
{
    return lk_pg_failed(conn, LK_UNKNOWN, PQerrorMessage(conn->handle));
}

lk_status lk_pg_too_late(lk_pg_conn *conn, lk_status status)
{
    snprintf(conn->message, sizeof conn->message, "PostgreSQL at %.200s:%.20s: no answer in time",
             PQhost(conn->handle), PQport(conn->handle));
    return status;
}

/* An outcome as the caller is told it. */
static lk_status noted(const lk_pg_conn *conn, lk_status status)
{
    if (status == LK_UNKNOWN || status == LK_UNAVAILABLE || status == LK_PROTOCOL)
        lk_note(conn->target->context, status, "%s", conn->message);
    return status;
}

/* -- answers ---------------------------------------------------------------------------------- */

/* What the server answered instead of a result, by SQLSTATE (PostgreSQL documentation, appendix A).
 * The statement has done nothing, unless the server is hanging up: then it may have been done just
 * before. */
static lk_status judge(lk_pg_conn *conn, const PGresult *result)
{
    static const struct {
        const char *prefix;
        lk_status status;
    } known[] = {
        {"55P03", LK_BUSY},        /* lock_timeout */
        {"22", LK_PROTOCOL},       /* data not as the schema has it */
        {"42501", LK_UNAVAILABLE}, /* no privilege */
        {"42", LK_PROTOCOL},       /* tables not as the schema has them */
        {"3F", LK_PROTOCOL},       /* no schema */
        {"XX", LK_PROTOCOL},       /* damaged */
        {"", LK_UNAVAILABLE}, /* timeouts, shutting down, a standby, too many connections ... */
    };
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    lk_pg_failed(conn, LK_UNKNOWN, PQresultErrorMessage(result));
    if (code == NULL || severity == NULL || strcmp(severity, "ERROR") != 0)
        return LK_UNKNOWN;
    conn->missing = strcmp(code, "42P01") == 0 || strcmp(code, "3F000") == 0;
    size_t i = 0;
    while (strncmp(code, known[i].prefix, strlen(known[i].prefix)) != 0)
        i++;
    return known[i].status;
}

static void give_rows(const PGresult *result, lk_sql_each *each, void *arg)
{
    int n = PQnfields(result);
    for (int at = 0; at < PQntuples(result); at++) {
        lk_sql_row row;
        for (int i = 0; i < LK_SQL_COLUMNS_MAX; i++) {
            row.text[i] = i < n ? PQgetvalue(result, at, i) : "";
            row.number[i] = strtoll(row.text[i], NULL, 10);
        }
        if (each(arg, &row) != 0)
            return;
    }
}

/* The end of an answer. */
static lk_status heard(lk_pg_conn *conn, lk_status status)
{
    conn->heard = LK_UNKNOWN;
    return status;
}

lk_status lk_pg_answer(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg)
{
    PGconn *handle = conn->handle;
    for (;;) {
        int unsent = PQflush(handle);
        if (unsent < 0)
            return heard(conn, lk_pg_hung_up(conn));
        if (PQisBusy(handle)) {
            if (!lk_pg_wait(conn, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until_us))
                return LK_TIMEOUT;
            if (!PQconsumeInput(handle))
                return heard(conn, lk_pg_hung_up(conn));
            continue;
        }
        PGresult *result = PQgetResult(handle);
        if (result == NULL)
            return heard(conn,
                         PQstatus(handle) == CONNECTION_OK ? conn->heard : lk_pg_hung_up(conn));
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK) {
            conn->heard = LK_OK;
            if (each != NULL)
                give_rows(result, each, arg);
        } else {
            conn->heard = judge(conn, result);
        }
        PQclear(result);
        /* No statement of ours copies. libpq would return this result for ever. */
        if (kind == PGRES_COPY_OUT || kind == PGRES_COPY_IN || kind == PGRES_COPY_BOTH)
            return heard(conn, conn->heard);
    }
}

lk_status lk_pg_receive(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg)
{
    return noted(conn, lk_pg_answer(conn, until_us, each, arg));
}

void lk_pg_await(lk_pg_conn *conn, int64_t until_us)
{
    int unsent = PQflush(conn->handle);
    while (unsent > 0 && lk_pg_wait(conn, POLLIN | POLLOUT, until_us))
        unsent = PQflush(conn->handle);
    if (unsent == 0 && PQisBusy(conn->handle))
        lk_pg_wait(conn, POLLIN, until_us);
}

lk_status lk_pg_finish(lk_pg_conn *conn, int sent, int64_t until_us, lk_sql_each *each, void *arg)
{
    if (!sent)
        return lk_pg_hung_up(conn);
    lk_status status = lk_pg_answer(conn, until_us, each, arg);
    return status == LK_TIMEOUT ? lk_pg_too_late(conn, LK_UNKNOWN) : status;
}

/* -- statements ------------------------------------------------------------------------------- */

const char *lk_pg_statement_name(int statement, char name[LK_PG_NUMBER_MAX])
{
    snprintf(name, LK_PG_NUMBER_MAX, "lockkit%d", statement);
    return name;
}

lk_status lk_pg_send(lk_pg_conn *conn, int statement, const lk_sql_arg *args)
{
    const char *types = conn->target->set->statements[statement].types;
    const char *values[LK_SQL_ARGS_MAX];
    char name[LK_PG_NUMBER_MAX], numbers[LK_SQL_ARGS_MAX][LK_PG_NUMBER_MAX];
    int n = 0;
    for (; types[n] != '\0'; n++) {
        snprintf(numbers[n], sizeof numbers[n], "%" PRId64, args[n].number);
        values[n] = types[n] == 't' ? args[n].text : numbers[n];
    }
    atomic_fetch_add_explicit(conn->target->context->commands, 1, memory_order_relaxed);
    if (!PQsendQueryPrepared(conn->handle, lk_pg_statement_name(statement, name), n, values, NULL,
                             NULL, 0) ||
        PQflush(conn->handle) < 0)
        return noted(conn, lk_pg_hung_up(conn));
    return LK_OK;
}

lk_status lk_pg_run(lk_pg_conn *conn, int statement, const lk_sql_arg *args, lk_sql_each *each,
                    void *arg)
{
    int64_t until_us = lk_monotonic_us() + timeout_us(conn);
    bool sent = lk_pg_send(conn, statement, args) == LK_OK;
    return noted(conn, lk_pg_finish(conn, sent, until_us, each, arg));
}

void lk_pg_disconnect(lk_pg_conn *conn)
{
    PQfinish(conn->handle);
    free(conn);
}
