/* One server process: messages in, answers out, transactions begin and end. */
#include "schema.h"
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIRE_US = 100,
    FLUSH_US = 400,
    SLOW_US = 6000000, /* at most */
    EOF_US = 3000000,  /* until a lost connection is noticed, at most */
};

/* -- waiting ----------------------------------------------------------------------------------- */

bool pg_is_dead(const struct pg_backend *backend)
{
    return backend->era != pg_server.era;
}

static bool must_end(struct pg_backend *backend)
{
    if (!backend->terminate)
        return false;
    backend->failure.code[0] = '\0';
    backend->failure.severity = "FATAL";
    pg_fail(backend, "57P01", "terminating connection due to administrator command");
    return true;
}

bool pg_pause(struct pg_backend *backend, int64_t us)
{
    const int64_t until_us = sim_now_us() + us;
    while (sim_now_us() < until_us && !pg_is_dead(backend) && !backend->terminate)
        sim_wait(backend, until_us);
    return !pg_is_dead(backend) && !must_end(backend);
}

/* Until then, whatever is asked of it: only a crash ends it. */
static bool pause_uninterrupted(struct pg_backend *backend, int64_t us)
{
    const int64_t until_us = sim_now_us() + us;
    while (sim_now_us() < until_us && !pg_is_dead(backend))
        sim_wait(backend, until_us);
    return !pg_is_dead(backend);
}

/* -- transactions ------------------------------------------------------------------------------ */

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

static void end_transaction(struct pg_backend *backend, bool committed)
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

/* The commit record goes to the disk, then others see it. Not interrupted, and if the server
 * crashes, it is on the disk or not. False: crashed. */
