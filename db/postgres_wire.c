/*
 * Statements out, answers in, over a connection in pipeline mode (PostgreSQL documentation, "libpq:
 * Pipeline Mode"): what stands between two synchronisation points is sent without waiting; an error
 * makes the server skip the rest up to the next point. The socket never blocks: each wait has a
 * deadline, after which the connection is given up, because a late answer would be taken for the
 * next statement's.
 */
#include "postgres.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TYPE_TEXT = 25, TYPE_BIGINT = 20, BINARY = 1 }; /* of pg_type.dat */

static const struct {
    const char *name, *types, *text;
} statements[] = {
#define STATEMENT(name, types, text) {#name, types, text},
    POSTGRES_SQL_MAP(STATEMENT)
#undef STATEMENT
};

int64_t pg_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* -- errors ----------------------------------------------------------------------------------- */

void session_clear(struct session *session)
{
    if (!session->lost)
        session->trouble.status = DB_OK;
    session->again = session->missed = false;
}

db_status session_lose(struct session *session, const char *why)
{
    if (session->trouble.status == DB_OK)
        db_fail(&session->trouble, DB_UNAVAILABLE, "PostgreSQL: %.*s", (int)strcspn(why, "\n"),
                why);
    session->lost = true;
    return session->trouble.status;
}

/* By SQLSTATE (PostgreSQL documentation, appendix A). */
static db_status status_of(const char *code)
{
    static const struct {
        const char *prefix;
        db_status status;
    } known[] = {
        {"40001", DB_BUSY},        /* serialization failure */
        {"40P01", DB_BUSY},        /* deadlock */
        {"55P03", DB_BUSY},        /* lock_timeout */
        {"57014", DB_BUSY},        /* statement_timeout */
        {"08", DB_UNAVAILABLE},    /* connection */
        {"53300", DB_UNAVAILABLE}, /* too many connections */
        {"57P", DB_UNAVAILABLE},   /* shutting down, starting up */
        {"25006", DB_UNAVAILABLE}, /* a standby: read-only */
        {"25P03", DB_UNAVAILABLE}, /* ended by idle_in_transaction_session_timeout */
        {"22021", DB_INVALID},     /* text that is not UTF-8 */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(code, known[i].prefix, strlen(known[i].prefix)) == 0)
            return known[i].status;
    return DB_FAILED;
}

/* Notes what the server answered instead of a result. */
static void note_error(struct session *session, const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (!code || !severity) { /* libpq's own: the connection broke */
        session_lose(session, PQerrorMessage(session->handle));
        return;
    }
    if (session->trouble.status == DB_OK) {
        db_fail(&session->trouble, status_of(code), "PostgreSQL: %.200s (SQLSTATE %.5s)",
                text ? text : "?", code);
        session->again = strcmp(code, "40001") == 0 || strcmp(code, "40P01") == 0;
    }
    if (strcmp(severity, "ERROR") != 0) /* FATAL, PANIC: it hangs up */
        session->lost = true;
}

/* -- the socket ------------------------------------------------------------------------------- */

