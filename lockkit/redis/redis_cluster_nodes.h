/* Inside a cluster's client (redis_cluster.c): its nodes, one entry and one connection for each
 * address, and who uses which. */
#ifndef LOCKKIT_REDIS_CLUSTER_NODES_H
#define LOCKKIT_REDIS_CLUSTER_NODES_H

#include "redis_cluster.h"

#include <pthread.h>

enum { NO_NODE = -1 };

struct lk_redis_cluster {
    const lk_context *context;
    const lk_redis_topology *topology;
    _Atomic int16_t node_of[LK_REDIS_SLOTS]; /* index into node; NO_NODE: to be asked for */

    pthread_mutex_t mutex;        /* guards what follows, and is held while asking */
    _Atomic uint64_t n_refreshes; /* asked, with success or not */
    _Atomic int n_nodes;          /* only grows */
    int answered;                 /* node to ask first; NO_NODE: none has answered yet */
    size_t seed;                  /* likewise of the endpoint's */
    char message[LK_MESSAGE_MAX]; /* why there was no map */
    _Atomic int64_t hangs_until_us[LK_REDIS_NODES_MAX]; /* left alone before; 0: it does not hang */

    /* An entry that is pinned, or that has a slot, keeps its node. Another one is reused for a new
     * address once all are taken. Changed with both mutexes held, this one taken last. */
    pthread_mutex_t pins;
    int pinned[LK_REDIS_NODES_MAX]; /* calls that use the entry, or are about to */
    lk_redis *node[LK_REDIS_NODES_MAX];
};

/* The address with the login of the endpoint. */
void lk_redis_cluster_url(const lk_redis_cluster *cluster, const char *host, size_t n_host,
                          int port, lk_redis_url *ret);
/* The node at this address, new or not, pinned; the mutex is held. NO_NODE: no room. */
int lk_redis_cluster_add(lk_redis_cluster *cluster, const char *host, size_t n_host, int port);
/* The node of a slot, pinned; of slot NO_NODE: any but the one that failed. */
int lk_redis_cluster_look_up(lk_redis_cluster *cluster, int slot, int failed);
/* Once for each pin. NO_NODE: nothing. */
void lk_redis_cluster_unpin(lk_redis_cluster *cluster, int node);

#endif
