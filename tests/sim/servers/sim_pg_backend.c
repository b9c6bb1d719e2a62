/* One server process: messages in, answers out. */
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIRE_US = 100,
    EOF_US = 3000000, /* until a lost connection is noticed, at most */
};

/* -- waiting ----------------------------------------------------------------------------------- */

bool pg_is_dead(const struct pg_backend *backend)
{
    return backend->era != pg_server.era;
}

bool pg_must_end(struct pg_backend *backend)
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
    return !pg_is_dead(backend) && !pg_must_end(backend);
}

bool pg_pause_uninterrupted(struct pg_backend *backend, int64_t us)
{
    const int64_t until_us = sim_now_us() + us;
    while (sim_now_us() < until_us && !pg_is_dead(backend))
        sim_wait(backend, until_us);
    return !pg_is_dead(backend);
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
    if (!is_commit && sim_one_in(pg_server.faults.slow) &&
        !pg_pause(backend, sim_below(PG_SLOW_US)))
        return NULL;
    if (backend->failed && !ends_block(text)) {
        pg_fail(backend, "25P02", "current transaction is aborted");
        return NULL;
    }
    if (message->sql->kind == PG_OTHER)
        return pg_run_other(backend, text);
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
        !pg_commit(backend)) {
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
        pg_end_transaction(backend, false);
    else if (!backend->failed) { /* its changes are undone and its locks are free at once */
        pg_end_transaction(backend, false);
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
        pg_pause_uninterrupted(backend, sim_below(WIRE_US));
    if (pg_is_dead(backend) || pg_must_end(backend) || !conn->messages)
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
        if (!backend->in_block && !pg_commit(backend))
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
            pg_commit(backend);
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
        pg_end_transaction(backend, false);
    }
    pg_server_leave(backend);
    return NULL;
}
