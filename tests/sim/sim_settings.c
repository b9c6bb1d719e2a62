#include "sim_settings.h"
#include "sim_bend.h"
#include "sim_threads.h"

#include <string.h>

const char *const sim_event_texts[SIM_EVENTS] = {
#define SIM_EVENT_TEXT(name, text) text,
    SIM_EVENT_MAP(SIM_EVENT_TEXT)
#undef SIM_EVENT_TEXT
};

/* Of seeds: where the store is SQLite; where there is one Redis, or Sentinels. */
enum { ARCHIVE_ONE_IN = 5, CLUSTER_ONE_IN = 5, CLUSTER_SEED = 3 };

static uint32_t one_of(const uint32_t *list, uint32_t n)
{
    return list[sim_below(n)];
}
#define ONE_OF(...)                                                                                \
    one_of((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static bool in_store(const char *guard)
{
    return strncmp(guard, "sql-", 4) == 0 && strncmp(guard, "sql-unique", 10) != 0;
}

#define ANY_REDIS NULL /* one of redis_guards */

static const char *const redis_guards[] = {
    "redis-token",     "redis-token",     "redis-fair",        "redis-fair", "redis-reentrant",
    "redis-semaphore", "redis-readwrite", "redlock",           "redlock",    "redis-set",
    "redis-getset",    "redis-setnx",     "redis-setnx-expire"};

static void draw_redis(struct sim_settings *ret)
{
    if (ret->guard)
        return;
    ret->guard = redis_guards[sim_below(sizeof redis_guards / sizeof redis_guards[0])];
    ret->redis = strcmp(ret->guard, "redlock") == 0 ? SIM_REDIS_FIVE
                 : sim_one_in(2)                    ? SIM_REDIS_SENTINEL
                                                    : SIM_REDIS_ONE;
    if (ret->redis != SIM_REDIS_FIVE && ret->seed % CLUSTER_ONE_IN == CLUSTER_SEED)
        ret->redis = SIM_REDIS_CLUSTER;
    ret->replicas =
        (ret->redis == SIM_REDIS_SENTINEL || ret->redis == SIM_REDIS_CLUSTER) && sim_one_in(4);
}

/* The kinds that exist in this run: each with one chance in two, and in one run of eight none. */
static void draw_faults(struct sim_settings *ret)
{
    static const enum sim_event kinds[] = {SIM_KILL,    SIM_STOP,         SIM_PAUSE,
                                           SIM_STALL,   SIM_KEY_DELETED,  SIM_CLOCK,
                                           SIM_GAVE_UP, SIM_GUARD_CHANGED};
    static const enum sim_event of_sqlite[] = {SIM_POWER, SIM_WRITE_FAILED, SIM_FLUSH_FAILED,
                                               SIM_DISK_FULL};
    static const enum sim_event of_postgres[] = {SIM_PG_CUT,     SIM_PG_TERMINATED, SIM_PG_REFUSED,
                                                 SIM_PG_RESTART, SIM_PG_CRASH,      SIM_PG_SLOW};
    static const enum sim_event of_redis[] = {SIM_NET_CUT,        SIM_NET_LOST,     SIM_NET_LATE,
                                              SIM_NET_SILENT,     SIM_REDIS_AWAY,   SIM_REDIS_STOP,
                                              SIM_REDIS_KILL,     SIM_REDIS_DELETE, SIM_REDIS_CLOCK,
                                              SIM_REDIS_FAILOVER, SIM_REDIS_SPLIT};
    static const enum sim_event of_cluster[] = {SIM_CLUSTER_SLOT, SIM_CLUSTER_TURN,
                                                SIM_CLUSTER_ROLL};
    static const enum sim_event of_memcached[] = {
        SIM_NET_CUT,        SIM_NET_LOST,        SIM_NET_LATE,
        SIM_NET_SILENT,     SIM_MEMCACHED_AWAY,  SIM_MEMCACHED_STOP,
        SIM_MEMCACHED_KILL, SIM_MEMCACHED_EVICT, SIM_MEMCACHED_FLUSH};
    static const enum sim_event of_zookeeper[] = {SIM_ZK_CUT, SIM_ZK_AWAY, SIM_ZK_PART,
                                                  SIM_ZK_DELETE, SIM_ZK_EXPIRE};
    const bool none = sim_one_in(8);
#define DRAW(list, if_there)                                                                       \
    for (size_t i = 0; (if_there) && !none && i < sizeof(list) / sizeof(list)[0]; i++)             \
    ret->faults[(list)[i]] = sim_one_in(2)
    DRAW(kinds, true);
    DRAW(of_sqlite, !ret->postgres);
    DRAW(of_postgres, ret->postgres);
    DRAW(of_redis, ret->redis != SIM_REDIS_NONE);
    DRAW(of_cluster, ret->redis == SIM_REDIS_CLUSTER);
    DRAW(of_zookeeper, ret->zookeeper);
    DRAW(of_memcached, ret->memcached);
    if (ret->redis != SIM_REDIS_SENTINEL && ret->redis != SIM_REDIS_CLUSTER)
        ret->faults[SIM_REDIS_FAILOVER] = ret->faults[SIM_REDIS_SPLIT] = false;
    ret->n_faults = none ? 0 : ONE_OF(3, 10, 30);
    ret->hands = ONE_OF(1, 1, 2, 3);
}

static void draw_service(struct sim_settings *ret)
{
    static const char *const guards[] = {
        "mutex",      "sql-row",       "sql-atomic",   "sql-version",  "sql-unique", "sql-unique",
        "sql-unique", ANY_REDIS,       ANY_REDIS,      ANY_REDIS,      ANY_REDIS,    ANY_REDIS,
        ANY_REDIS,    "zk-sequential", "zk-ephemeral", "zk-readwrite", "memcached"};
    ret->guard = guards[sim_below(sizeof guards / sizeof guards[0])];
    draw_redis(ret);
    ret->zookeeper = strncmp(ret->guard, "zk-", 3) == 0;
    ret->memcached = strcmp(ret->guard, "memcached") == 0;
    bool local = strcmp(ret->guard, "mutex") == 0;
    ret->postgres = sim_one_in(3);
    ret->isolation = sim_one_in(3) ? "repeatable-read" : "read-committed";
    ret->instances = local                          ? 1
                     : ret->redis != SIM_REDIS_NONE ? ONE_OF(1, 2, 2, 3)
                                                    : ONE_OF(1, 1, 2, 3);
    ret->workers = 1 + sim_below(4);
    ret->lanes = !sim_one_in(3);
    ret->batch = ONE_OF(1, 2, 8, 128);
    ret->turns = ONE_OF(1, 2, 8, 8);
    ret->lock_queue = sim_one_in(2);
    ret->hand_overs = ret->lock_queue ? ONE_OF(0, 2, 8) : 0;
    ret->alone = sim_one_in(3);
    ret->fence = !sim_one_in(4);
    ret->fence_database = sim_one_in(3);
    ret->watchdog = sim_one_in(2);
    ret->lease_ms = ONE_OF(50, 50, 500, 30000);
    if (ret->replicas > 0 && ret->lease_ms < 500) /* it would end while the replicas are awaited */
        ret->lease_ms = 500;
    ret->max_hold_ms = sim_one_in(3) ? ret->lease_ms * ONE_OF(1, 2) : 0;
    ret->wait_ms = ONE_OF(500, 3000, 10000);
    ret->close_ms = ONE_OF(100, 1000, 5000);
    ret->reserve_s = ONE_OF(1, 5, 900);
    ret->retention_s = ONE_OF(0, 0, 1, 2);
    ret->refusals_max = ONE_OF(1, 4, SIM_REFUSALS_ALL, SIM_REFUSALS_ALL);
    ret->sync_normal = sim_one_in(4);
}

static void draw_clients(struct sim_settings *ret)
{
    ret->items = 1 + sim_below(3);
    ret->stock = ONE_OF(3, 10, 1000);
    ret->per_user_limit = ONE_OF(0, 0, 2);
    ret->accounts = 2 + sim_below(3);
    ret->balance = ONE_OF(150, 1000, 100000);
    ret->clients = ONE_OF(2, 4, 8, 12);
    ret->deals = 2 + sim_below(8);
    ret->think_ms = ONE_OF(0, 0, 0, 20, 500);
    ret->hot = sim_one_in(3);
    ret->steps_per_switch = ONE_OF(1, 4, 16, 100);
}

static void draw_other_guard(struct sim_settings *ret)
{
    static const char *const stores[] = {"sql-row", "sql-atomic", "sql-version"};
    if (!ret->faults[SIM_GUARD_CHANGED])
        return;
    ret->other_guard = stores[sim_below(3)];
    if (ret->instances == 1 && sim_one_in(3))
        ret->other_guard = "mutex";
    else if (ret->redis != SIM_REDIS_NONE && sim_one_in(2))
        ret->other_guard = redis_guards[sim_below(sizeof redis_guards / sizeof redis_guards[0])];
    if ((ret->redis == SIM_REDIS_SENTINEL || ret->redis == SIM_REDIS_CLUSTER) && ret->other_guard &&
        strcmp(ret->other_guard, "redlock") == 0)
        ret->other_guard = "redis-token";
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool has_fence(const char *guard)
{
    static const char *const without[] = {"memcached",         "redlock",     "redis-set",
                                          "redis-getset",      "redis-setnx", "redis-setnx-expire",
                                          "sql-unique-forever"};
    return !is_one_of(guard, without, sizeof without / sizeof without[0]);
}

/* What takes a lock away before its lease ends: pauses, clocks that leap, servers that forget. */
static const enum sim_event enemies_of_leases[] = {
    SIM_PAUSE,        SIM_STALL,          SIM_KEY_DELETED,     SIM_CLOCK,          SIM_REDIS_KILL,
    SIM_REDIS_DELETE, SIM_REDIS_CLOCK,    SIM_REDIS_FAILOVER,  SIM_REDIS_SPLIT,    SIM_ZK_DELETE,
    SIM_ZK_EXPIRE,    SIM_MEMCACHED_KILL, SIM_MEMCACHED_EVICT, SIM_MEMCACHED_FLUSH};
enum { ENEMIES = sizeof enemies_of_leases / sizeof enemies_of_leases[0], LONG_LEASE_MS = 30000 };

/* What redis-setnx, redis-setnx-expire and redis-getset claim is less than that. */
static bool claims_leases(const char *guard)
{
    return has_fence(guard) || strcmp(guard, "redlock") == 0 || strcmp(guard, "redis-set") == 0 ||
           strcmp(guard, "memcached") == 0;
}

/* A lock that is a session ends with it, while a commit of its holder may still be under way: only
 * where nothing goes wrong it needs no fence. */
static bool is_session(const char *guard)
{
    return strncmp(guard, "pg-", 3) == 0;
}

static bool holds_leases(const struct sim_settings *is, const char *guard)
{
    bool any = is_session(guard) && is->n_faults > 0;
    for (size_t i = 0; i < ENEMIES; i++)
        any = any || is->faults[enemies_of_leases[i]];
    return is->lease_ms >= LONG_LEASE_MS && !any && claims_leases(guard);
}

/* The lock alone has to keep updates apart, in a part of the runs: no fence, and none of what takes
 * locks away. In a part of these, nothing at all goes wrong. */
static void draw_lock_alone(struct sim_settings *ret)
{
    /* On PostgreSQL a commit may land late, which the lock alone has to wait for. */
    if (in_store(ret->guard) || !claims_leases(ret->guard) || !sim_one_in(ret->postgres ? 2 : 3))
        return;
    if (sim_one_in(3)) {
        ret->n_faults = 0;
        ret->wait_ms = ONE_OF(3000, 10000);
    }
    ret->fence = false;
    ret->lease_ms = LONG_LEASE_MS;
    for (size_t i = 0; i < ENEMIES; i++)
        ret->faults[enemies_of_leases[i]] = false;
    if (ret->other_guard && !claims_leases(ret->other_guard))
        ret->other_guard = "sql-row";
}

/* What a guard claims, under what is done to it here. */
static bool claims_safe(const struct sim_settings *is, const char *guard)
{
    return in_store(guard) || strcmp(guard, "mutex") == 0 ||
           (is->fence && (is->fence_database || has_fence(guard))) || holds_leases(is, guard);
}

bool sim_settings_lease_by_clock(const struct sim_settings *is)
{
    static const char *const names[] = {"sql-unique", "redis-getset"};
    return is_one_of(is->guard, names, 2) ||
           (is->other_guard && is_one_of(is->other_guard, names, 2));
}

void sim_settings_draw(struct sim_settings *ret, uint64_t seed)
{
    memset(ret, 0, sizeof *ret);
    ret->seed = seed;
    draw_service(ret);
    draw_clients(ret);
    const bool bent = sim_bend(ret);
    draw_faults(ret);
    sim_bend_faults(ret);
    draw_other_guard(ret);
    if (!bent)
        draw_lock_alone(ret);
    /* The generator is not asked, so it draws the rest as before. */
    ret->faults[SIM_ARCHIVED] = !ret->postgres && seed % ARCHIVE_ONE_IN == ARCHIVE_ONE_IN - 1;
    if (in_store(ret->guard) || strcmp(ret->guard, "mutex") == 0) /* no server forgets its keys */
        ret->faults[SIM_KEY_DELETED] = false;
    if (ret->sync_normal) /* which promises nothing about what is not flushed */
        ret->faults[SIM_POWER] = ret->faults[SIM_FLUSH_FAILED] = ret->faults[SIM_PG_CRASH] = false;
    ret->claims_safe =
        claims_safe(ret, ret->guard) && (!ret->other_guard || claims_safe(ret, ret->other_guard));
}

void sim_settings_canary(struct sim_settings *ret, uint64_t seed)
{
    memset(ret, 0, sizeof *ret);
    *ret = (struct sim_settings){.seed = seed,
                                 .guard = "none",
                                 .instances = 1,
                                 .workers = 4,
                                 .batch = 8,
                                 .turns = 1,
                                 .lease_ms = 30000,
                                 .wait_ms = 10000,
                                 .close_ms = 5000,
                                 .reserve_s = 900,
                                 .refusals_max = SIM_REFUSALS_ALL,
                                 .lanes = sim_one_in(2),
                                 .fence = true,
                                 .watchdog = true,
                                 .items = 1,
                                 .stock = 1000,
                                 .accounts = 2,
                                 .balance = 1000,
                                 .clients = 6,
                                 .deals = 8,
                                 .steps_per_switch = 4};
}

bool sim_settings_are_of(const struct sim_settings *is, const char *what)
{
    const size_t n = strlen(what);
    return strcmp(what, is->postgres ? "postgres" : "sqlite") == 0 ||
           (strcmp(what, "cluster") == 0 && is->redis == SIM_REDIS_CLUSTER) ||
           strncmp(is->guard, what, n) == 0 ||
           (is->other_guard && strncmp(is->other_guard, what, n) == 0);
}

void sim_settings_print(const struct sim_settings *is, FILE *out)
{
    fprintf(
        out,
        "seed %llu: %s%s%s, guard %s, other %s, Redis %s (%u), %u instance%s, %u workers, lanes "
        "%s%s, "
        "batch %u, turns %u, queue "
        "%s, %u hand-overs, fence %s from %s, watchdog %s, lease %u ms, hold at most %u ms, wait "
        "%u ms, sync %s, answers kept for %u s, %u refusals\n"
        "  %u items%s of %u pieces, limit %u, %u accounts, %u clients, %u deals each, a switch in "
        "%u steps, %u faults by %u hands of:",
        (unsigned long long)is->seed, is->postgres ? "PostgreSQL " : "SQLite",
        is->postgres ? is->isolation : "", is->lock_postgres ? " (locks too)" : "", is->guard,
        is->other_guard ? is->other_guard : "none", sim_redis_endpoint(is->redis), is->replicas,
        is->instances, is->instances > 1 ? "s" : "", is->workers, is->lanes ? "on" : "off",
        is->alone ? " alone" : "", is->batch, is->turns, is->lock_queue ? "on" : "off",
        is->hand_overs, is->fence ? "on" : "off", is->fence_database ? "the store" : "the lock",
        is->watchdog ? "on" : "off", is->lease_ms, is->max_hold_ms, is->wait_ms,
        is->sync_normal ? "normal" : "full", is->retention_s, is->refusals_max, is->items,
        is->hot ? ", one of them hot," : "", is->stock, is->per_user_limit, is->accounts,
        is->clients, is->deals, is->steps_per_switch, is->n_faults, is->hands);
    for (int i = 0; i < SIM_EVENTS; i++)
        if (is->faults[i])
            fprintf(out, " %s;", sim_event_texts[i]);
    fprintf(out, " claims %s\n", is->claims_safe ? "no lost update" : "nothing");
}
