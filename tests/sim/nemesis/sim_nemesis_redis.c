#include "sim_nemesis_redis.h"
#include "sim_nemesis_cluster.h"
#include "sim_redis_cluster.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <string.h>

enum { AS_LONG_AS_US = 400000, FORGOTTEN_US = 10000000, AHEAD_MAX_S = 32 };

static struct sim_redis *any_node(void)
{
    return sim_redis_node(sim_below((uint32_t)sim_redis_count()));
}

static void cut_off(void)
{
    struct sim_redis *redis = any_node();
    sim_tell("%s cannot be reached", redis->name);
    redis->host.unreachable = true;
    sim_count(SIM_REDIS_AWAY);
    sim_sleep_us(INT64_C(1000) << sim_below(13));
    sim_redis_reach(redis);
    sim_tell("%s can be reached", redis->name);
}

/* -- the servers ------------------------------------------------------------------------------ */

static void kill_and_restart(void)
{
    struct sim_redis *redis = any_node();
    sim_tell("%s is killed", redis->name);
    sim_redis_kill(redis);
    sim_count(SIM_REDIS_KILL);
    sim_sleep_us(sim_below(AS_LONG_AS_US));
    sim_redis_restart(redis);
    if (sim_cluster_is())
        sim_cluster_back(redis);
    sim_tell("%s is back, empty", redis->name);
}

static void stop_node(void)
{
    struct sim_redis *redis = any_node();
    int64_t us = INT64_C(1000) << sim_below(13);
    sim_tell("%s stands still for %lld ms", redis->name, (long long)us / 1000);
    redis->host.stopped_until_us = sim_now_us() + us;
    sim_count(SIM_REDIS_STOP);
}

/* A lease that was given while the clock was ahead stands longer by as much, once it is set right.
 */
static void leap(void)
{
    struct sim_redis *redis = any_node();
    const bool ahead = sim_one_in(2);
    int64_t s = INT64_C(1) << sim_below(ahead ? 6 : 12);
    if (ahead && redis->ahead_us / 1000000 + s > AHEAD_MAX_S)
        return;
    sim_tell("the clock of %s leaps by %lld s", redis->name, (long long)(ahead ? s : -s));
    redis->ahead_us += (ahead ? s : -s) * 1000000;
    sim_count(SIM_REDIS_CLOCK);
}

static void delete_keys(void)
{
    static const char *const parts[] = {"", ":fence", ":queue"};
    struct sim_redis *redis = any_node();
    const char *part = parts[sim_one_in(2) ? 0 : sim_below(3)];
    size_t n = redis->is_replica ? 0 : sim_redis_delete(redis, part);
    sim_tell("%zu keys%s%s are deleted on %s", n, *part ? " with " : "", part, redis->name);
    if (n > 0)
        sim_count(SIM_REDIS_DELETE);
}

/* The Sentinels agree on another master. Without a split the former one is dead; with one it
 * serves whoever is connected to it, until it is told. */
static void fail_over(bool split)
{
    struct sim_redis *former = sim_redis_master(), *next = former->replica;
    if (!next || next->host.down || former->host.down)
        return;
    if (!split)
        sim_redis_kill(former);
    sim_tell("%s fails over to %s%s", former->name, next->name, split ? ", and does not know" : "");
    sim_redis_promote(next, former);
    sim_sleep_us(sim_below(AS_LONG_AS_US));
    sim_redis_tell_sentinels(next);
    if (split)
        sim_sleep_us(INT64_C(1000) << sim_below(12));
    else
        sim_redis_restart(former);
    sim_redis_demote(former, next, sim_one_in(2));
    sim_tell("%s is the replica of %s", former->name, next->name);
    sim_count(split ? SIM_REDIS_SPLIT : SIM_REDIS_FAILOVER);
}

/* -- all -------------------------------------------------------------------------------------- */

static bool is_of_cluster(enum sim_event kind)
{
    return sim_cluster_is() &&
           (kind == SIM_REDIS_FAILOVER || kind == SIM_REDIS_SPLIT || kind >= SIM_CLUSTER_SLOT);
}

void sim_redis_fault(enum sim_event kind)
{
    if (is_of_cluster(kind)) {
        sim_cluster_fault(kind);
        return;
    }
    switch (kind) {
    case SIM_REDIS_AWAY:
        cut_off();
        return;
    case SIM_REDIS_KILL:
        kill_and_restart();
        return;
    case SIM_REDIS_STOP:
        stop_node();
        return;
    case SIM_REDIS_CLOCK:
        leap();
        return;
    case SIM_REDIS_DELETE:
        delete_keys();
        return;
    case SIM_REDIS_FAILOVER:
    case SIM_REDIS_SPLIT:
        fail_over(kind == SIM_REDIS_SPLIT);
        return;
    default:
        return;
    }
}

static bool may_stand_for_ever(const char *guard)
{
    return strncmp(guard, "redis-setnx", 11) == 0 || strcmp(guard, "redis-getset") == 0;
}

/* A key without an end stays for ever, once its holder or its DEL is lost. redis-getset
 * ends its own, and other guards do not. Somebody looks for such keys, and deletes them. */
static void *look_for_forgotten(void *arg)
{
    (void)arg;
    for (;;) {
        sim_sleep_us(FORGOTTEN_US);
        size_t n = 0;
        for (size_t i = 0; i < sim_redis_count(); i++)
            if (sim_cluster_is() ? !sim_redis_node(i)->is_replica
                                 : sim_redis_node(i) == sim_redis_master())
                n += sim_redis_delete_endless(sim_redis_node(i));
        if (n > 0)
            sim_tell("%zu locks that stood for ever are deleted", n);
    }
    return NULL;
}

void sim_redis_heal(void)
{
    for (size_t i = 0; i < sim_redis_count(); i++) {
        struct sim_redis *redis = sim_redis_node(i);
        redis->ahead_us = redis->usual_ahead_us;
        redis->host.stopped_until_us = 0;
    }
    if (may_stand_for_ever(sim_world.is.guard) ||
        (sim_world.is.other_guard && may_stand_for_ever(sim_world.is.other_guard)))
        sim_spawn(SIM_WORLD, "operator", look_for_forgotten, NULL);
}
