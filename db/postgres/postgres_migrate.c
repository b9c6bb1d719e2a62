/* A store of an older version, moved to this one: see migration.h. */
#include "migration.h"
#include "postgres.h"

#include <stdlib.h>
#include <string.h>

enum { MIGRATE_MS = 7 * 86400 * 1000 };

/* One answer of one number. */
static db_status ask(struct session *session, const char *sql, int64_t *ret)
{
    PGresult *result = NULL;
    db_status status = session_exec(session, sql, &result);
    if (status == DB_OK && (PQntuples(result) != 1 || PQnfields(result) != 1))
        status = session_bad_answer(session, "not one number");
    if (status == DB_OK)
        *ret = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return status;
}

static db_status move_rows(struct session *session, const struct migration *migration)
{
    const char *const steps[] = {migration->set_aside,
                                 postgres_schema_sql,
                                 "INSERT INTO seckill_schema VALUES (" SCHEMA_VERSION_TEXT ")",
                                 migration->copy,
                                 migration->copy_ledger,
                                 migration->finish,
                                 "COMMIT"};
    db_status status = DB_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == DB_OK; i++)
        status = session_exec(session, steps[i], NULL);
    return status;
}

/* Without the commit. */
static db_status change_in_place(struct session *session, const struct migration *migration)
{
    db_status status = session_exec(session, migration->in_place, NULL);
    return status == DB_OK
               ? session_exec(session, "UPDATE seckill_schema SET version = " SCHEMA_VERSION_TEXT,
                              NULL)
               : status;
}

static db_status make_index(struct session *session, bool *ret_made)
{
    db_status status = session_exec(session, schema_refusals_sql, NULL);
    *ret_made = status == DB_OK;
    return status;
}

/* The advisory lock keeps out an instance that starts. The lock of each table waits for the open
 * transactions of running instances. Their later transactions find other tables. */
static db_status migrate(struct session *session, db_versions *ret, db_error *error)
{
    int64_t ours = 0, version = 0, indexed = 0, others = 0;
    db_status status =
        session_exec(session,
                     "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;"
                     " SELECT pg_advisory_xact_lock(" SCHEMA_LOCK ")",
                     NULL);
    if (status == DB_OK)
        status = ask(session, "SELECT count(to_regclass('seckill_schema'))", &ours);
    if (status == DB_OK && ours == 0)
        return db_fail(error, DB_INVALID, "PostgreSQL: not a database of this service");
    if (status == DB_OK)
        status = ask(session, "SELECT version FROM seckill_schema", &version);
    if (status == DB_OK)
        status = ask(session, "SELECT count(to_regclass('" SCHEMA_REFUSALS "'))", &indexed);
    if (status == DB_OK)
        status = ask(session,
                     "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                     " AND application_name = 'seckilld' AND pid <> pg_backend_pid()",
                     &others);
    if (status != DB_OK)
        return status;
    ret->from = version;
    if (version == SCHEMA_VERSION && indexed > 0)
        return DB_OK;
    const struct migration *migration = postgres_migration(version);
    if (migration == NULL && version != SCHEMA_VERSION)
        return db_fail(error, DB_INVALID,
                       "PostgreSQL: schema version %lld; this program knows 1 to %d",
                       (long long)version, SCHEMA_VERSION);
    if (others > 0)
        return db_fail(error, DB_UNAVAILABLE,
                       "PostgreSQL: %lld connections of seckilld are open; stop all instances",
                       (long long)others);
    if (migration != NULL && migration->in_place == NULL)
        return move_rows(session, migration);
    if (migration != NULL)
        status = change_in_place(session, migration);
    if (status == DB_OK && indexed == 0)
        status = make_index(session, &ret->index_made);
    return status == DB_OK ? session_exec(session, "COMMIT", NULL) : status;
}

/* The transaction ends with the connection. If the answer to COMMIT was lost, the next call tells.
 */
db_status pg_migrate(const char *address, db_versions *ret, db_error *error)
{
    struct pg_store store = {.options = {.busy_ms = PG_READ_MS}};
    struct session *session = NULL;
    db_status status = pg_target_parse(address, &store.target, error);
    if (status == DB_OK)
        status = session_connect(&store, &session, error);
    if (status != DB_OK)
        return status;
    session->answer_ms = MIGRATE_MS;
    status = migrate(session, ret, error);
    if (session->trouble.status != DB_OK)
        status = db_fail(error, session->trouble.status, "%s", session->trouble.message);
    session_close(session);
    return status;
}