bool session_wait(struct session *session, short events, int64_t deadline_us)
{
    struct pollfd fd = {.fd = PQsocket(session->handle), .events = events};
    for (;;) {
        int64_t left_us = deadline_us - pg_now_us();
        int n = poll(&fd, 1, left_us > 0 ? (int)((left_us + 999) / 1000) : 0);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* The next thing that the server has to say; NULL: the end of one statement's answer, or lost. */
static PGresult *next_result(struct session *session, int64_t deadline_us)
{
    PGconn *handle = session->handle;
    while (!session->lost) {
        int unsent = PQflush(handle);
        if (unsent >= 0 && !PQisBusy(handle))
            return PQgetResult(handle);
        if (unsent < 0) {
            /* What the server said before it hung up explains more than that it did. */
            PQconsumeInput(handle);
            session_lose(session, PQerrorMessage(handle));
        } else if (!session_wait(session, (short)(unsent ? POLLIN | POLLOUT : POLLIN),
                                 deadline_us)) {
            session_lose(session, "no answer in time; taken for dead");
        } else if (!PQconsumeInput(handle)) {
            session_lose(session, PQerrorMessage(handle));
        }
    }
    return NULL;
}

static bool is_rows(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Reads past what session_part() has left. */
static void read_farewells(struct session *session, int64_t deadline_us)
{
    while (session->farewells > 0 && !session->lost) {
        PGresult *result = next_result(session, deadline_us);
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
            session->farewells--;
        PQclear(result);
    }
}

/* The answer of one statement: its result, or NULL with trouble noted or already known. */
static PGresult *read_answer(struct session *session, int64_t deadline_us)
{
    PGresult *answer = NULL, *result;
    while ((result = next_result(session, deadline_us)) != NULL) {
        if (is_rows(result)) {
            PQclear(answer);
            answer = result;
            continue;
        }
        if (PQresultStatus(result) != PGRES_PIPELINE_ABORTED)
            note_error(session, result);
        PQclear(result);
        if (PQstatus(session->handle) != CONNECTION_OK)
            session->lost = true;
    }
    return answer;
}

/* Reads all answers; the last one is the caller's. */
static db_status read_all(struct session *session, PGresult **ret_last)
{
    PGresult *last = NULL;
    if (session->lost)
        return session->trouble.status;
    if (!PQpipelineSync(session->handle))
        return session_lose(session, PQerrorMessage(session->handle));
    int64_t deadline_us = pg_now_us() + session->answer_ms * 1000;
    read_farewells(session, deadline_us);
    for (int i = 0; i < session->queued && !session->lost; i++) {
        PQclear(last);
        last = read_answer(session, deadline_us);
        if (last && session->expects_one[i] && strcmp(PQcmdTuples(last), "1") != 0)
            session->missed = true;
    }
    session->queued = 0;
    PGresult *point = next_result(session, deadline_us);
    assert(session->lost || PQresultStatus(point) == PGRES_PIPELINE_SYNC);
    PQclear(point);
    if (session->trouble.status == DB_OK && last) {
        *ret_last = last;
        return DB_OK;
    }
    PQclear(last);
    return session->trouble.status;
}

/* -- statements ------------------------------------------------------------------------------- */

void session_queue(struct session *session, enum postgres_sql sql, const struct arg *args, size_t n,
                   bool expects_one)
{
    const char *values[PG_ARGS_MAX];
    int lengths[PG_ARGS_MAX], formats[PG_ARGS_MAX];
    uint64_t numbers[PG_ARGS_MAX];
    const char *types = statements[sql].types;
    assert(n == strlen(types) && n <= PG_ARGS_MAX);
    if (session->queued == PG_QUEUE_MAX)
        session_sync(session);
    if (session->trouble.status != DB_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        assert((types[i] == 't') == (args[i].text != NULL));
        numbers[i] = htobe64((uint64_t)args[i].number);
        values[i] = args[i].text ? args[i].text : (const char *)&numbers[i];
        lengths[i] = args[i].text ? (int)strlen(args[i].text) : (int)sizeof numbers[i];
        formats[i] = BINARY;
    }
    if (!PQsendQueryPrepared(session->handle, statements[sql].name, (int)n, values, lengths,
                             formats, BINARY)) {
        session_lose(session, PQerrorMessage(session->handle));
        return;
    }
    session->expects_one[session->queued++] = expects_one;
}

db_status session_sync(struct session *session)
{
    PGresult *last = NULL;
    if (session->queued == 0)
        return session->trouble.status;
    db_status status = read_all(session, &last);
    PQclear(last);
    return status;
}

db_status session_ask(struct session *session, enum postgres_sql sql, const struct arg *args,
                      size_t n, PGresult **ret)
{
    PGresult *last = NULL;
    session_queue(session, sql, args, n, false);
    if (session->trouble.status != DB_OK)
        return session->trouble.status;
    db_status status = read_all(session, &last);
    if (status != DB_OK)
        return status;
    if (PQntuples(last) == 0) {
        PQclear(last);
        return DB_NOT_FOUND;
    }
    *ret = last;
    return DB_OK;
}

/* A synchronisation point first: an error in what is queued must not skip the farewell. */
void session_part(struct session *session, enum postgres_sql sql)
{
    PGconn *handle = session->handle;
    if (session->lost)
        return;
    if (session->queued > 0) {
        session->queued = 0;
        session->farewells++;
        if (!PQpipelineSync(handle))
            session->lost = true;
    }
    session->farewells++;
    if (!PQsendQueryPrepared(handle, statements[sql].name, 0, NULL, NULL, NULL, BINARY) ||
        !PQpipelineSync(handle) || PQflush(handle) != 0)
        session->lost = true; /* the server takes back what was not committed */
}

db_status session_exec(struct session *session, const char *sql, PGresult **ret)
{
    PGresult *last;
    if (session->trouble.status != DB_OK)
        return session->trouble.status;
    if (!PQsendQuery(session->handle, sql))
        return session_lose(session, PQerrorMessage(session->handle));
    last = read_answer(session, pg_now_us() + session->answer_ms * 1000);
    if (session->trouble.status == DB_OK && last && ret)
        *ret = last;
    else
        PQclear(last);
    return session->trouble.status;
}

db_status session_prepare(struct session *session)
{
    PGresult *last = NULL;
    Oid types[PG_ARGS_MAX];
    static_assert((int)SQL_COUNT <= (int)PG_QUEUE_MAX, "one round trip");
    for (int i = 0; i < SQL_COUNT; i++) {
        size_t n = strlen(statements[i].types);
        for (size_t j = 0; j < n; j++)
            types[j] = statements[i].types[j] == 't' ? TYPE_TEXT : TYPE_BIGINT;
        if (!PQsendPrepare(session->handle, statements[i].name, statements[i].text, (int)n, types))
            return session_lose(session, PQerrorMessage(session->handle));
        session->expects_one[session->queued++] = false;
    }
    db_status status = read_all(session, &last);
    PQclear(last);
    return status;
}

/* -- columns ---------------------------------------------------------------------------------- */

int64_t cell_int(const PGresult *result, int row, int at)
{
    uint64_t number;
    assert(PQgetlength(result, row, at) == (int)sizeof number);
    memcpy(&number, PQgetvalue(result, row, at), sizeof number);
    return (int64_t)be64toh(number);
}

db_status cell_text(struct session *session, const PGresult *result, int row, int at, char *out,
                    size_t size)
{
    size_t length = (size_t)PQgetlength(result, row, at);
    if (length >= size)
        return db_fail(&session->trouble, DB_FAILED,
                       "PostgreSQL: column %.60s holds %zu characters, more than %zu",
                       PQfname(result, at), length, size - 1);
    memcpy(out, PQgetvalue(result, row, at), length + 1);
    return DB_OK;
}
