/*
 * Sends statements and reads answers, over a connection in pipeline mode (PostgreSQL documentation,
 * "libpq: Pipeline Mode"). Statements between two synchronisation points are sent without waiting.
 * After an error the server skips the rest up to the next point. The socket never blocks. Each wait
 * has a deadline. After it the connection is given up, because a late answer would be taken for the
 * answer of the next statement.
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

enum { BINARY = 1, STATEMENT_MAX = 4096 };

static const struct {
    const char *name, *types, *text;
} statements[] = {
#define STATEMENT(name, types, text) {#name, types, text},
    POSTGRES_SQL_MAP(STATEMENT)
#undef STATEMENT
};

/* The statement that many of this one are sent as; 0: this one does not gather. */
static const enum postgres_sql many_of[SQL_COUNT] = {
    [SQL_FIND_ANSWER] = SQL_FIND_ANSWERS,     [SQL_READ_BOUGHT] = SQL_READ_BOUGHT_OF_MANY,
    [SQL_INSERT_ORDER] = SQL_INSERT_ORDERS,   [SQL_APPEND_LEDGER] = SQL_APPEND_LEDGERS,
    [SQL_INSERT_ANSWER] = SQL_INSERT_ANSWERS,
};

/* -- the socket ------------------------------------------------------------------------------- */

bool session_wait(struct session *session, short events, int64_t deadline_us)
{
    enum { ASK_MS = 50 };
    struct pollfd fd = {.fd = PQsocket(session->handle), .events = events};
    const db_reader *asks = session->asks;
    for (;;) {
        if (asks && asks->stop && asks->stop(asks->stop_arg)) {
            session_interrupt(session);
            return false;
        }
        int64_t left_us = deadline_us - db_now_us();
        int64_t wait_ms = left_us > 0 ? (left_us + 999) / 1000 : 0;
        bool last = !asks || wait_ms <= ASK_MS;
        int n = poll(&fd, 1, last ? (int)wait_ms : ASK_MS);
        if (n > 0)
            return true;
        if ((n == 0 && last) || (n < 0 && errno != EINTR))
            return false;
    }
}

