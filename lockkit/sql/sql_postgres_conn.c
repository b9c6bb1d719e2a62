#include "sql_postgres.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_TEXT = 25,
    TYPE_BIGINT = 20,
    /* of pg_type.dat */ NUMBER_MAX = 24,
    SETTINGS_MAX = 1024,
    SCHEMA_MAX = 2048
};

/* pg_advisory_xact_lock: one client at a time looks for the tables and makes them. */
#define SCHEMA_LOCK "5207512903"

struct lk_pg_conn {
    const lk_pg_target *target;
    PGconn *handle;
    int64_t since_us; /* when it began to connect */
    PostgresPollingStatusType next;
    bool met;                     /* the server has accepted it */
    lk_status heard;              /* of an answer that has begun */
    int due;                      /* answers to the statements that are being prepared */
    lk_status prepared;           /* the first of them that is not LK_OK */
    bool missing;                 /* the last error: a table or schema is not there */
    char message[LK_MESSAGE_MAX]; /* why the last step failed */
};

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

static bool await(const lk_pg_conn *conn, short events, int64_t until_us)
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
static lk_status failed(lk_pg_conn *conn, lk_status status, const char *text)
{
    if (text[0] != '\0')
        snprintf(conn->message, sizeof conn->message, "%.*s", (int)strcspn(text, "\n"), text);
    return status;
}

static lk_status hung_up(lk_pg_conn *conn)
{
    return failed(conn, LK_UNKNOWN, PQerrorMessage(conn->handle));
}

static lk_status too_late(lk_pg_conn *conn, lk_status status)
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
    failed(conn, LK_UNKNOWN, PQresultErrorMessage(result));
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

/* LK_TIMEOUT: the answer has not ended, ask again. */
static lk_status receive(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg)
{
    PGconn *handle = conn->handle;
    for (;;) {
        int unsent = PQflush(handle);
        if (unsent < 0)
            return heard(conn, hung_up(conn));
        if (PQisBusy(handle)) {
            if (!await(conn, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until_us))
                return LK_TIMEOUT;
            if (!PQconsumeInput(handle))
                return heard(conn, hung_up(conn));
            continue;
        }
        PGresult *result = PQgetResult(handle);
        if (result == NULL)
            return heard(conn, PQstatus(handle) == CONNECTION_OK ? conn->heard : hung_up(conn));
        ExecStatusType kind = PQresultStatus(result);
        if (kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK) {
            conn->heard = LK_OK;
            if (each != NULL)
                give_rows(result, each, arg);
        } else {
            conn->heard = judge(conn, result);
        }
        PQclear(result);
        /* None was asked for, and libpq would tell of it for ever. */
        if (kind == PGRES_COPY_OUT || kind == PGRES_COPY_IN || kind == PGRES_COPY_BOTH)
            return heard(conn, conn->heard);
    }
}

lk_status lk_pg_receive(lk_pg_conn *conn, int64_t until_us, lk_sql_each *each, void *arg)
{
    return noted(conn, receive(conn, until_us, each, arg));
}

void lk_pg_await(lk_pg_conn *conn, int64_t until_us)
{
    int unsent = PQflush(conn->handle);
    while (unsent > 0 && await(conn, POLLIN | POLLOUT, until_us))
        unsent = PQflush(conn->handle);
    if (unsent == 0 && PQisBusy(conn->handle))
        await(conn, POLLIN, until_us);
}

/* ... of something that was just sent (PQsend... says whether). */
static lk_status finish(lk_pg_conn *conn, int sent, int64_t until_us, lk_sql_each *each, void *arg)
{
    if (!sent)
        return hung_up(conn);
    lk_status status = receive(conn, until_us, each, arg);
    return status == LK_TIMEOUT ? too_late(conn, LK_UNKNOWN) : status;
}

/* -- statements ------------------------------------------------------------------------------- */

static const char *name_of(int statement, char name[NUMBER_MAX])
{
    snprintf(name, NUMBER_MAX, "lockkit%d", statement);
    return name;
}

lk_status lk_pg_send(lk_pg_conn *conn, int statement, const lk_sql_arg *args)
{
    const char *types = conn->target->set->statements[statement].types;
    const char *values[LK_SQL_ARGS_MAX];
    char name[NUMBER_MAX], numbers[LK_SQL_ARGS_MAX][NUMBER_MAX];
    int n = 0;
    for (; types[n] != '\0'; n++) {
        snprintf(numbers[n], sizeof numbers[n], "%" PRId64, args[n].number);
        values[n] = types[n] == 't' ? args[n].text : numbers[n];
    }
    atomic_fetch_add_explicit(conn->target->context->commands, 1, memory_order_relaxed);
    if (!PQsendQueryPrepared(conn->handle, name_of(statement, name), n, values, NULL, NULL, 0) ||
        PQflush(conn->handle) < 0)
        return noted(conn, hung_up(conn));
    return LK_OK;
}

