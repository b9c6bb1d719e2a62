/* The transactions of a server process, and the statements that are not about rows: BEGIN, COMMIT,
 * ROLLBACK, settings, the setup of the schema. */
#include "schema.h"
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_US = 400 };

static void show_xid(const struct pg_backend *backend)
{
    char sql[128];
    snprintf(sql, sizeof sql, "UPDATE pg_stat_activity SET backend_xid = %s WHERE pid = %lld",
             backend->xid ? "own_xid()" : "NULL", (long long)backend->pid);
    if (sqlite3_exec(pg_rows(), sql, NULL, NULL, NULL) != SQLITE_OK)
        abort();
}

int64_t pg_backend_xid(struct pg_backend *backend)
{
    if (backend->xid == 0) {
        backend->xid = pg_new_xid();
        pg_look(backend, NULL);
        show_xid(backend);
    }
    return backend->xid;
}

void pg_end_transaction(struct pg_backend *backend, bool committed)
{
    const int64_t xid = backend->xid;
    if (xid > 0) {
        pg_set_xid_state(xid, committed ? XID_COMMITTED : XID_ABORTED);
        backend->xid = 0;
        show_xid(backend);
        pg_unlock_all(xid);
        if (backend->conn->closed || backend->conn->broken)
            sim_count(committed ? SIM_PG_LATE_COMMIT : SIM_PG_LATE_ROLLBACK);
    }
    if (committed && backend->schema_version > 0)
        pg_server.schema_version = backend->schema_version;
    if (committed && backend->makes_lock_tables)
        pg_server.lock_tables = true;
    pg_advisory_end_transaction(backend);
    if (pg_server.setup == backend) {
        pg_server.setup = NULL;
        sim_wake(&pg_server.setup, INT32_MAX);
    }
    backend->in_block = backend->failed = backend->snapshot_kept = false;
    backend->tx_repeatable = backend->repeatable;
    backend->schema_version = 0;
    backend->makes_lock_tables = false;
}

bool pg_commit(struct pg_backend *backend)
{
    if (backend->xid > 0 && !backend->async_commit) {
        backend->committing = true;
        int64_t us = FLUSH_US + sim_below(FLUSH_US);
        if (sim_one_in(pg_server.faults.slow)) {
            us += sim_below(PG_SLOW_US);
            sim_tell("commit of transaction %lld takes %lld ms", (long long)backend->xid,
                     (long long)us / 1000);
        }
        if (!pg_pause_uninterrupted(backend, us))
            return false;
        backend->committing = false;
    }
    pg_end_transaction(backend, true);
    return true;
}

/* -- statements that are not about rows -------------------------------------------------------- */

static int64_t setting(const char *text, const char *name, int64_t otherwise)
{
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : otherwise;
}

static void set(struct pg_backend *backend, const char *text)
{
    backend->lock_timeout_ms = setting(text, "SET lock_timeout = ", 0);
    backend->statement_timeout_ms = setting(text, "SET statement_timeout = ", 0);
    backend->idle_timeout_ms = setting(text, "SET idle_in_transaction_session_timeout = ", 0);
    backend->async_commit = strstr(text, "synchronous_commit = off") != NULL;
    backend->repeatable = strstr(text, "isolation = 'repeatable read'") != NULL;
    backend->tx_repeatable = backend->repeatable;
}

/* The same of lockkit, in one query: 'lock_timeout', '1500' ... */
static void set_config(struct pg_backend *backend, const char *text)
{
    backend->lock_timeout_ms = setting(text, "'lock_timeout', '", 0);
    backend->statement_timeout_ms = setting(text, "'statement_timeout', '", 0);
    backend->idle_timeout_ms = setting(text, "'idle_in_transaction_session_timeout', '", 0);
    backend->async_commit = strstr(text, "'synchronous_commit', 'on'") == NULL;
    backend->repeatable = strstr(text, "_isolation', 'read committed'") == NULL;
    backend->tx_repeatable = backend->repeatable;
}

/* The block that sets the schema up: takes the advisory lock, and tells what is there. */
static PGresult *begin_setup(struct pg_backend *backend)
{
    backend->in_block = true;
    backend->tx_repeatable = false;
    while (pg_server.setup && pg_server.setup != backend) {
        sim_wait(&pg_server.setup, sim_now_us() + 100000);
        if (pg_is_dead(backend) || pg_must_end(backend))
            return pg_result(0);
    }
    pg_server.setup = backend;
    char none[] = "0", ours[] = "1", schema[] = "public";
    char *there = pg_server.schema_version > 0 ? ours : none;
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[3] = {{.name = none}, {.name = none}, {.name = none}};
    PQsetResultAttrs(result, 3, columns);
    PQsetvalue(result, 0, 0, schema, 6);
    PQsetvalue(result, 0, 1, there, 1);
    PQsetvalue(result, 0, 2, there, 1);
    return result;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void store_version(int version)
{
    char sql[96];
    snprintf(sql, sizeof sql, "DELETE FROM seckill_schema; INSERT INTO seckill_schema VALUES (%d)",
             version);
    sqlite3_exec(pg_rows(), sql, NULL, NULL, NULL);
}

PGresult *pg_run_other(struct pg_backend *backend, const char *text)
{
    static const char insert_version[] = "INSERT INTO seckill_schema VALUES (";
    static const char make_lock_tables[] =
        "SELECT pg_advisory_xact_lock(5207512903); CREATE SCHEMA IF NOT EXISTS lockkit;";
    if (begins(text, "BEGIN ISOLATION LEVEL READ COMMITTED;SELECT pg_advisory_xact_lock("))
        return begin_setup(backend);
    if (strcmp(text, "BEGIN READ WRITE") == 0) {
        backend->in_block = true;
        backend->tx_repeatable = backend->repeatable;
    } else if (strcmp(text, "BEGIN") == 0) {
        backend->in_block = true;
    } else if (begins(text, "SELECT set_config(")) {
        set_config(backend, text);
    } else if (begins(text, make_lock_tables)) {
        backend->makes_lock_tables = true;
        backend->n_prepared = 0; /* DEALLOCATE ALL */
    } else if (strcmp(text, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") == 0) {
        backend->in_block = true;
        backend->tx_repeatable = false;
    } else if (strcmp(text, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") == 0) {
        backend->in_block = backend->tx_repeatable = true;
    } else if (strcmp(text, "COMMIT") == 0 && !backend->failed) {
        if (!pg_commit(backend))
            return NULL;
    } else if (strcmp(text, "COMMIT") == 0 || strcmp(text, "ROLLBACK") == 0) {
        pg_end_transaction(backend, false);
    } else if (begins(text, "SET lock_timeout = ")) {
        set(backend, text);
    } else if (begins(text, insert_version)) {
        backend->schema_version = atoi(text + sizeof insert_version - 1);
        store_version(backend->schema_version);
    } else if (strcmp(text, postgres_schema_sql) != 0) {
        fprintf(stderr, "the model of PostgreSQL does not know: %s\n", text);
        abort();
    }
    return pg_result(0);
}
