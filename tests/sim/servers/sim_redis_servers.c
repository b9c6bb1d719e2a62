/* The servers: replicas, Sentinels, what is done to them. */
#include "sim_redis_cluster.h"
#include "sim_threads.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PORT = 6379,
    SENTINEL_PORT = 26379,
    SENTINELS = 2,
    SENTINEL_LATE_US = 200000,
    COPY_AGAIN_US = 10000,
    CLOCK_OFF_US = 500000 /* at most */
};

struct sentinel {
    struct sim_host host;
    int master; /* the number of the node that it takes for the master */
};

static struct {
    struct sim_redis nodes[SIM_REDIS_NODES_MAX];
    size_t n;
    struct sentinel sentinels[SENTINELS];
} at;

int64_t sim_redis_now_us(const struct sim_redis *redis)
{
    return sim_wall_begin_us + sim_now_us() + redis->ahead_us;
}

size_t sim_redis_count(void)
{
    return at.n;
}

struct sim_redis *sim_redis_node(size_t i)
{
    return &at.nodes[i];
}

/* -- replica: has the state of its master as of a moment ago ---------------------------------- */

void sim_redis_wrote(struct sim_redis *redis)
{
    if (!redis->replica || redis->copy_us > 0)
        return;
    redis->copy_us = sim_now_us() + 100 + (INT64_C(100) << sim_below(10));
    sim_wake(redis, 1);
}

static void *replicate(void *arg)
{
    struct sim_redis *redis = arg;
    for (;;) {
        bool copied = redis->replica && redis->copy_us > 0 && sim_now_us() >= redis->copy_us &&
                      !redis->host.down && !redis->replica->host.down && !redis->host.unreachable &&
                      !redis->replica->host.unreachable;
        if (copied) {
            redis->copy_us = 0;
            sim_redis_copy(&redis->replica->data, &redis->data);
        }
        sim_redis_end_waits(redis, copied);
        sim_wait(redis,
                 redis->replica && redis->copy_us > 0 ? sim_now_us() + COPY_AGAIN_US : SIM_FOREVER);
    }
    return NULL;
}

/* -- Sentinels -------------------------------------------------------------------------------- */

/* SENTINEL GET-MASTER-ADDR-BY-NAME name */
static void sentinel_on_bytes(struct sim_host *host, struct sim_wire *wire)
{
    const struct sentinel *sentinel = (struct sentinel *)host;
    char *words[SIM_REDIS_WORDS_MAX], *next;
    int n;
    while (wire->asked.n > 0 &&
           (next = sim_redis_parse(wire->asked.at, wire->asked.at + wire->asked.n, &n, words))) {
        struct sim_bytes answer = {0};
        assert(n == 3 && strcasecmp(words[0], "SENTINEL") == 0);
        sim_resp_array(&answer, 2);
        sim_resp_text(&answer, at.nodes[sentinel->master].name);
        sim_resp_text(&answer, "6379");
        sim_net_answer(wire, answer.at, answer.n);
        free(answer.at);
        sim_bytes_take(&wire->asked, (size_t)(next - wire->asked.at));
    }
}

/* -- faults ----------------------------------------------------------------------------------- */

static void forget(struct sim_redis *redis)
{
    sim_redis_clear(&redis->data);
    sim_redis_forget_scripts(redis);
    redis->copy_us = 0;
}

void sim_redis_kill(struct sim_redis *redis)
{
    redis->host.down = true;
    sim_net_break(&redis->host);
    forget(redis);
}

void sim_redis_restart(struct sim_redis *redis)
{
    redis->host.down = false;
    redis->host.stopped_until_us = 0;
    if (redis->replica)
        sim_redis_wrote(redis); /* the replica of an empty master becomes empty */
}

void sim_redis_reach(struct sim_redis *redis)
{
    redis->host.unreachable = false;
    sim_net_changed();
}

size_t sim_redis_delete(struct sim_redis *redis, const char *part)
{
    size_t deleted = 0;
    for (size_t i = 0; i < redis->data.n;)
        if (strstr(redis->data.keys[i].name, part)) {
            sim_redis_remove(&redis->data, &redis->data.keys[i]);
            deleted++;
        } else {
            i++;
        }
    sim_redis_wrote(redis);
    return deleted;
}