lk_status lk_pg_run(lk_pg_conn *conn, int statement, const lk_sql_arg *args, lk_sql_each *each,
                    void *arg)
{
    int64_t until_us = lk_monotonic_us() + timeout_us(conn);
    bool sent = lk_pg_send(conn, statement, args) == LK_OK;
    return noted(conn, finish(conn, sent, until_us, each, arg));
}

/* -- connecting ------------------------------------------------------------------------------- */

/* The server's notices go nowhere: what matters comes as an error. */
static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

/* too_many_connections: the server's, the database's or the role's limit. Of a connection that
 * failed there is only the text, in the server's language; but the code in it stays. */
static bool is_full(const lk_pg_conn *conn)
{
    return strstr(PQerrorMessage(conn->handle), ":  53300: ") != NULL;
}

static bool may_be_late(const lk_pg_conn *conn)
{
    return conn->met && lk_monotonic_us() - conn->since_us < LK_PG_CONNECT_MS * INT64_C(1000);
}

/* As lk_pg_connect(), without the statements, and at any age. */
static lk_status await_connection(lk_pg_conn *conn, int64_t until_us)
{
    while (conn->next != PGRES_POLLING_OK) {
        conn->met = conn->met || PQstatus(conn->handle) != CONNECTION_STARTED;
        if (!await(conn, conn->next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
            return too_late(conn, LK_TIMEOUT);
        conn->next = PQconnectPoll(conn->handle);
        if (conn->next != PGRES_POLLING_FAILED)
            continue;
        failed(conn, LK_UNAVAILABLE, PQerrorMessage(conn->handle));
        return !conn->met ? LK_UNAVAILABLE : is_full(conn) ? LK_BUSY : LK_LOST;
    }
    PQsetNoticeReceiver(conn->handle, ignore_notice, NULL);
    return PQsetnonblocking(conn->handle, 1) == 0 ? LK_OK : LK_NO_MEMORY;
}

/* The server answers a statement that takes too long before we stop listening. An open transaction
 * may be a hold, and must not be ended by a time-out of the server's; a dead holder's machine must
 * be found out, and a waiter that died must not stand in the queue. */
static int send_settings(lk_pg_conn *conn)
{
    char sql[SETTINGS_MAX];
    int64_t limit_ms = conn->target->context->options->command_timeout_ms * 3 / 4 + 1;
    const char *name[] = {"default_transaction_isolation",
                          "default_transaction_read_only",
                          "synchronous_commit",
                          "idle_in_transaction_session_timeout",
                          "tcp_keepalives_idle",
                          "tcp_keepalives_interval",
                          "tcp_keepalives_count",
                          "tcp_user_timeout",
                          "client_connection_check_interval"};
    const char *value[] = {"read committed", "off", "on", "0", "5", "2", "3", "11000", "1000"};
    int n = snprintf(sql, sizeof sql,
                     "SELECT set_config('statement_timeout', '%" PRId64 "', false), "
                     "set_config('lock_timeout', '%" PRId64 "', false), "
                     "set_config('idle_session_timeout', '%d', false)",
                     conn->target->blocks ? 0 : limit_ms, limit_ms, LK_PG_IDLE_MS);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, ", set_config('%s', '%s', false)", name[i],
                      value[i]);
    return PQsendQueryParams(conn->handle, sql, 0, NULL, NULL, NULL, NULL, 0);
}

static int send_prepare(lk_pg_conn *conn, int at)
{
    const lk_sql_statement *statement = &conn->target->set->statements[at];
    Oid types[LK_SQL_ARGS_MAX];
    char name[NUMBER_MAX];
    int n = 0;
    for (; statement->types[n] != '\0'; n++)
        types[n] = statement->types[n] == 't' ? TYPE_TEXT : TYPE_BIGINT;
    return PQsendPrepare(conn->handle, name_of(at, name), statement->text[LK_SQL_POSTGRES], n,
                         types);
}

/* Settings and statements in one round trip (PostgreSQL documentation, "libpq: Pipeline Mode"). */
static lk_status send_all(lk_pg_conn *conn)
{
    const lk_sql_set *set = conn->target->set;
    conn->missing = false;
    conn->prepared = LK_OK;
    if (!PQenterPipelineMode(conn->handle) || !send_settings(conn))
        return hung_up(conn);
    conn->due = 2; /* of the settings, and the synchronisation point */
    for (int i = 0; i < set->n; i++) {
        if (set->statements[i].text[LK_SQL_POSTGRES] == NULL)
            continue;
        if (!send_prepare(conn, i))
            return hung_up(conn);
        conn->due++;
    }
    return PQpipelineSync(conn->handle) ? LK_OK : hung_up(conn);
}

/* LK_TIMEOUT: not all is answered, call again. */
static lk_status prepare(lk_pg_conn *conn, int64_t until_us)
{
    lk_status status = conn->due == 0 ? send_all(conn) : LK_OK;
    if (status != LK_OK)
        return status;
    for (; conn->due > 0; conn->due--) {
        status = receive(conn, until_us, NULL, NULL);
        if (status == LK_TIMEOUT)
            return too_late(conn, LK_TIMEOUT);
        if (conn->due > 1 && conn->prepared == LK_OK) /* the rest is skipped after it */
            conn->prepared = status;
    }
    return PQexitPipelineMode(conn->handle) ? conn->prepared : LK_UNKNOWN;
}

/* Those that were prepared before the one that failed are there already: they go. */
static lk_status make_schema(lk_pg_conn *conn, int64_t until_us)
{
    char sql[SCHEMA_MAX];
    snprintf(sql, sizeof sql, "SELECT pg_advisory_xact_lock(" SCHEMA_LOCK "); %s; DEALLOCATE ALL",
             conn->target->set->schema[LK_SQL_POSTGRES]);
    return finish(conn, PQsendQuery(conn->handle, sql), until_us, NULL, NULL);
}

static lk_status set_up(lk_pg_conn *conn, int64_t until_us)
{
    lk_status status = prepare(conn, until_us);
    if (status == LK_OK || status == LK_TIMEOUT || !conn->missing)
        return status;
    status = make_schema(conn, until_us);
    return status == LK_OK ? prepare(conn, until_us) : status;
}

static lk_status start(const lk_pg_target *target, lk_pg_conn **ret)
{
    static const char *const keywords[] = {"application_name",
                                           "client_encoding",
                                           "gssencmode",
                                           "keepalives_idle",
                                           "keepalives_interval",
                                           "keepalives_count",
                                           "tcp_user_timeout",
                                           "dbname",
                                           NULL};
    const char *const values[] = {target->name, "UTF8",  "disable",   "5", "2",
                                  "3",          "11000", target->uri, NULL};
    lk_pg_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return LK_NO_MEMORY;
    conn->target = target;
    conn->since_us = lk_monotonic_us();
    conn->next = PGRES_POLLING_WRITING;
    conn->heard = LK_UNKNOWN;
    conn->handle = PQconnectStartParams(keywords, values, 1);
    *ret = conn;
    if (conn->handle == NULL)
        return failed(conn, LK_NO_MEMORY, "out of memory for a PostgreSQL connection");
    if (PQstatus(conn->handle) == CONNECTION_BAD)
        return failed(conn, LK_UNAVAILABLE, PQerrorMessage(conn->handle));
    PQsetErrorVerbosity(conn->handle, PQERRORS_VERBOSE); /* with the code */
    return LK_OK;
}

lk_status lk_pg_connect(const lk_pg_target *target, int64_t deadline_us, lk_pg_conn **inout)
{
    lk_status status = *inout == NULL ? start(target, inout) : LK_OK;
    lk_pg_conn *conn = *inout;
    if (status == LK_OK)
        status = await_connection(conn, deadline_us);
    bool met = status == LK_BUSY || status == LK_LOST;
    if (status == LK_OK)
        status = set_up(conn, deadline_us);
    if (status == LK_TIMEOUT && !may_be_late(conn))
        status = LK_UNAVAILABLE;
    if (status == LK_OK)
        return LK_OK;
    if (conn != NULL)
        lk_note(target->context, status == LK_TIMEOUT ? LK_UNAVAILABLE : status, "%s",
                conn->message);
    if (status == LK_TIMEOUT)
        return status;
    if (conn != NULL)
        lk_pg_disconnect(conn);
    *inout = NULL;
    if (met || status == LK_PROTOCOL || status == LK_NO_MEMORY)
        return status;
    return LK_UNAVAILABLE; /* nothing of the caller's was sent */
}

void lk_pg_disconnect(lk_pg_conn *conn)
{
    PQfinish(conn->handle);
    free(conn);
}
