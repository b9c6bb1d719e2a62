#include "sim_bend.h"
#include "sim_threads.h"

#include <string.h>

enum { ONE_IN = 16 };

static void many_at_once(struct sim_settings *ret)
{
    ret->clients = 8;
    ret->deals = 5;
    ret->think_ms = 0;
    ret->stock = 1000;
    ret->balance = 100000;
}

static void use_guard(struct sim_settings *ret, const char *guard)
{
    ret->guard = guard;
    ret->redis = strncmp(guard, "redis-", 6) == 0 ? SIM_REDIS_ONE : SIM_REDIS_NONE;
    ret->replicas = 0;
    ret->zookeeper = strncmp(guard, "zk-", 3) == 0;
    ret->memcached = strcmp(guard, "memcached") == 0;
}

static void use_fence_of_lock(struct sim_settings *ret)
{
    ret->fence = true;
    ret->fence_database = false;
}

static void bend_to_memcached(struct sim_settings *ret)
{
    use_guard(ret, "memcached");
    many_at_once(ret);
}

/* The lock of one lane is kept for many short turns, and its lease is short. Another instance gets
 * it while a holder stands between its last look at the lock and its write. */
static void bend_to_later_turns(struct sim_settings *ret)
{
    static const char *const guards[] = {"redis-token", "redis-reentrant", "sql-unique"};
    use_guard(ret, guards[sim_below(3)]);
    use_fence_of_lock(ret);
    many_at_once(ret);
    ret->lanes = ret->hot = ret->late_writes = true;
    if (ret->instances < 2)
        ret->instances = 2;
    ret->clients = 12;
    ret->batch = 1;
    ret->turns = 8;
    ret->lease_ms = 50;
    ret->watchdog = false;
}

/* Several lanes have something to do at once, and few threads serve them. */
static void bend_to_lanes_together(struct sim_settings *ret)
{
    static const char *const guards[] = {"redis-token", "redis-reentrant", "sql-row",
                                         "sql-version"};
    use_guard(ret, guards[sim_below(4)]);
    many_at_once(ret);
    ret->postgres = ret->alone = ret->fence_database = ret->hot = false;
    ret->lanes = true;
    ret->workers = 1;
    ret->batch = sim_one_in(2) ? 8 : 128;
    ret->items = 3;
    ret->accounts = 4;
}

static void bend_to_failover(struct sim_settings *ret)
{
    static const char *const guards[] = {"redis-token", "redis-fair", "redis-reentrant"};
    use_guard(ret, guards[sim_below(3)]);
    use_fence_of_lock(ret);
    many_at_once(ret);
    ret->redis = SIM_REDIS_SENTINEL;
    ret->hot = true;
}

static void bend_to_cluster(struct sim_settings *ret)
{
    static const char *const guards[] = {"redis-token",     "redis-fair",      "redis-reentrant",
                                         "redis-semaphore", "redis-readwrite", "redis-set"};
    use_guard(ret, guards[sim_below(6)]);
    ret->redis = SIM_REDIS_CLUSTER;
    ret->replicas = sim_one_in(4);
    if (ret->replicas > 0 && ret->lease_ms < 500)
        ret->lease_ms = 500;
    if (sim_one_in(2))
        many_at_once(ret);
}

/* Nobody can say whether a commit has landed. */
static void bend_to_undecided(struct sim_settings *ret)
{
    static const char *const guards[] = {"redis-token", "sql-unique", "zk-sequential"};
    use_guard(ret, guards[sim_below(3)]);
    use_fence_of_lock(ret);
    many_at_once(ret);
    ret->postgres = true;
}

static void bend_to_undecided_alone(struct sim_settings *ret)
{
    bend_to_undecided(ret);
    ret->fence = false;
}

static void bend_to_zookeeper(struct sim_settings *ret)
{
    static const char *const guards[] = {"zk-sequential", "zk-ephemeral", "zk-readwrite"};
    use_guard(ret, guards[sim_below(3)]);
    many_at_once(ret);
}

