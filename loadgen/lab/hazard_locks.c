/* The lock servers that a guard needs, and what they say of a lock. */
#include "hazard_world.h"

#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int alive(struct sandbox_server *server)
{
    if (server == NULL)
        return -1;
    return sandbox_alive(server) || sandbox_restart(server) == 0 ? 0 : -1;
}

static int use_one(struct world *world, struct sandbox_server *server)
{
    world->locks = server;
    if (alive(server) != 0)
        return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", server->url);
    return 0;
}

static int use_redis(struct world *world, enum hazard_redis kind)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    static const char *const small[] = {"--maxmemory-policy", "volatile-lru", NULL};
    static const char *const *const extra[WORLD_REDIS_KINDS] = {
        [REDIS_DURABLE] = durable, [REDIS_SMALL] = small};
    if (world->redis[kind] == NULL)
        world->redis[kind] = sandbox_redis(world->sandbox, extra[kind]);
    return use_one(world, world->redis[kind]);
}

/* After a failover nothing is as it was: each run gets servers of its own. */
static int use_sentinel(struct world *world)
{
    sandbox_close(world->failover_sandbox);
    world->failover_sandbox = NULL;
    if (sandbox_open(&world->failover_sandbox) != 0 ||
        sandbox_sentinel(world->failover_sandbox, &world->failover) != 0)
        return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", world->failover.url);
    return 0;
}

static int use_nodes(struct world *world)
{
    size_t length = 0;
    for (int i = 0; i < WORLD_NODES; i++) {
        if (world->nodes[i] == NULL)
            world->nodes[i] = sandbox_redis_with_clock(world->sandbox, world->clock_shim);
        if (alive(world->nodes[i]) != 0 || sandbox_set_clock(world->nodes[i], 0) != 0)
            return -1;
        length += (size_t)snprintf(world->endpoints + length, sizeof world->endpoints - length,
                                   "%s%s", i > 0 ? "," : "", world->nodes[i]->url);
    }
    return 0;
}

static int use_zookeeper(struct world *world)
{
    if (world->zookeeper.n == 0 && sandbox_zookeeper(world->sandbox, 1, &world->zookeeper) != 0)
        return -1;
    if (use_one(world, world->zookeeper.server[0]) != 0)
        return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", world->zookeeper.url);
    return sandbox_zookeeper_agree(&world->zookeeper);
}

static int use_ensemble(struct world *world)
{
    if (world->ensemble.n == 0 &&
        sandbox_zookeeper(world->sandbox, SANDBOX_ZOOKEEPERS_MAX, &world->ensemble) != 0)
        return -1;
    for (int i = 0; i < world->ensemble.n; i++)
        if (alive(world->ensemble.server[i]) != 0)
            return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", world->ensemble.url);
    return sandbox_zookeeper_agree(&world->ensemble);
}

int world_choose_locks(struct world *world, const char *guard, const struct hazard_setting *with)
{
    world->locks = NULL;
    world->endpoints[0] = '\0';
    if (begins(guard, "redis-") && with->redis == REDIS_SENTINEL)
        return use_sentinel(world);
    if (begins(guard, "redis-"))
        return use_redis(world, with->redis);
    if (strcmp(guard, "redlock") == 0)
        return use_nodes(world);
    if (begins(guard, "zk-"))
        return with->servers > 1 ? use_ensemble(world) : use_zookeeper(world);
    if (begins(guard, "sql-unique") || begins(guard, "pg-"))
        snprintf(world->endpoints, sizeof world->endpoints, "%s", world->postgres->url);
    if (strcmp(guard, "memcached") != 0)
        return 0;
    if (world->memcached == NULL)
        world->memcached = sandbox_memcached(world->sandbox, NULL);
    return use_one(world, world->memcached);
}

void world_close_inspector(struct world *world)
{
    lk_close(world->inspector);
    world->inspector = NULL;
}

static bool inspect(struct world *world, const char *guard, const char *key, lk_lock_info *ret)
{
    char wanted[sizeof world->inspects];
    snprintf(wanted, sizeof wanted, "%s %s", guard, world->endpoints);
    if (world->inspector == NULL || strcmp(wanted, world->inspects) != 0) {
        lk_error error;
        world_close_inspector(world);
        if (lk_open(guard, world->endpoints, NULL, &world->inspector, &error) != LK_OK) {
            fprintf(stderr, "hazards: %s: %s\n", guard, error.message);
            return false;
        }
        snprintf(world->inspects, sizeof world->inspects, "%s", wanted);
    }
    return lk_inspect(world->inspector, key, ret) == LK_OK;
}

int world_is_held(struct world *world, const char *guard, const char *key)
{
    lk_lock_info info;
    return inspect(world, guard, key, &info) ? info.holders > 0 : -1;
}

bool world_queues(struct world *world, const char *guard, const char *key, int n)
{
    lk_lock_info info;
    const lk_provider_info *provider = lk_provider_find(guard);
    if (provider == NULL || (provider->caps & LK_CAP_FAIR) == 0)
        return true;
    return inspect(world, guard, key, &info) && info.waiters >= (uint32_t)n;
}
