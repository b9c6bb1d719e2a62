/* The list of built-in providers, in the order in which they are shown. Each is in the file of its
 * name in lockkit/guards. */
#ifndef LOCKKIT_PROVIDERS_H
#define LOCKKIT_PROVIDERS_H

#include "provider.h"

#ifdef LK_WITHOUT_ZOOKEEPER /* make WITHOUT=zookeeper */
#define LK_PROVIDERS_OF_ZOOKEEPER(X)
#else
#define LK_PROVIDERS_OF_ZOOKEEPER(X) X(zk_ephemeral) X(zk_sequential) X(zk_readwrite)
#endif

#define LK_PROVIDER_MAP(X)                                                                         \
    X(mutex)                                                                                       \
    X(redis_setnx)                                                                                 \
    X(redis_setnx_expire)                                                                          \
    X(redis_set)                                                                                   \
    X(redis_getset)                                                                                \
    X(redis_token)                                                                                 \
    X(redis_reentrant)                                                                             \
    X(redis_fair)                                                                                  \
    X(redis_readwrite)                                                                             \
    X(redis_semaphore)                                                                             \
    X(redlock)                                                                                     \
    X(memcached)                                                                                   \
    LK_PROVIDERS_OF_ZOOKEEPER(X)                                                                   \
    X(sql_unique)                                                                                  \
    X(sql_unique_forever)                                                                          \
    X(pg_advisory)                                                                                 \
    X(pg_advisory_xact)

#define LK_PROVIDER_DECLARE(name) extern const lk_provider lk_##name;
LK_PROVIDER_MAP(LK_PROVIDER_DECLARE)
#undef LK_PROVIDER_DECLARE

extern const lk_provider *const lk_providers[]; /* NULL-terminated */

#endif