/* Locks in PostgreSQL, and the row without a lease. */
static void bend_to_locks_in_postgres(struct sim_settings *ret)
{
    static const char *const guards[] = {"pg-advisory", "pg-advisory-xact",
                                         "pg-advisory", "pg-advisory-xact",
                                         "sql-unique",  "sql-unique-forever"};
    use_guard(ret, guards[sim_below(6)]);
    ret->lock_postgres = strcmp(ret->guard, "sql-unique-forever") != 0 || sim_one_in(2);
    ret->postgres = ret->lock_postgres;
}

static void bend_to_sessions_that_end(struct sim_settings *ret)
{
    bend_to_locks_in_postgres(ret);
    many_at_once(ret);
    ret->fence = true;
    ret->wait_ms = 500;
    ret->hot = true;
}

/* More is refused than is kept, for longer than the task waits between two counts. */
static void bend_to_refusals(struct sim_settings *ret)
{
    many_at_once(ret);
    ret->deals = 9;
    ret->think_ms = 500;
    ret->stock = 3;
    ret->balance = 150;
    ret->retention_s = sim_one_in(2) ? 1 : 0;
    ret->refusals_max = sim_one_in(2) ? 1 : 4;
}

static const struct bend {
    uint32_t seed; /* modulo ONE_IN */
    void (*bend)(struct sim_settings *ret);
    uint32_t n;
    enum sim_event faults[4]; /* that exist, whatever is drawn */
} bends[] = {
    {0, bend_to_memcached, 2, {SIM_MEMCACHED_EVICT, SIM_MEMCACHED_FLUSH}},
    {2, bend_to_locks_in_postgres, 0, {0}},
    {3, bend_to_sessions_that_end, 4, {SIM_KILL, SIM_PG_CUT, SIM_PG_TERMINATED, SIM_PG_SLOW}},
    {4, bend_to_later_turns, 3, {SIM_PAUSE, SIM_STALL, SIM_KEY_DELETED}},
    {6, bend_to_lanes_together, 0, {0}},
    {7, bend_to_failover, 2, {SIM_REDIS_FAILOVER, SIM_REDIS_SPLIT}},
    {8, bend_to_undecided, 4, {SIM_PG_CUT, SIM_PG_REFUSED, SIM_PG_RESTART, SIM_PG_TERMINATED}},
    {10,
     bend_to_undecided_alone,
     4,
     {SIM_PG_CUT, SIM_PG_REFUSED, SIM_PG_RESTART, SIM_PG_TERMINATED}},
    {11, bend_to_zookeeper, 4, {SIM_ZK_CUT, SIM_ZK_PART, SIM_ZK_DELETE, SIM_ZK_EXPIRE}},
    {13, bend_to_refusals, 0, {0}},
    {15,
     bend_to_cluster,
     4,
     {SIM_CLUSTER_SLOT, SIM_CLUSTER_TURN, SIM_CLUSTER_ROLL, SIM_REDIS_FAILOVER}},
};

static const struct bend *bend_of(const struct sim_settings *is)
{
    for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++)
        if (is->seed % ONE_IN == bends[i].seed)
            return &bends[i];
    return NULL;
}

bool sim_bend(struct sim_settings *ret)
{
    const struct bend *bend = bend_of(ret);
    if (bend)
        bend->bend(ret);
    return bend && bend->bend != bend_to_locks_in_postgres && bend->bend != bend_to_cluster;
}

void sim_bend_faults(struct sim_settings *ret)
{
    const struct bend *bend = bend_of(ret);
    if (!bend || bend->n == 0)
        return;
    if (sim_one_in(2)) /* nothing else goes wrong */
        memset(ret->faults, 0, sizeof ret->faults);
    for (uint32_t i = 0; i < bend->n; i++)
        ret->faults[bend->faults[i]] = true;
    ret->n_faults = 30;
}
