/* A Redis Cluster of three masters. The guards must find the node of each key, script and channel.
 */
#include "lock_world.h"
#include "redis.h"

#include <stdio.h>

static struct sandbox_cluster cluster;

static const char *const guards[] = {
    "redis-token", "redis-reentrant", "redis-fair", "redis-readwrite", "redis-semaphore", NULL,
};

static bool start(struct sandbox *sandbox)
{
    return sandbox_cluster(sandbox, false, &cluster) == 0;
}

/* No proxy: the nodes give out their own addresses, so clients would bypass it. */
static void endpoints(char *ret, size_t size, int proxy_port)
{
    (void)proxy_port;
    snprintf(ret, size, "%s", cluster.url);
}

static int port(void)
{
    return 0;
}

/* The node of the key answers with a number of at least 0, the others with an error. */
static int64_t ask(const char *command, const char *key)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        int64_t answer = redis_do(cluster.master[i], command, key);
        if (answer >= 0)
            return answer;
    }
    return -1;
}

static void wipe(void)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        redis_do(cluster.master[i], "FLUSHALL");
}

static bool exists(const char *key)
{
    return ask("EXISTS %s", key) == 1;
}

static bool remove_lock(const char *key)
{
    return ask("DEL %s", key) == 1;
}

static int64_t left_ms(const char *key)
{
    return ask("PTTL %s", key); /* a key without a lease counts as no key: both are below 0 */
}

static int64_t leftovers(void)
{
    int64_t n = 0;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        n += redis_do(cluster.master[i], "EVAL %s 0",
                      "return #redis.call('KEYS', '*') - #redis.call('KEYS', '*:fence')");
    return n;
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard;
    return lease_ms;
}

const struct lock_family family_cluster = {
    .name = "cluster",
    .guards = guards,
    .fast = true,
    .start = start,
    .endpoints = endpoints,
    .port = port,
    .wipe = wipe,
    .exists = exists,
    .remove = remove_lock,
    .left_ms = left_ms,
    .leftovers = leftovers,
    .crash_bound_ms = crash_bound_ms,
};