/* The server's next result. NULL: the end of one statement's answer, or a lost connection. */
static PGresult *next_result(struct session *session, int64_t deadline_us)
{
    PGconn *handle = session->handle;
    while (!session->lost) {
        int unsent = PQflush(handle);
        if (unsent >= 0 && !PQisBusy(handle))
            return PQgetResult(handle);
        if (unsent < 0) {
            /* The server's last message explains more than the broken connection does. */
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

/* -- statements out --------------------------------------------------------------------------- */

static void send_statement(struct session *session, enum postgres_sql sql,
                           const char *const *values, const int *lengths, int expects)
{
    size_t n = strlen(statements[sql].types);
    int formats[PG_ARGS_MAX];
    if (session->queued == PG_QUEUE_MAX)
        session_sync(session);
    if (session->trouble.status != DB_OK)
        return;
    for (size_t i = 0; i < n; i++)
        formats[i] = BINARY;
    if (!PQsendQueryPrepared(session->handle, statements[sql].name, (int)n, values, lengths,
                             formats, BINARY)) {
        session_lose(session, PQerrorMessage(session->handle));
        return;
    }
    session->expects[session->queued++] = expects;
}

static void send_gathered(struct session *session)
{
    struct gather *gather = &session->gather;
    const char *values[PG_ARGS_MAX];
    int lengths[PG_ARGS_MAX];
    const char *types = statements[gather->sql].types;
    if (gather->n == 0)
        return;
    int n = gather->n;
    if (n == 1)
        gather_one(gather, types, values, lengths);
    else
        gather_arrays(gather, types, values, lengths);
    gather->n = 0;
    send_statement(session, n == 1 ? gather->sql : many_of[gather->sql], values, lengths,
                   gather->expects_one ? n : 0);
}

void session_queue(struct session *session, enum postgres_sql sql, const struct value *args,
                   size_t n, bool expects_one)
{
    const char *values[PG_ARGS_MAX];
    int lengths[PG_ARGS_MAX];
    uint64_t numbers[PG_ARGS_MAX];
    const char *types = statements[sql].types;
    assert(n == strlen(types) && n <= PG_ARGS_MAX);
    for (size_t i = 0; i < n; i++)
        assert((types[i] == 't') == (args[i].text != NULL));
    if (sql != session->gather.sql || session->gather.n == PG_GATHER_MAX)
        send_gathered(session);
    if (session->trouble.status != DB_OK)
        return;
    if (many_of[sql]) {
        session->gather.sql = sql;
        session->gather.expects_one = expects_one;
        if (!gather_add(&session->gather, args, n))
            session_lose(session, "out of memory");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        numbers[i] = htobe64((uint64_t)args[i].number);
        values[i] = args[i].text ? args[i].text : (const char *)&numbers[i];
        lengths[i] = args[i].text ? (int)strlen(args[i].text) : (int)sizeof numbers[i];
    }
    send_statement(session, sql, values, lengths, expects_one ? 1 : 0);
}

/* -- answers in ------------------------------------------------------------------------------- */

static const char no_answer[] = "the server's answer is not one to what was asked";

static bool is_rows(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Skips the answers that session_send_end() left unread, up to the last point. */
static void read_unread_ends(struct session *session, int64_t deadline_us)
{
    bool at_end = false;
    while (session->unread_ends > 0 && !session->lost) {
        PGresult *result = next_result(session, deadline_us);
        ExecStatusType status = PQresultStatus(result);
        bool end = !result, bad = end && at_end;
        if (status == PGRES_PIPELINE_SYNC)
            session->unread_ends--;
        else if (!end)
            bad =
                !is_rows(result) && status != PGRES_FATAL_ERROR && status != PGRES_PIPELINE_ABORTED;
        PQclear(result);
        if (bad)
            session_lose(session, no_answer);
        at_end = end;
    }
}

/* The answer of one statement: its result, or NULL with trouble recorded. */
static PGresult *read_answer(struct session *session, int64_t deadline_us, bool of_many)
{
    PGresult *answer = NULL, *result;
    while ((result = next_result(session, deadline_us)) != NULL) {
        if (is_rows(result)) {
            PQclear(answer);
            answer = result;
            continue;
        }
        if (PQresultStatus(result) != PGRES_PIPELINE_ABORTED)
            session_note_error(session, result, of_many);
        PQclear(result);
        if (PQstatus(session->handle) != CONNECTION_OK)
            session->lost = true;
    }
    if (!answer && session->trouble.status == DB_OK)
        session_lose(session, no_answer);
    return answer;
}

/* The server may end the connection at any time (a restart, pg_terminate_backend()). Its error then
 * comes instead of the point. */
static void read_point(struct session *session, int64_t deadline_us)
{
    PGresult *point = next_result(session, deadline_us);
    if (!session->lost && PQresultStatus(point) != PGRES_PIPELINE_SYNC) {
        if (PQresultStatus(point) == PGRES_FATAL_ERROR)
            session_note_error(session, point, false);
        session_lose(session, no_answer);
    }
    PQclear(point);
}

/* Reads all answers and gives the last one. */
static db_status read_all(struct session *session, PGresult **ret_last)
{
    PGresult *last = NULL;
    send_gathered(session);
    if (session->lost)
        return session->trouble.status;
    if (!PQpipelineSync(session->handle))
        return session_lose(session, PQerrorMessage(session->handle));
    int64_t deadline_us = db_now_us() + session->answer_ms * 1000;
    read_unread_ends(session, deadline_us);
    for (int i = 0; i < session->queued && !session->lost; i++) {
        PQclear(last);
        int expects = session->expects[i];
        last = read_answer(session, deadline_us, expects > 1);
        if (last && expects > 0 && strtol(PQcmdTuples(last), NULL, 10) != expects)
            session->missed = true;
    }
    session->queued = 0;
    read_point(session, deadline_us);
    if (session->trouble.status == DB_OK && last) {
        *ret_last = last;
        return DB_OK;
    }
    PQclear(last);
    return session->trouble.status;
}

/* -- asking ----------------------------------------------------------------------------------- */

db_status session_sync(struct session *session)
{
    PGresult *last = NULL;
    if (session->queued == 0 && session->gather.n == 0)
        return session->trouble.status;
    db_status status = read_all(session, &last);
    PQclear(last);
    return status;
}

db_status session_read(struct session *session, PGresult **ret)
{
    PGresult *last = NULL;
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

db_status session_ask(struct session *session, enum postgres_sql sql, const struct value *args,
                      size_t n, PGresult **ret)
{
    session_queue(session, sql, args, n, false);
    return session->trouble.status == DB_OK ? session_read(session, ret) : session->trouble.status;
}

/* A synchronisation point comes first: an error in a queued statement must not skip the end. */
void session_send_end(struct session *session, enum postgres_sql sql)
{
    PGconn *handle = session->handle;
    if (session->lost)
        return;
    if (session->queued > 0) {
        session->queued = 0;
        session->unread_ends++;
        if (!PQpipelineSync(handle))
            session->lost = true;
    }
    session->unread_ends++;
    if (!PQsendQueryPrepared(handle, statements[sql].name, 0, NULL, NULL, NULL, BINARY) ||
        !PQpipelineSync(handle) || PQflush(handle) != 0)
        session->lost = true; /* the server rolls back what is not committed */
}

db_status session_exec(struct session *session, const char *sql, PGresult **ret)
{
    PGresult *last;
    if (session->trouble.status != DB_OK)
        return session->trouble.status;
    if (!PQsendQuery(session->handle, sql))
        return session_lose(session, PQerrorMessage(session->handle));
    last = read_answer(session, db_now_us() + session->answer_ms * 1000, false);
    if (session->trouble.status == DB_OK && last && ret)
        *ret = last;
    else
        PQclear(last);
    return session->trouble.status;
}

static Oid type_of(char letter)
{
    switch (letter) {
    case 't':
        return PG_TYPE_TEXT;
    case 'T':
        return PG_TYPE_TEXTS;
    case 'I':
        return PG_TYPE_BIGINTS;
    default:
        return PG_TYPE_BIGINT;
    }
}

/* Numbers the plain arguments: "?, ?" becomes "$1, $2", as the server wants them. */
static void number_arguments(const char *sql, char ret[STATEMENT_MAX])
{
    size_t used = 0;
    for (int n = 0; *sql; sql++) {
        assert(used < STATEMENT_MAX - 8);
        if (*sql == '?')
            used += (size_t)sprintf(ret + used, "$%d", ++n);
        else
            ret[used++] = *sql;
    }
    ret[used] = '\0';
}

db_status session_prepare(struct session *session)
{
    char text[STATEMENT_MAX];
    PGresult *last = NULL;
    Oid types[PG_ARGS_MAX];
    static_assert((int)SQL_COUNT <= (int)PG_QUEUE_MAX, "one round trip");
    for (int i = 0; i < SQL_COUNT; i++) {
        size_t n = strlen(statements[i].types);
        for (size_t j = 0; j < n; j++)
            types[j] = type_of(statements[i].types[j]);
        number_arguments(statements[i].text, text);
        if (!PQsendPrepare(session->handle, statements[i].name, text, (int)n, types))
            return session_lose(session, PQerrorMessage(session->handle));
        session->expects[session->queued++] = 0;
    }
    db_status status = read_all(session, &last);
    PQclear(last);
    return status;
}

/* -- columns ---------------------------------------------------------------------------------- */

int64_t cell_int(struct session *session, const PGresult *result, int row, int at)
{
    uint64_t number;
    if (PQgetlength(result, row, at) != (int)sizeof number) {
        session_bad_answer(session, "no bigint where one belongs");
        return 0;
    }
    memcpy(&number, PQgetvalue(result, row, at), sizeof number);
    return (int64_t)be64toh(number);
}
