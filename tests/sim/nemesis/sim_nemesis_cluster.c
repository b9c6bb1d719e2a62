#include "sim_nemesis_cluster.h"
#include "sim_redis_cluster.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <string.h>

enum { AS_LONG_AS_US = 400000 };

static bool is_up(const struct sim_redis *redis)
{
    return !redis->host.down && redis->host.stopped_until_us <= sim_now_us();
}

/* All but this one (NULL: all) learn what is so, one after the other. */
static void tell_all_but(const struct sim_redis *one)
{
    const uint32_t first = sim_below(SIM_CLUSTER_NODES);
    for (uint32_t i = 0; i < SIM_CLUSTER_NODES; i++) {
        const struct sim_redis *redis = sim_redis_node((first + i) % SIM_CLUSTER_NODES);
        if (redis == one)
            continue;
        sim_cluster_learn_all(redis);
        sim_sleep_us(INT64_C(1) << sim_below(17));
    }
}

static void say_down(const struct sim_redis *all_but, bool down)
{
    for (size_t i = 0; i < SIM_CLUSTER_NODES; i++)
        if (sim_redis_node(i) != all_but)
            sim_cluster_set_down(sim_redis_node(i), down);
}

/* -- a replica is promoted -------------------------------------------------------------------- */

/* Locks that stand at the master, and that its replica does not have. */
static size_t count_lost(const struct sim_redis *master, struct sim_redis *replica)
{
    size_t lost = 0;
    for (size_t i = 0; i < master->data.n; i++) {
        const char *name = master->data.keys[i].name;
        lost += name[0] != '{' && !sim_redis_find(&replica->data, name, 0);
    }
    return lost;
}

static void promote(int shard, struct sim_redis *next, struct sim_redis *former)
{
    sim_redis_promote(next, former);
    sim_cluster_set_master(shard, next);
    sim_cluster_learn_all(next);
}

/* The others do not hear the former master. It serves whoever asks it, and says in the end that
 * the cluster is down: it does not hear the others either. */
static void stand_apart(const struct sim_redis *former)
{
    sim_sleep_us(INT64_C(1000) << sim_below(12));
    if (sim_one_in(2)) {
        sim_cluster_set_down(former, true);
        sim_sleep_us(sim_below(AS_LONG_AS_US));
    }
    sim_cluster_set_down(former, false);
    sim_cluster_set_apart(former, false);
}

/* Without a split the former master is dead. The cluster is down until its replica is promoted. */
static void fail_over(bool split)
{
    const int shard = (int)sim_below(SIM_CLUSTER_SHARDS);
    struct sim_redis *former = sim_cluster_master(shard), *next = former->replica;
    if (!next || !is_up(next) || !is_up(former))
        return;
    if (count_lost(former, next) > 0)
        sim_count(SIM_CLUSTER_LOST);
    sim_tell("%s fails over to %s%s", former->name, next->name, split ? ", and does not know" : "");
    if (split) {
        sim_cluster_set_apart(former, true);
    } else {
        sim_redis_kill(former);
        say_down(former, true);
        sim_sleep_us(sim_below(AS_LONG_AS_US));
        say_down(former, false);
    }
    promote(shard, next, former);
    tell_all_but(former);
    if (split)
        stand_apart(former);
    else
        sim_redis_restart(former);
    sim_cluster_learn_all(former);
    sim_redis_demote(former, next, sim_one_in(2));
    sim_tell("%s is the replica of %s", former->name, next->name);
    sim_count(split ? SIM_REDIS_SPLIT : SIM_REDIS_FAILOVER);
    sim_count(SIM_CLUSTER_PROMOTED);
}

/* As by CLUSTER FAILOVER: the replica has all before it takes over. */
static bool turn_over(int shard)
{
    struct sim_redis *former = sim_cluster_master(shard), *next = former->replica;
    if (!next || !is_up(next) || !is_up(former))
        return false;
    sim_tell("%s gives its slots to its replica %s", former->name, next->name);
    sim_redis_copy(&next->data, &former->data);
    promote(shard, next, former);
    sim_cluster_learn_all(former);
    sim_redis_demote(former, next, false);
    tell_all_but(former);
    sim_count(SIM_CLUSTER_TURN);
    return true;
}

/* -- nodes get new addresses ------------------------------------------------------------------ */

static int shard_of(const struct sim_redis *redis)
{
    return redis->number % SIM_CLUSTER_SHARDS;
}

/* A replica is replaced by one at another port; a master becomes a replica before. The first node
 * keeps its address: an endpoint of which no node is left leads nowhere. */
static void roll(void)
{
    struct sim_redis *redis = sim_redis_node(1 + sim_below(SIM_CLUSTER_NODES - 1));
    if (!is_up(redis) || (!redis->is_replica && !turn_over(shard_of(redis))))
        return;
    sim_redis_kill(redis);
    sim_sleep_us(sim_below(AS_LONG_AS_US));
    redis->host.port++;
    sim_redis_restart(redis);
    sim_cluster_learn_all(redis);
    sim_redis_demote(redis, sim_cluster_master(shard_of(redis)), false);
    sim_tell("%s is back at port %d", redis->name, redis->host.port);
    tell_all_but(redis);
    sim_count(SIM_CLUSTER_ROLL);
}

void sim_cluster_back(struct sim_redis *redis)
{
    if (redis->is_replica)
        sim_redis_wrote(sim_cluster_master(shard_of(redis)));
}

/* -- slots move ------------------------------------------------------------------------------- */

/* Of a key at one of the masters, or else of a lock that may come. */
static int any_slot(void)
{
    const struct sim_redis_data *data =
        &sim_cluster_master((int)sim_below(SIM_CLUSTER_SHARDS))->data;
    char name[32];
    if (data->n > 0)
        return sim_redis_slot(data->keys[sim_below((uint32_t)data->n)].name);
    snprintf(name, sizeof name, "lock:item:%u", sim_below(sim_world.is.items));
    return sim_redis_slot(name);
}

static void move_slot(void)
{
    const int slot = any_slot();
    const int from = sim_cluster_shard(slot),
              to = (from + 1 + (int)sim_below(SIM_CLUSTER_SHARDS - 1)) % SIM_CLUSTER_SHARDS;
    if (!is_up(sim_cluster_master(from)) || !is_up(sim_cluster_master(to)))
        return;
    sim_tell("slot %d moves from %s to %s", slot, sim_cluster_master(from)->name,
             sim_cluster_master(to)->name);
    sim_cluster_move_begin(slot, to);
    do
        sim_sleep_us(INT64_C(1) << sim_below(16));
    while (sim_cluster_move_key());
    sim_cluster_move_end();
    tell_all_but(NULL);
    sim_tell("slot %d has moved", slot);
    sim_count(SIM_CLUSTER_SLOT);
}

void sim_cluster_fault(enum sim_event kind)
{
    switch (kind) {
    case SIM_REDIS_FAILOVER:
    case SIM_REDIS_SPLIT:
        fail_over(kind == SIM_REDIS_SPLIT);
        return;
    case SIM_CLUSTER_TURN:
        turn_over((int)sim_below(SIM_CLUSTER_SHARDS));
        return;
    case SIM_CLUSTER_ROLL:
        roll();
        return;
    default:
        move_slot();
        return;
    }
}
