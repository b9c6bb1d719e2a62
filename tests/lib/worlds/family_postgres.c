/* One PostgreSQL, and the guards whose locks are rows or sessions. */
#include "lock_world.h"

#include <assert.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_TABLE  "42P01" /* SQLSTATE */
#define NO_SCHEMA "3F000"

struct sandbox_server *world_postgres;

static const char *const guards[] = {"sql-unique", "sql-unique-forever", "pg-advisory",
                                     "pg-advisory-xact", NULL};

static bool start(struct sandbox *sandbox)
{
    /* Tests use all guards at once; some need a connection for each contender. */
    static const char *const roomy[] = {"-c", "max_connections=250", NULL};
    world_postgres = sandbox_postgres(sandbox, roomy);
    return world_postgres != NULL;
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    snprintf(ret, size, "postgres://postgres@127.0.0.1:%d/postgres",
             proxy_port != 0 ? proxy_port : world_postgres->port);
}

static int port(void)
{
    return world_postgres->port;
}

static struct sandbox_server *server(size_t i)
{
    return i == 0 ? world_postgres : NULL;
}

int64_t world_sql(const char *sql, const char *key)
{
    PGconn *handle = PQconnectdb(world_postgres->url);
    PGresult *result =
        key != NULL ? PQexecParams(handle, sql, 1, NULL, &key, NULL, NULL, 0) : PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    int64_t answer = 0;
    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
        answer = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    else if (status == PGRES_FATAL_ERROR)
        answer = code != NULL && (strcmp(code, NO_TABLE) == 0 || strcmp(code, NO_SCHEMA) == 0)
                     ? 0
                     : INT64_MIN;
    if (answer == INT64_MIN)
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(handle));
    PQclear(result);
    PQfinish(handle);
    return answer;
}

static void wipe(void)
{
    world_sql("TRUNCATE lockkit.locks, lockkit.rows", NULL);
}

#define LEFT_MS "until_ms - (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
#define ADVISORY                                                                                   \
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND "                  \
    "(classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)"
#define HELD "token IS NOT NULL AND " LEFT_MS " > 0"

static bool exists(const char *key)
{
    return world_sql("SELECT 1 FROM lockkit.locks WHERE key = $1 AND " HELD, key) == 1 ||
           world_sql("SELECT 1 FROM lockkit.rows WHERE key = $1", key) == 1 ||
           world_sql("SELECT count(*) " ADVISORY, key) != 0;
}

static bool remove_lock(const char *key)
{
    return world_sql("UPDATE lockkit.locks SET token = NULL WHERE key = $1 AND " HELD
                     " RETURNING 1",
                     key) == 1 ||
           world_sql("DELETE FROM lockkit.rows WHERE key = $1 RETURNING 1", key) == 1 ||
           world_sql("SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 5000)) " ADVISORY,
                     key) != 0;
}

static int64_t left_ms(const char *key)
{
    int64_t left = world_sql("SELECT " LEFT_MS " FROM lockkit.locks WHERE key = $1 AND " HELD, key);
    return left == 0 ? -1 : left;
}

static int64_t leftovers(void)
{
    return world_sql("SELECT count(*) FROM lockkit.locks WHERE token IS NOT NULL", NULL) +
           world_sql("SELECT count(*) FROM lockkit.rows", NULL) +
           world_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", NULL);
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    return (guard->caps & LK_CAP_SESSION) != 0 ? 0 : lease_ms; /* a session ends at once */
}

const struct lock_family family_postgres = {
    .name = "postgres",
    .guards = guards,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .server = server,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
