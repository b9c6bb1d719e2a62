/* The server: its processes, connections refused, restarts and crashes. */
#include "sim_pg_model.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIDS = 900, MAX_CONNECTIONS = 100, SETTLED_US = 60000000 };

struct pg_server pg_server;

void sim_pg_begin(void)
{
    memset(&pg_server, 0, sizeof pg_server);
    pg_rows_begin();
    pg_locks_begin();
    pg_advisory_begin();
}

void sim_pg_faults(const struct sim_pg_faults *faults)
{
    pg_server.faults = *faults;
}

/* -- processes --------------------------------------------------------------------------------- */

struct pg_backend *pg_server_find(int64_t pid)
{
    for (size_t i = 0; i < pg_server.n; i++)
        if (pg_server.backends[i]->pid == pid)
            return pg_server.backends[i];
    return NULL;
}

static void show(const struct pg_backend *backend)
{
    char sql[128];
    snprintf(sql, sizeof sql, "INSERT INTO pg_stat_activity VALUES (%lld, %lld, NULL)",
             (long long)backend->pid, (long long)backend->start_us);
    sqlite3_exec(pg_rows(), sql, NULL, NULL, NULL);
}

static void fail(struct pg_failure *ret, const char *code, const char *message)
{
    *ret = (struct pg_failure){.severity = "FATAL"};
    snprintf(ret->code, sizeof ret->code, "%s", code);
    snprintf(ret->message, sizeof ret->message, "%s", message);
}

struct pg_backend *pg_server_connect(struct pg_conn *conn, struct pg_failure *failure)
{
    *failure = (struct pg_failure){.severity = NULL};
    if (sim_now_us() < pg_server.refuses_until_us)
        return NULL;
    if (sim_now_us() < pg_server.starts_until_us) {
        fail(failure, "57P03", "the database system is starting up");
        return NULL;
    }
    if (pg_server.n >= MAX_CONNECTIONS) {
        fail(failure, "53300", "sorry, too many clients already");
        return NULL;
    }
    struct pg_backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        abort();
    backend->conn = conn;
    do
        backend->pid = 100 + sim_below(PIDS);
    while (pg_server_find(backend->pid));
    backend->start_us = sim_wall_begin_us + sim_now_us();
    backend->era = pg_server.era;
    show(backend);
    pg_server.backends[pg_server.n++] = backend;
    if (!sim_spawn(SIM_WORLD, "postgres", pg_backend_live, backend))
        abort();
    return backend;
}

/* Its memory stays: who waits may still look at it. */
void pg_server_leave(struct pg_backend *backend)
{
    char sql[96];
    backend->ended = true;
    backend->conn->broken = true;
    pg_break(backend->conn);
    if (pg_is_dead(backend))
        return;
    pg_advisory_end_session(backend);
    sim_wake(&backend->ended, INT32_MAX);
    snprintf(sql, sizeof sql, "DELETE FROM pg_stat_activity WHERE pid = %lld",
             (long long)backend->pid);
    sqlite3_exec(pg_rows(), sql, NULL, NULL, NULL);
    size_t i = 0;
    while (pg_server.backends[i] != backend)
        i++;
    pg_server.backends[i] = pg_server.backends[--pg_server.n];
}

static void terminate(struct pg_backend *backend)
{
    backend->terminate = true;
    sim_wake(backend, 1);
}

bool pg_server_terminate(int64_t pid)
{
    struct pg_backend *backend = pg_server_find(pid);
    if (!backend)
        return false;
    sim_count(SIM_PG_SETTLED);
    sim_tell("server process %lld is told to end", (long long)pid);
    terminate(backend);
    return true;
}

bool sim_pg_terminate_one(void)
{
    if (pg_server.n == 0)
        return false;
    struct pg_backend *backend = pg_server.backends[sim_below((uint32_t)pg_server.n)];
    sim_tell("server process %lld is told to end", (long long)backend->pid);
    terminate(backend);
    return true;
}

/* -- the whole server -------------------------------------------------------------------------- */

void sim_pg_refuse(int64_t until_us)
{
    pg_server.refuses_until_us = until_us;
}

static void crash(void)
{
    for (size_t i = 0; i < pg_server.n; i++) {
        const struct pg_backend *backend = pg_server.backends[i];
        if (backend->committing && sim_one_in(2))
            pg_set_xid_state(backend->xid, XID_COMMITTED);
    }
    pg_server.era++;
    pg_server.setup = NULL;
    pg_rows_crash();
    pg_locks_begin();
    pg_advisory_begin();
    sqlite3_exec(pg_rows(), "DELETE FROM pg_stat_activity", NULL, NULL, NULL);
    for (size_t i = 0; i < pg_server.n; i++)
        sim_wake(pg_server.backends[i], 1);
    pg_server.n = 0;
}

void sim_pg_restart(bool crashes, int64_t until_us)
{
    sim_tell("PostgreSQL %s, until %lld ms", crashes ? "crashes" : "is restarted",
             (long long)(until_us - 1000000) / 1000);
    pg_server.starts_until_us = until_us;
    if (crashes) {
        crash();
        return;
    }
    for (size_t i = 0; i < pg_server.n; i++)
        terminate(pg_server.backends[i]);
}

static bool is_open(void)
{
    for (size_t i = 0; i < pg_server.n; i++)
        if (pg_server.backends[i]->xid > 0)
            return true;
    return false;
}

sqlite3 *sim_pg_judge(void)
{
    const int64_t until_us = sim_now_us() + SETTLED_US;
    while (is_open() && sim_now_us() < until_us)
        sim_sleep_us(10000);
    if (is_open())
        sim_broken("a transaction of PostgreSQL stays open");
    pg_look(NULL, NULL);
    return pg_rows();
}
