/* A Redis master with three Sentinels. The guards must find the master. */
#include "lock_world.h"
#include "redis.h"

#include <stdio.h>

static struct sandbox_sentinel sentinel;

static const char *const guards[] = {
    "redis-token",
    "redis-reentrant",
    "redis-fair",
    NULL,
};

static bool start(struct sandbox *sandbox)
{
    return sandbox_sentinel(sandbox, &sentinel) == 0;
}

/* No proxy: the Sentinels give out the master's own address, so clients would bypass it. */
static void endpoints(char *ret, size_t size, int proxy_port)
{
    (void)proxy_port;
    snprintf(ret, size, "%s", sentinel.url);
}

static int port(void)
{
    return 0;
}

static void wipe(void)
{
    redis_do(sentinel.master, "FLUSHALL");
}

static bool exists(const char *key)
{
    return redis_do(sentinel.master, "EXISTS %s", key) == 1;
}

static bool remove_lock(const char *key)
{
    return redis_do(sentinel.master, "DEL %s", key) == 1;
}

static int64_t left_ms(const char *key)
{
    int64_t left = redis_do(sentinel.master, "PTTL %s", key);
    return left < 0 ? -1 : left;
}

static int64_t leftovers(void)
{
    return redis_do(sentinel.master, "EVAL %s 0",
                    "return #redis.call('KEYS', '*') - #redis.call('KEYS', '*:fence')");
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard;
    return lease_ms;
}

const struct lock_family family_sentinel = {
    .name = "sentinel",
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
