/* What each guard claims, and what must hold in a round. The judge asks only this table. */
#include "torture_plan.h"

#include <string.h>

#define LEASED  (HARM_FORGET | HARM_LEASE)
#define SESSION (HARM_FORGET | HARM_LEASE | HARM_SESSION | HARM_DIE)
#define ANY     (HARM_FORGET | HARM_LEASE | HARM_SESSION | HARM_DIE)

const struct torture_guard torture_guards[] = {
    /* name, servers, one process, a lock, fence, broken by, stuck by, weight */
    {"none", SERVERS_NONE, false, false, false, HARM_ALWAYS, 0, 2},
    {"mutex", SERVERS_NONE, true, true, false, HARM_DIE, 0, 6},
    {"sql-row", SERVERS_NONE, false, false, false, 0, 0, 6},
    {"sql-atomic", SERVERS_NONE, false, false, false, 0, 0, 4},
    {"sql-version", SERVERS_NONE, false, false, false, 0, 0, 4},
    {"redis-token", SERVERS_REDIS, false, true, true, LEASED, 0, 16},
    {"redis-reentrant", SERVERS_REDIS, false, true, true, LEASED, 0, 6},
    {"redis-fair", SERVERS_REDIS, false, true, true, LEASED, 0, 6},
    {"redis-readwrite", SERVERS_REDIS, false, true, true, LEASED, 0, 3},
    {"redis-semaphore", SERVERS_REDIS, false, true, true, LEASED, 0, 3},
    {"redis-set", SERVERS_REDIS, false, true, false, LEASED, 0, 2},
    {"redis-getset", SERVERS_REDIS, false, true, false, LEASED, 0, 1},
    {"redis-setnx-expire", SERVERS_REDIS, false, true, false, LEASED, ANY, 1},
    {"redis-setnx", SERVERS_REDIS, false, true, false, LEASED, ANY, 1},
    {"redlock", SERVERS_REDLOCK, false, true, false, LEASED, 0, 6},
    {"memcached", SERVERS_MEMCACHED, false, true, false, LEASED, 0, 4},
    {"zk-ephemeral", SERVERS_ZOOKEEPER, false, true, true, SESSION, 0, 3},
    {"zk-sequential", SERVERS_ZOOKEEPER, false, true, true, SESSION, 0, 6},
    {"zk-readwrite", SERVERS_ZOOKEEPER, false, true, true, SESSION, 0, 3},
    {"sql-unique", SERVERS_DATABASE, false, true, true, LEASED, 0, 6},
    {"sql-unique-forever", SERVERS_DATABASE, false, true, false, LEASED, ANY, 1},
    {"pg-advisory", SERVERS_POSTGRES, false, true, true, SESSION, 0, 6},
    {"pg-advisory-xact", SERVERS_POSTGRES, false, true, true, SESSION, 0, 3},
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

static uint32_t harms_of(const struct torture_settings *is)
{
    uint32_t all = 0;
    for (int i = 0; i < TORTURE_FAULTS; i++)
        if (is->faults[i])
            all |= torture_faults[i].harms;
    if (is->faults[TORTURE_LOCKS_KILL] || is->faults[TORTURE_DOUBLE_KILL] ||
        is->faults[TORTURE_FAILOVER] || is->leave_broken)
        all |= killed(is);
    return all;
}

/* A lease of 30 s outlasts everything that strikes in a round but a clock's leap. */
enum { LONG_LEASE_MS = 30000 };

void torture_claim(struct torture_settings *is)
{
    const struct torture_guard *guard = is->guard;
    is->harms = harms_of(is);
    uint32_t breaks = guard->broken_by & (is->harms | HARM_ALWAYS);
    if (is->lease_ms >= LONG_LEASE_MS && !is->faults[TORTURE_CLOCK] && guard->broken_by == LEASED)
        breaks &= ~(uint32_t)HARM_LEASE;
    else if (guard->broken_by == LEASED) /* a busy machine alone may outlast a short lease */
        breaks |= HARM_LEASE;
    /* On SQLite a dead process commits nothing. */
    if (!is->postgres && guard->one_process)
        breaks &= ~(uint32_t)HARM_DIE;
    bool fenced = is->fence && guard->a_lock && (guard->fence || is->fence_database);
    bool alone = guard->one_process && is->instances > 1;
    is->claims_safe = fenced || (breaks == 0 && !alone);
    is->claims_progress = (guard->stuck_by & is->harms) == 0;
}
