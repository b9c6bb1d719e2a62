/* What each guard claims, and what must hold in a round. The judge asks only this table. */
#include "torture_plan.h"

#include <string.h>

#define LEASED  (HARM_FORGET | HARM_LEASE)
#define SESSION (HARM_FORGET | HARM_LEASE | HARM_SESSION | HARM_DIE)

const struct torture_guard torture_guards[] = {
    /* name, servers, one process, a lock, fence, broken by, stuck by faults, weight */
    {"none", SERVERS_NONE, false, false, false, HARM_ALWAYS, false, 2},
    {"mutex", SERVERS_NONE, true, true, false, HARM_DIE, false, 6},
    {"sql-row", SERVERS_NONE, false, false, false, 0, false, 6},
    {"sql-atomic", SERVERS_NONE, false, false, false, 0, false, 4},
    {"sql-version", SERVERS_NONE, false, false, false, 0, false, 4},
    {"redis-token", SERVERS_REDIS, false, true, true, LEASED, false, 16},
    {"redis-reentrant", SERVERS_REDIS, false, true, true, LEASED, false, 6},
    {"redis-fair", SERVERS_REDIS, false, true, true, LEASED, false, 6},
    {"redis-readwrite", SERVERS_REDIS, false, true, true, LEASED, false, 3},
    {"redis-semaphore", SERVERS_REDIS, false, true, true, LEASED, false, 3},
    {"redis-set", SERVERS_REDIS, false, true, false, LEASED, false, 2},
    {"redis-getset", SERVERS_REDIS, false, true, false, LEASED, false, 1},
    {"redis-setnx-expire", SERVERS_REDIS, false, true, false, LEASED, true, 1},
    {"redis-setnx", SERVERS_REDIS, false, true, false, LEASED, true, 1},
    {"redlock", SERVERS_REDLOCK, false, true, false, LEASED, false, 6},
    {"memcached", SERVERS_MEMCACHED, false, true, false, LEASED, false, 4},
    {"zk-ephemeral", SERVERS_ZOOKEEPER, false, true, true, SESSION, false, 3},
    {"zk-sequential", SERVERS_ZOOKEEPER, false, true, true, SESSION, false, 6},
    {"zk-readwrite", SERVERS_ZOOKEEPER, false, true, true, SESSION, false, 3},
    {"sql-unique", SERVERS_DATABASE, false, true, true, LEASED, false, 6},
    {"sql-unique-forever", SERVERS_DATABASE, false, true, false, LEASED, true, 1},
    {"pg-advisory", SERVERS_POSTGRES, false, true, true, SESSION, false, 6},
    {"pg-advisory-xact", SERVERS_POSTGRES, false, true, true, SESSION, false, 3},
};
const int n_torture_guards = sizeof torture_guards / sizeof *torture_guards;

const struct torture_guard *torture_guard_named(const char *name)
{
    for (int i = 0; i < n_torture_guards; i++)
        if (strcmp(torture_guards[i].name, name) == 0)
            return &torture_guards[i];
    return NULL;
}

/* A lock server that dies: a cache comes back empty, ZooKeeper and databases do not. */
static uint32_t killed(const struct torture_settings *is)
{
    bool cache = is->guard->servers == SERVERS_REDIS || is->guard->servers == SERVERS_REDLOCK ||
                 is->guard->servers == SERVERS_MEMCACHED;
    return (cache ? HARM_FORGET : 0) | HARM_SESSION;
}

static bool kills_servers(enum torture_fault fault)
{
    return fault == TORTURE_LOCKS_KILL || fault == TORTURE_DOUBLE_KILL || fault == TORTURE_FAILOVER;
}

/* Pauses and delays in a round are shorter than a second. A lease of 30 s outlasts them. */
enum { LONG_LEASE_MS = 30000 };

uint32_t torture_breaks(const struct torture_settings *is, enum torture_fault fault)
{
    uint32_t harms = torture_faults[fault].harms | (kills_servers(fault) ? killed(is) : 0);
    if (is->lease_ms >= LONG_LEASE_MS && fault != TORTURE_CLOCK)
        harms &= ~(uint32_t)HARM_LEASE;
    if (!is->postgres && is->guard->one_process) /* a dead process commits nothing to SQLite */
        harms &= ~(uint32_t)HARM_DIE;
    return harms & is->guard->broken_by;
}

bool torture_is_fenced(const struct torture_settings *is)
{
    return is->fence && is->guard->a_lock && (is->guard->fence || is->fence_database);
}

void torture_claim(struct torture_settings *is)
{
    const struct torture_guard *guard = is->guard;
    bool broken = guard->broken_by == HARM_ALWAYS || (guard->one_process && is->instances > 1);
    bool struck = is->leave_broken;
    if (is->lease_ms < LONG_LEASE_MS && (guard->broken_by & HARM_LEASE) != 0)
        broken = true; /* a busy machine alone may outlast a short lease */
    for (int i = 0; i < TORTURE_FAULTS; i++) {
        struck = struck || is->faults[i];
        broken = broken || (is->faults[i] && torture_breaks(is, (enum torture_fault)i) != 0);
    }
    is->claims_safe = torture_is_fenced(is) || !broken;
    is->claims_progress = !guard->stuck_by_faults || !struck;
}
