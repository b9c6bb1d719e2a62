/* Five independent Redis nodes, and redlock. */
#include "lock_world.h"
#include "redis.h"

#include <stdio.h>

struct sandbox_server *world_nodes[WORLD_NODES];

static const char *const guards[] = {"redlock", NULL};

static bool start(struct sandbox *sandbox)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        world_nodes[i] = sandbox_redis(sandbox, NULL);
        if (world_nodes[i] == NULL)
            return false;
    }
    return true;
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    int length = 0;
    for (int i = 0; i < WORLD_NODES; i++)
        length += snprintf(ret + length, size - (size_t)length, "%sredis://127.0.0.1:%d",
                           i > 0 ? "," : "",
                           i == 0 && proxy_port != 0 ? proxy_port : world_nodes[i]->port);
}

static int port(void)
{
    return world_nodes[0]->port;
}

static struct sandbox_server *server(size_t i)
{
    return i < WORLD_NODES ? world_nodes[i] : NULL;
}

static void wipe(void)
{
    for (int i = 0; i < WORLD_NODES; i++)
        redis_do(world_nodes[i], "FLUSHALL");
}

int world_standing(const char *key)
{
    int n = 0;
    for (int i = 0; i < WORLD_NODES; i++)
        n += redis_do(world_nodes[i], "EXISTS %s", key) == 1;
    return n;
}

/* A lock that remains on one node is not free. */
static bool exists(const char *key)
{
    return world_standing(key) > 0;
}

static bool remove_lock(const char *key)
{
    int n = 0;
    for (int i = 0; i < WORLD_NODES; i++)
        n += redis_do(world_nodes[i], "DEL %s", key) == 1;
    return n > 0;
}

/* How long a majority of the nodes keeps it. */
static int64_t left_ms(const char *key)
{
    int64_t left[WORLD_NODES];
    for (int i = 0; i < WORLD_NODES; i++) {
        left[i] = redis_do(world_nodes[i], "PTTL %s", key);
        for (int j = i; j > 0 && left[j] > left[j - 1]; j--) {
            int64_t longer = left[j];
            left[j] = left[j - 1];
            left[j - 1] = longer;
        }
    }
    return left[WORLD_NODES / 2] < 0 ? -1 : left[WORLD_NODES / 2];
}

static int64_t leftovers(void)
{
    int64_t n = 0;
    for (int i = 0; i < WORLD_NODES; i++)
        n += redis_do(world_nodes[i], "DBSIZE");
    return n;
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard;
    return lease_ms;
}

const struct lock_family family_redlock = {
    .name = "redlock",
    .guards = guards,
    .fast = true,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .server = server,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
