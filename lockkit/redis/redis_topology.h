/*
 * Where the Redis of an endpoint is: one node, the master that Sentinels name, or the masters of a
 * cluster; and how to connect to it.
 *
 * Threading: parse once; the rest may be called from any thread.
 */
#ifndef LOCKKIT_REDIS_TOPOLOGY_H
#define LOCKKIT_REDIS_TOPOLOGY_H

#include "redis_connection.h"

#include <stdatomic.h>

enum {
    LK_REDIS_SEEDS_MAX = 16, /* hosts of one endpoint */
    LK_REDIS_MASTER_MAX = 63 /* bytes of a master's name */
};

enum lk_redis_kind { LK_REDIS_NODE, LK_REDIS_SENTINEL, LK_REDIS_CLUSTER };

typedef struct lk_redis_topology {
    enum lk_redis_kind kind;
    lk_redis_url node; /* the node; else login and database for every node */
    size_t n_seeds;    /* Sentinels, or nodes of the cluster to begin with */
    lk_redis_url seed[LK_REDIS_SEEDS_MAX];
    char master[LK_REDIS_MASTER_MAX + 1]; /* its name at the Sentinels */
    _Atomic size_t first;                 /* the seed that answered last is asked first */
} lk_redis_topology;

/*
 * Parses what lk_redis_url_parse() does, and
 *     redis+sentinel://[[user]:password@]host[:port],host[:port].../MASTER[/db]   port 26379
 *     redis+cluster://[[user]:password@]host[:port],host[:port]...                port 6379
 * The login is for the Redis nodes; without one it is that of LOCKKIT_REDIS_AUTH in the
 * environment. The login for the Sentinels is that of LOCKKIT_SENTINEL_AUTH. Neither set: no login.
 * Returns LK_OK, or LK_INVALID with a message that never contains the password.
 */
lk_status lk_redis_topology_parse(const char *text, lk_redis_topology *ret, lk_error *error);

/* Opens a closed connection to the node, or to the present master: the Sentinels are asked in turn,
 * and the node that they name must agree (ROLE). Not for a cluster, see redis_cluster.h. Returns
 * LK_OK, LK_UNAVAILABLE (connection->message says why), LK_PROTOCOL.
 * After https://redis.io/docs/latest/develop/reference/sentinel-clients/ */
lk_status lk_redis_topology_connect(lk_redis_topology *topology, lk_redis_connection *connection,
                                    int64_t deadline_us);

/* The instant at half of the time that is left: a server that hangs leaves time for the next one.
 */
int64_t lk_redis_half_way_us(int64_t deadline_us);

#endif