size_t sim_redis_delete_endless(struct sim_redis *redis)
{
    size_t deleted = 0;
    for (size_t i = 0; i < redis->data.n;)
        if (redis->data.keys[i].type == SIM_REDIS_STRING && redis->data.keys[i].until_ms < 0) {
            sim_redis_remove(&redis->data, &redis->data.keys[i]);
            deleted++;
        } else {
            i++;
        }
    sim_redis_wrote(redis);
    return deleted;
}

/* -- failover --------------------------------------------------------------------------------- */

struct sim_redis *sim_redis_master(void)
{
    return &at.nodes[at.sentinels[0].master];
}

void sim_redis_promote(struct sim_redis *next, struct sim_redis *former)
{
    next->is_replica = false;
    former->replica = NULL;
    former->copy_us = 0;
}

void sim_redis_tell_sentinels(const struct sim_redis *master)
{
    const uint32_t first = sim_below(SENTINELS);
    for (uint32_t i = 0; i < SENTINELS; i++) {
        at.sentinels[(first + i) % SENTINELS].master = master->number;
        sim_sleep_us(sim_below(SENTINEL_LATE_US));
    }
}

void sim_redis_demote(struct sim_redis *former, struct sim_redis *next, bool hangs_up)
{
    former->is_replica = true;
    next->replica = former;
    sim_redis_copy(&former->data, &next->data);
    if (hangs_up)
        sim_net_break(&former->host);
    sim_wake(former, 1);
}

/* -- the servers ------------------------------------------------------------------------------ */

void sim_redis_begin(void)
{
    memset(&at, 0, sizeof at);
    sim_cluster_end();
    sim_net_begin();
}

static void add_node(void)
{
    struct sim_redis *redis = &at.nodes[at.n];
    *redis = (struct sim_redis){.number = (int)at.n};
    redis->usual_ahead_us = redis->ahead_us = sim_below(2 * CLOCK_OFF_US) - (int64_t)CLOCK_OFF_US;
    snprintf(redis->name, sizeof redis->name, "r%zu", ++at.n);
    redis->host = (struct sim_host){.name = redis->name,
                                    .port = PORT,
                                    .on_bytes = sim_redis_on_bytes,
                                    .on_end = sim_redis_on_end};
    sim_net_add(&redis->host);
    sim_spawn(SIM_WORLD, redis->name, replicate, redis);
}

static void pair(struct sim_redis *master, struct sim_redis *replica)
{
    master->replica = replica;
    replica->is_replica = true;
}

void sim_redis_start(enum sim_redis_kind kind)
{
    static const char *const names[SENTINELS] = {"s1", "s2"};
    const size_t n = kind == SIM_REDIS_FIVE       ? 5
                     : kind == SIM_REDIS_SENTINEL ? 2
                     : kind == SIM_REDIS_ONE      ? 1
                     : kind == SIM_REDIS_CLUSTER  ? SIM_CLUSTER_NODES
                                                  : 0;
    while (at.n < n)
        add_node();
    if (kind == SIM_REDIS_CLUSTER) {
        sim_cluster_begin();
        for (int i = 0; i < SIM_CLUSTER_SHARDS; i++)
            pair(&at.nodes[i], &at.nodes[i + SIM_CLUSTER_SHARDS]);
    }
    if (kind != SIM_REDIS_SENTINEL)
        return;
    pair(&at.nodes[0], &at.nodes[1]);
    for (int i = 0; i < SENTINELS; i++) {
        at.sentinels[i].host = (struct sim_host){
            .name = names[i], .port = SENTINEL_PORT, .on_bytes = sentinel_on_bytes};
        sim_net_add(&at.sentinels[i].host);
    }
}

const char *sim_redis_endpoint(enum sim_redis_kind kind)
{
    switch (kind) {
    case SIM_REDIS_FIVE:
        return "redis://r1,redis://r2,redis://r3,redis://r4,redis://r5";
    case SIM_REDIS_SENTINEL:
        return "redis+sentinel://s1,s2/main";
    case SIM_REDIS_CLUSTER:
        return "redis+cluster://r1,r2,r3";
    case SIM_REDIS_NONE:
    case SIM_REDIS_ONE:
        break;
    }
    return "redis://r1";
}
