/* Faults of the store: PostgreSQL, its wires, the disk under SQLite. */
#include "torture_archive.h"
#include "torture_faults.h"
#include "torture_store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { PAGE = 4096, PAGES = 32 };

static bool runs(const struct torture_world *world)
{
    return world->postgres.server != NULL && world->postgres.state == RUNS;
}

static struct proxy *wire_of(struct torture_world *world, const struct torture_strike *strike)
{
    return world->store_wires[strike->who % world->plan->is.instances];
}

/* -- the server -------------------------------------------------------------------------------- */

static void note_backend(void *ctx, const char *const *columns)
{
    struct torture_world *world = ctx;
    int room = sizeof world->stopped_backends / sizeof *world->stopped_backends;
    pid_t pid = columns[0] != NULL ? (pid_t)atoi(columns[0]) : 0;
    if (pid > 0 && world->n_stopped_backends < room && kill(pid, SIGSTOP) == 0)
        world->stopped_backends[world->n_stopped_backends++] = pid;
}

/* They are children of our own server, and a stopped process keeps its pid. */
static void continue_backends(struct torture_world *world)
{
    for (int i = 0; i < world->n_stopped_backends; i++)
        kill(world->stopped_backends[i], SIGCONT);
    world->n_stopped_backends = 0;
}

static bool stop_backends(struct torture_world *world, const struct torture_strike *strike)
{
    char sql[256], message[256];
    struct torture_store *store = torture_store_open(world->database->url, message, sizeof message);
    snprintf(sql, sizeof sql,
             "SELECT pid FROM pg_stat_activity WHERE datname = '%s' AND (pid + %u) %% 2 = 0",
             world->database_name, strike->chance);
    long rows = store == NULL
                    ? 0
                    : torture_store_ask(store, sql, note_backend, world, message, sizeof message);
    torture_store_close(store);
    return rows > 0;
}

static bool end_server(struct torture_world *world, const struct torture_strike *strike)
{
    continue_backends(world);
    switch (strike->fault) {
    case TORTURE_STORE_KILL:
        return torture_kill(&world->postgres, strike->for_ms);
    case TORTURE_STORE_FAST:
        return torture_end(&world->postgres, SIGINT, strike->for_ms);
    default:
        return torture_end(&world->postgres, SIGQUIT, strike->for_ms);
    }
}

static bool terminate(struct torture_world *world, const struct torture_strike *strike)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
             " WHERE datname = '%s' AND (pid + %u) %% 3 = 0",
             world->database_name, strike->chance);
    world->archive.disturbed = true;
    return torture_database_ask(world, sql) > 0;
}

/* Every commit waits for a standby that does not exist. */
static bool want_standby(struct torture_world *world, bool on)
{
    world->standby_awaited = on;
    return torture_database_ask(world, on ? "ALTER SYSTEM SET synchronous_standby_names = 'absent'"
                                          : "ALTER SYSTEM RESET synchronous_standby_names") >= 0 &&
           torture_database_ask(world, "SELECT pg_reload_conf()") > 0;
}

/* -- the disk ---------------------------------------------------------------------------------- */

/* No write of the instance may reach beyond this offset of a file. */
static bool limit_files(struct torture_world *world, const struct torture_strike *strike, bool on)
{
    const struct torture_process *process =
        &world->instance[strike->who % world->plan->is.instances];
    struct rlimit limit;
    if (process->server->pid == 0 || prlimit(process->server->pid, RLIMIT_FSIZE, NULL, &limit) != 0)
        return false;
    limit.rlim_cur = on ? PAGE * (1 + strike->chance % PAGES) : limit.rlim_max;
    return prlimit(process->server->pid, RLIMIT_FSIZE, &limit, NULL) == 0;
}

/* -- strike and heal --------------------------------------------------------------------------- */

bool torture_store_strike(struct torture_world *world, const struct torture_strike *strike)
{
    if (strike->fault == TORTURE_DISK_FULL)
        return limit_files(world, strike, true);
    if (strike->fault == TORTURE_ARCHIVE_OFFLINE)
        return torture_archive_begin(world, strike->chance % 4 == 1);
    struct proxy *wire = wire_of(world, strike);
    switch (strike->fault) {
    case TORTURE_STORE_CUT:
        proxy_cut(wire);
        return true;
    case TORTURE_STORE_HALF_CUT:
        proxy_drop(wire, strike->chance % 2 == 0 ? PROXY_TO_SERVER : PROXY_TO_CLIENT, true);
        return true;
    case TORTURE_STORE_DELAY:
        proxy_delay(wire, 1 + strike->chance % 200);
        return true;
    default:
        break;
    }
    if (!runs(world))
        return false;
    switch (strike->fault) {
    case TORTURE_ARCHIVE:
        return torture_archive_begin(world, strike->chance % 4 == 1);
    case TORTURE_STORE_PAUSE:
        return stop_backends(world, strike);
    case TORTURE_TERMINATE:
        return terminate(world, strike);
    case TORTURE_STANDBY:
        return want_standby(world, true);
    default:
        return end_server(world, strike);
    }
}

bool torture_store_unstrike(struct torture_world *world, const struct torture_strike *strike)
{
    switch (strike->fault) {
    case TORTURE_ARCHIVE:
    case TORTURE_ARCHIVE_OFFLINE: /* half of them are killed, if they have not ended by then */
        if (strike->chance % 2 == 0)
            torture_archive_kill(world);
        return torture_archive_look(world);
    case TORTURE_DISK_FULL:
        limit_files(world, strike, false);
        return true;
    case TORTURE_STORE_HALF_CUT:
        proxy_drop(wire_of(world, strike),
                   strike->chance % 2 == 0 ? PROXY_TO_SERVER : PROXY_TO_CLIENT, false);
        proxy_cut(wire_of(world, strike));
        return true;
    case TORTURE_STORE_DELAY:
        proxy_delay(wire_of(world, strike), 0);
        return true;
    case TORTURE_STANDBY:
        return runs(world) && want_standby(world, false);
    case TORTURE_STORE_PAUSE:
    case TORTURE_DOUBLE_KILL:
        continue_backends(world);
        return true;
    default:
        return true;
    }
}
