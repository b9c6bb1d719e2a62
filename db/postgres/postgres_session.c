/* One connection: connecting, its settings, the schema, the prepared statements. */
#include "postgres.h"
#include "schema.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MAX = 512 };

/* Drops the server's notices: problems come as errors. */
static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

/* The URL overrides all of these. */
static void start(struct session *session, const char *uri)
{
    static const char *const keywords[] = {
        "application_name", "client_encoding", "gssencmode", "keepalives_idle",
        "tcp_user_timeout", "dbname",          NULL};
    const char *const values[] = {"seckilld", "UTF8", "disable", "5", "5000", uri, NULL};
    session->handle = PQconnectStartParams(keywords, values, 1);
    if (!session->handle)
        session_lose(session, "out of memory");
    else /* a refused connection then has its SQLSTATE */
        PQsetErrorVerbosity(session->handle, PQERRORS_VERBOSE);
}

static void await_connection(struct session *session)
{
    int64_t deadline_us = db_now_us() + PG_CONNECT_MS * 1000;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    if (!session->lost && PQstatus(session->handle) == CONNECTION_BAD)
        session_refused(session);
    while (!session->lost && next != PGRES_POLLING_OK) {
        if (!session_wait(session, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us))
            session_lose(session, "no connection in time; taken for dead");
        else if ((next = PQconnectPoll(session->handle)) == PGRES_POLLING_FAILED)
            session_refused(session);
    }
}

/* The transaction of a stopped process must not keep rows locked for ever. */
static void set_limits(struct session *session, const struct pg_store *store)
{
    char sql[SETTINGS_MAX];
    int64_t busy_ms = store->options.busy_ms;
    snprintf(sql, sizeof sql,
             "SET lock_timeout = %" PRId64 "; SET statement_timeout = %" PRId64
             "; SET idle_in_transaction_session_timeout = %" PRId64
             "; SET synchronous_commit = %s; SET default_transaction_isolation = '%s'",
             busy_ms, busy_ms + PG_READ_MS, 2 * (busy_ms + PG_READ_MS),
             store->options.sync == DB_SYNC_FULL ? "on" : "off", store->target.isolation);
    session_exec(session, sql, NULL);
}

/* Accepts an empty schema, or ours of this version. Other schemas are not touched. */
static db_status judge_schema(struct session *session, const PGresult *found, bool *ret_empty,
                              db_error *error)
{
    if (PQntuples(found) != 1 || PQnfields(found) != 3)
        return session_bad_answer(session, "no description of its schema");
    const char *schema = PQgetvalue(found, 0, 0);
    bool ours = strcmp(PQgetvalue(found, 0, 1), "1") == 0;
    bool empty = strcmp(PQgetvalue(found, 0, 2), "0") == 0;
    PGresult *version = NULL;
    if (schema[0] == '\0')
        return db_fail(error, DB_INVALID,
                       "PostgreSQL: search_path names no schema that exists; create one");
    *ret_empty = empty;
    if (empty)
        return DB_OK;
    if (!ours)
        return db_fail(error, DB_INVALID,
                       "PostgreSQL: schema \"%.60s\" is in use, but not by this service; give a "
                       "database of its own",
                       schema);
    db_status status = session_exec(session, "SELECT version FROM seckill_schema", &version);
    if (status != DB_OK)
        return status;
    const char *number = PQntuples(version) == 1 ? PQgetvalue(version, 0, 0) : "?";
    if (strcmp(number, SCHEMA_VERSION_TEXT) != 0)
        status = db_fail(error, DB_INVALID,
                         "PostgreSQL: schema version %.20s, but this program needs %s; if that is "
                         "newer, stop all instances and run \"seckilld migrate\"",
                         number, SCHEMA_VERSION_TEXT);
    PQclear(version);
    return status;
}

/* At "read committed". Above it the transaction's snapshot is older than its lock: an instance that
 * has waited for another one would not see the tables which that one has created. */
static db_status setup_schema(struct session *session, bool existing, db_error *error)
{
    PGresult *found = NULL;
    bool empty = false;
    db_status status =
        session_exec(session,
                     "BEGIN ISOLATION LEVEL READ COMMITTED;"
                     "SELECT pg_advisory_xact_lock(" SCHEMA_LOCK ");"
                     "SELECT current_schema(), count(*) FILTER (WHERE relname = 'seckill_schema'),"
                     " count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
                     " AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')",
                     &found);
    if (status == DB_OK)
        status = judge_schema(session, found, &empty, error);
    PQclear(found);
    if (status == DB_OK && empty && existing)
        return db_fail(error, DB_INVALID, "PostgreSQL: there is no store; check --db");
    if (status == DB_OK && empty &&
        (status = session_exec(session, postgres_schema_sql, NULL)) == DB_OK)
        status = session_exec(session,
                              "INSERT INTO seckill_schema VALUES (" SCHEMA_VERSION_TEXT ")", NULL);
    return status == DB_OK ? session_exec(session, "COMMIT", NULL) : status;
}

/* Reads the id and the start time of this connection's server process, and the server's clock: as
 * of the middle between question and answer. */
static db_status learn_backend(struct session *session)
{
    PGresult *result = NULL;
    int64_t asked_us = db_now_us();
    db_status status = session_ask(session, SQL_BACKEND, NULL, 0, &result);
    int64_t middle_us = asked_us + (db_now_us() - asked_us) / 2;
    if (status == DB_NOT_FOUND)
        status = session_bad_answer(session, "no entry of pg_stat_activity for this connection");
    if (status == DB_OK) {
        session->backend = cell_int(session, result, 0, 0);
        session->backend_start_us = cell_int(session, result, 0, 1);
        session->clock_us = cell_int(session, result, 0, 2) - middle_us;
        status = session->trouble.status;
    }
    PQclear(result);
    return status;
}

db_status session_connect(const struct pg_store *store, struct session **ret, db_error *error)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return db_fail(error, DB_FAILED, "out of memory");
    session->answer_ms = store->options.busy_ms + PG_READ_MS + PG_ANSWER_SLACK_MS;
    start(session, store->target.uri);
    await_connection(session);
    if (session->trouble.status == DB_OK) {
        PQsetNoticeReceiver(session->handle, ignore_notice, NULL);
        if (PQsetnonblocking(session->handle, 1) != 0)
            session_lose(session, PQerrorMessage(session->handle));
        set_limits(session, store);
    }
    if (session->trouble.status == DB_OK) {
        *ret = session;
        return DB_OK;
    }
    db_status status = db_fail(error, session->trouble.status, "%s", session->trouble.message);
    session_close(session);
    return status;
}

db_status session_open(const struct pg_store *store, bool with_schema, struct session **ret,
                       db_error *error)
{
    struct session *session = NULL;
    db_status status = session_connect(store, &session, error);
    if (status != DB_OK)
        return status;
    if (with_schema)
        status = setup_schema(session, store->options.existing, error);
    if (status == DB_OK && PQenterPipelineMode(session->handle))
        status = session_prepare(session);
    if (status == DB_OK)
        status = learn_backend(session);
    if (status == DB_OK && session->trouble.status == DB_OK) {
        *ret = session;
        return DB_OK;
    }
    if (session->trouble.status != DB_OK)
        status = db_fail(error, session->trouble.status, "%s", session->trouble.message);
    session_close(session);
    return status;
}

void session_close(struct session *session)
{
    PQfinish(session->handle);
    gather_free(&session->gather);
    free(session);
}
