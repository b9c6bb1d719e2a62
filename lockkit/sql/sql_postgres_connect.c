/* Makes a connection to PostgreSQL: session, settings, prepared statements, tables. */
#include "sql_postgres_rep.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_TEXT = 25, /* of pg_type.dat */
    TYPE_BIGINT = 20,
    SETTINGS_MAX = 1024,
    SCHEMA_MAX = 2048
};

/* pg_advisory_xact_lock: one client at a time looks for the tables and makes them. */
#define SCHEMA_LOCK "5207512903"

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
        if (!lk_pg_wait(conn, conn->next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
            return lk_pg_too_late(conn, LK_TIMEOUT);
        conn->next = PQconnectPoll(conn->handle);
        if (conn->next != PGRES_POLLING_FAILED)
            continue;
        lk_pg_failed(conn, LK_UNAVAILABLE, PQerrorMessage(conn->handle));
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
    char name[LK_PG_NUMBER_MAX];
    int n = 0;
    for (; statement->types[n] != '\0'; n++)
        types[n] = statement->types[n] == 't' ? TYPE_TEXT : TYPE_BIGINT;
    return PQsendPrepare(conn->handle, lk_pg_statement_name(at, name),
                         statement->text[LK_SQL_POSTGRES], n, types);
}

/* Settings and statements in one round trip (PostgreSQL documentation, "libpq: Pipeline Mode"). */
static lk_status send_all(lk_pg_conn *conn)
{
    const lk_sql_set *set = conn->target->set;
    conn->missing = false;
    conn->prepared = LK_OK;
    if (!PQenterPipelineMode(conn->handle) || !send_settings(conn))
        return lk_pg_hung_up(conn);
    conn->due = 2; /* of the settings, and the synchronisation point */
    for (int i = 0; i < set->n; i++) {
        if (set->statements[i].text[LK_SQL_POSTGRES] == NULL)
            continue;
        if (!send_prepare(conn, i))
            return lk_pg_hung_up(conn);
        conn->due++;
    }
    return PQpipelineSync(conn->handle) ? LK_OK : lk_pg_hung_up(conn);
}

/* LK_TIMEOUT: not all is answered, call again. */
static lk_status prepare(lk_pg_conn *conn, int64_t until_us)
{
    lk_status status = conn->due == 0 ? send_all(conn) : LK_OK;
    if (status != LK_OK)
        return status;
    for (; conn->due > 0; conn->due--) {
        status = lk_pg_answer(conn, until_us, NULL, NULL);
        if (status == LK_TIMEOUT)
            return lk_pg_too_late(conn, LK_TIMEOUT);
        if (conn->due > 1 && conn->prepared == LK_OK) /* the rest is skipped after it */
            conn->prepared = status;
    }
    return PQexitPipelineMode(conn->handle) ? conn->prepared : LK_UNKNOWN;
}

/* DEALLOCATE: the statements before the failed one are prepared already. They are prepared again.
 */
static lk_status make_schema(lk_pg_conn *conn, int64_t until_us)
{
    char sql[SCHEMA_MAX];
    snprintf(sql, sizeof sql, "SELECT pg_advisory_xact_lock(" SCHEMA_LOCK "); %s; DEALLOCATE ALL",
             conn->target->set->schema[LK_SQL_POSTGRES]);
    return lk_pg_finish(conn, PQsendQuery(conn->handle, sql), until_us, NULL, NULL);
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
        return lk_pg_failed(conn, LK_NO_MEMORY, "out of memory for a PostgreSQL connection");
    if (PQstatus(conn->handle) == CONNECTION_BAD)
        return lk_pg_failed(conn, LK_UNAVAILABLE, PQerrorMessage(conn->handle));
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
