#include "all_servers.h"

#include <stdio.h>
#include <string.h>

bool all_servers_open(struct sandbox *sandbox, struct all_servers *ret)
{
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0, length = 0; i < ALL_REDIS; i++) {
        ret->redis[i] = sandbox_redis(sandbox, NULL);
        if (!ret->redis[i])
            return false;
        length += (size_t)snprintf(ret->redis_urls + length, sizeof ret->redis_urls - length,
                                   "%s%s", i > 0 ? "," : "", ret->redis[i]->url);
    }
    ret->memcached = sandbox_memcached(sandbox, NULL);
    ret->postgres = sandbox_postgres(sandbox, NULL);
    return ret->memcached && ret->postgres && sandbox_zookeeper(sandbox, 1, &ret->zookeeper) == 0;
}

void all_servers_args(const struct all_servers *servers, const char *const *more,
                      const char *ret[ALL_ARGS_MAX + 1])
{
    const char *const own[] = {"--redis",     servers->redis_urls,
                               "--memcached", servers->memcached->url,
                               "--zookeeper", servers->zookeeper.url};
    size_t n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        ret[n++] = own[i];
    for (; *more && n < ALL_ARGS_MAX; more++)
        ret[n++] = *more;
    ret[n] = NULL;
}