static bool commit(struct pg_backend *backend)
{
    if (backend->xid > 0 && !backend->async_commit) {
        backend->committing = true;
        int64_t us = FLUSH_US + sim_below(FLUSH_US);
        if (sim_one_in(pg_server.faults.slow)) {
            us += sim_below(SLOW_US);
            sim_tell("commit of transaction %lld takes %lld ms", (long long)backend->xid,
                     (long long)us / 1000);
        }
        if (!pause_uninterrupted(backend, us))
            return false;
        backend->committing = false;
    }
    end_transaction(backend, true);
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
        if (pg_is_dead(backend) || must_end(backend))
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

/* NULL: crashed. */
static PGresult *run_other(struct pg_backend *backend, const char *text)
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
        if (!commit(backend))
            return NULL;
    } else if (strcmp(text, "COMMIT") == 0 || strcmp(text, "ROLLBACK") == 0) {
        end_transaction(backend, false);
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

/* -- one statement ----------------------------------------------------------------------------- */

static bool ends_block(const char *text)
{
    return strcmp(text, "COMMIT") == 0 || strcmp(text, "ROLLBACK") == 0;
}

/* The connection breaks while a statement is under way: before it arrives, or after. */
static void cut(struct pg_backend *backend)
{
    struct pg_conn *conn = backend->conn;
    if (conn->broken)
        return;
    sim_tell("the connection of server process %lld breaks", (long long)backend->pid);
    sim_count(SIM_PG_CUT);
    conn->broken = true;
    pg_break(conn);
}

static void free_message(struct pg_message *message)
{
    for (int i = 0; i < message->n; i++)
        free((char *)message->args[i].bytes);
    free(message);
}

static void lose_messages(struct pg_conn *conn)
{
    for (struct pg_message *message; (message = conn->messages) != NULL;) {
        conn->messages = message->next;
        free_message(message);
    }
    conn->messages_end = &conn->messages;
    conn->eof = true;
}

/* NULL: crashed, or its connection was cut before the statement arrived. */
static PGresult *run(struct pg_backend *backend, const struct pg_message *message, bool binary)
{
    const char *text = message->sql->text;
    const bool is_commit = strcmp(text, "COMMIT") == 0 && backend->xid > 0;
    backend->begun_us = sim_now_us();
    if (sim_one_in(is_commit ? pg_server.faults.cut_commit : pg_server.faults.cut)) {
        cut(backend);
        if (sim_one_in(3)) { /* it never arrives, which the server notices some time later */
            lose_messages(backend->conn);
            pg_pause(backend, sim_below(EOF_US));
            return NULL;
        }
        if (sim_one_in(2) && !pg_pause(backend, sim_below(EOF_US)))
            return NULL; /* it arrives late */
    }
    if (!is_commit && sim_one_in(pg_server.faults.slow) && !pg_pause(backend, sim_below(SLOW_US)))
        return NULL;
    if (backend->failed && !ends_block(text)) {
        pg_fail(backend, "25P02", "current transaction is aborted");
        return NULL;
    }
    if (message->sql->kind == PG_OTHER)
        return run_other(backend, text);
    return pg_run_sql(backend, message->sql, message->types, message->args, message->n, binary);
}

static const struct pg_failure no_failure = {.severity = NULL};

/* Runs it and answers. False: an error; the rest up to the next point is skipped. */
static bool run_and_answer(struct pg_backend *backend, struct pg_message *message, bool binary)
{
    backend->failure = no_failure;
    PGresult *result = run(backend, message, binary);
    if (pg_is_dead(backend) || (!result && backend->failure.code[0] == '\0')) {
        PQclear(result);
        return false;
    }
    if (backend->failure.code[0] == '\0' && message->alone && !backend->in_block &&
        !commit(backend)) {
        PQclear(result);
        return false;
    }
    if (backend->failure.code[0] == '\0') {
        pg_answer(backend->conn, result);
        pg_answer(backend->conn, NULL);
        return true;
    }
    PQclear(result);
    const bool in_block = backend->in_block;
    if (!in_block || strcmp(backend->failure.severity, "ERROR") != 0)
        end_transaction(backend, false);
    else if (!backend->failed) { /* its changes are undone and its locks are free at once */
        end_transaction(backend, false);
        backend->in_block = backend->failed = true;
    }
    pg_answer(backend->conn, pg_error_result(&backend->failure));
    pg_answer(backend->conn, NULL);
    return false;
}

/* -- messages ---------------------------------------------------------------------------------- */

/* NULL: no more will come, or the process must end. */
static struct pg_message *next_message(struct pg_backend *backend)
{
    struct pg_conn *conn = backend->conn;
    const int64_t idle_us = sim_now_us() + backend->idle_timeout_ms * 1000;
    const bool waits = conn->messages == NULL;
    while (!conn->messages && !conn->eof && !backend->terminate && !pg_is_dead(backend)) {
        const bool limited = backend->in_block && backend->idle_timeout_ms > 0;
        sim_wait(backend, limited ? idle_us : SIM_FOREVER);
        if (limited && sim_now_us() >= idle_us && !conn->messages) {
            backend->failure = no_failure;
            backend->failure.severity = "FATAL";
            pg_fail(backend, "25P03", "terminating connection due to idle-in-transaction timeout");
            return NULL;
        }
    }
    if (waits && !backend->terminate)
        pause_uninterrupted(backend, sim_below(WIRE_US));
    if (pg_is_dead(backend) || must_end(backend) || !conn->messages)
        return NULL;
    struct pg_message *message = conn->messages;
    conn->messages = message->next;
    if (!conn->messages)
        conn->messages_end = &conn->messages;
    return message;
}

static void keep_prepared(struct pg_backend *backend, const struct pg_message *message)
{
    backend->prepared =
        realloc(backend->prepared, (backend->n_prepared + 1) * sizeof *backend->prepared);
    if (!backend->prepared)
        abort();
    size_t i = backend->n_prepared++;
    snprintf(backend->prepared[i].name, sizeof backend->prepared[i].name, "%s", message->name);
    memcpy(backend->prepared[i].types, message->types, sizeof message->types);
    backend->prepared[i].sql = message->sql;
}

static void find_prepared(const struct pg_backend *backend, struct pg_message *message)
{
    size_t i = 0;
    while (strcmp(backend->prepared[i].name, message->name) != 0)
        if (++i == backend->n_prepared)
            abort();
    message->sql = backend->prepared[i].sql;
    memcpy(message->types, backend->prepared[i].types, sizeof message->types);
}

/* One message. skip: an error came since the last point. */
static void serve(struct pg_backend *backend, struct pg_message *message, bool *skip)
{
    if (message->kind == PG_SYNC) {
        *skip = false;
        if (!backend->in_block && !commit(backend))
            return;
        pg_answer(backend->conn, PQmakeEmptyPGresult(NULL, PGRES_PIPELINE_SYNC));
    } else if (*skip) {
        pg_answer(backend->conn, PQmakeEmptyPGresult(NULL, PGRES_PIPELINE_ABORTED));
        pg_answer(backend->conn, NULL);
    } else if (message->kind == PG_PREPARE && strstr(message->sql->text, "lockkit.") &&
               !pg_server.lock_tables) {
        backend->failure = no_failure;
        pg_fail(backend, "42P01", "relation does not exist");
        pg_answer(backend->conn, pg_error_result(&backend->failure));
        pg_answer(backend->conn, NULL);
        *skip = true;
    } else if (message->kind == PG_PREPARE) {
        keep_prepared(backend, message);
        pg_answer(backend->conn, pg_result(0));
        pg_answer(backend->conn, NULL);
    } else if (message->kind == PG_QUERY) {
        if (run_and_answer(backend, message, false) && !backend->in_block)
            commit(backend);
    } else {
        if (!message->sql)
            find_prepared(backend, message);
        *skip = !run_and_answer(backend, message, !message->in_text) && !message->alone;
    }
}

void *pg_backend_live(void *arg)
{
    struct pg_backend *backend = arg;
    struct pg_message *message;
    bool skip = false;
    while (!pg_is_dead(backend) && (message = next_message(backend)) != NULL) {
        serve(backend, message, &skip);
        free_message(message);
        if (backend->failure.severity && strcmp(backend->failure.severity, "FATAL") == 0)
            break;
    }
    if (!pg_is_dead(backend)) {
        if (backend->failure.severity && strcmp(backend->failure.severity, "FATAL") == 0)
            pg_answer(backend->conn, pg_error_result(&backend->failure));
        end_transaction(backend, false);
    }
    pg_server_leave(backend);
    return NULL;
}
