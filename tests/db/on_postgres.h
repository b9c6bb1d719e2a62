/*
 * Runs the tests of the store on PostgreSQL: one private server for a group of tests, emptied for
 * each test, with direct access to it.
 */
#ifndef TESTS_DB_ON_POSTGRES_H
#define TESTS_DB_ON_POSTGRES_H

#include "sandbox.h"
#include "tests.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sandbox *pg_sandbox;
static struct sandbox_server *pg_server; /* NULL: the tests run on SQLite */

static inline int pg_start(void **state)
{
    (void)state;
    if (sandbox_open(&pg_sandbox) == 0)
        pg_server = sandbox_postgres(pg_sandbox, NULL);
    return pg_server ? 0 : -1;
}

static inline int pg_stop(void **state)
{
    (void)state;
    sandbox_close(pg_sandbox);
    pg_sandbox = NULL;
    pg_server = NULL;
    return 0;
}

static inline PGconn *pg_connect(const char *url)
{
    PGconn *handle = PQconnectdb(url);
    if (PQstatus(handle) != CONNECTION_OK)
        fail_msg("%s: %s", url, PQerrorMessage(handle));
    return handle;
}

/* One value as text; the caller frees it. Fails the test on an error. */
static inline char *pg_value(const char *url, const char *sql)
{
    PGconn *handle = pg_connect(url);
    PGresult *result = PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(handle));
    char *value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(handle);
    return value;
}

static inline void pg_sql(const char *url, const char *sql)
{
    free(pg_value(url, sql));
}

static inline int64_t pg_sql_int(const char *url, const char *sql)
{
    char *value = pg_value(url, sql);
    int64_t number = strtoll(value, NULL, 10);
    free(value);
    return number;
}

/* True if the server refuses this statement. */
static inline bool pg_sql_fails(const char *url, const char *sql)
{
    PGconn *handle = pg_connect(url);
    PGresult *result = PQexec(handle, sql);
    bool fails = PQresultStatus(result) == PGRES_FATAL_ERROR;
    PQclear(result);
    PQfinish(handle);
    return fails;
}

/* Empties the group's database and returns its URL. */
static inline void pg_empty_database(char *ret_url, size_t size)
{
    pg_sql(pg_server->url, "SET client_min_messages = warning;"
                           "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    assert_true(strlen(pg_server->url) < size);
    strcpy(ret_url, pg_server->url);
}

/* Lines for tests/store_table.sh. */
static inline int on_sqlite(void **state)
{
    (void)state;
    puts("engine: SQLite");
    return 0;
}

static inline int on_postgres(void **state)
{
    puts("engine: PostgreSQL");
    return pg_start(state);
}

/* The tests below this line run on these engines. */
#define ON_POSTGRES TEST_GROUP("on PostgreSQL", on_postgres, pg_stop)
#define ON_BOTH_ENGINES                                                                            \
    TEST_GROUP("on SQLite", on_sqlite, NULL);                                                      \
    ON_POSTGRES

#endif
