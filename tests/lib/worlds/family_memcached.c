/* memcached, and its guard. */
#include "lock_world.h"
#include "memcached.h"

#include <stdio.h>
#include <string.h>

enum { SECOND_MS = 1000 };

struct sandbox_server *world_memcached;

static const char *const guards[] = {"memcached", NULL};

static bool start(struct sandbox *sandbox)
{
    world_memcached = sandbox_memcached(sandbox, NULL);
    return world_memcached != NULL;
}

static void endpoints(char *ret, size_t size, int proxy_port)
{
    snprintf(ret, size, "127.0.0.1:%d", proxy_port != 0 ? proxy_port : world_memcached->port);
}

static int port(void)
{
    return world_memcached->port;
}

static struct sandbox_server *server(size_t i)
{
    return i == 0 ? world_memcached : NULL;
}

static void wipe(void)
{
    char line[MEMCACHED_LINE_MAX];
    memcached_ask(world_memcached, line, "flush_all\r\n");
}

static bool exists(const char *key)
{
    char line[MEMCACHED_LINE_MAX];
    return memcached_ask(world_memcached, line, "mg %s\r\n", key) && strcmp(line, "HD") == 0;
}

static bool remove_lock(const char *key)
{
    char line[MEMCACHED_LINE_MAX];
    return memcached_ask(world_memcached, line, "delete %s\r\n", key) &&
           strcmp(line, "DELETED") == 0;
}

static int64_t left_ms(const char *key)
{
    char line[MEMCACHED_LINE_MAX];
    long long left_s = -1;
    if (!memcached_ask(world_memcached, line, "mg %s t\r\n", key) ||
        sscanf(line, "HD t%lld", &left_s) != 1)
        return -1;
    return left_s < 0 ? -1 : left_s * SECOND_MS;
}

static int64_t leftovers(void)
{
    return memcached_count(world_memcached);
}

static int64_t crash_bound_ms(const lk_provider_info *guard, int64_t lease_ms)
{
    (void)guard;
    return (lease_ms + SECOND_MS - 1) / SECOND_MS * SECOND_MS + SECOND_MS;
}

const struct lock_family family_memcached = {
    .name = "memcached",
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
