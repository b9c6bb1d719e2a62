/* Inside redis_cluster.c: the nodes of a cluster, with one entry and one connection per address,
 * and the number of calls that use each entry. */
#ifndef LOCKKIT_REDIS_CLUSTER_NODES_H
#define LOCKKIT_REDIS_CLUSTER_NODES_H

#include "redis_cluster.h"

#include <pthread.h>

enum { NO_NODE = -1 };

struct lk_redis_cluster {
    const lk_context *context;
    const lk_redis_topology *topology;
    _Atomic int16_t node_of[LK_REDIS_SLOTS]; /* index into node; NO_NODE: to be asked for */

    pthread_mutex_t mutex;        /* guards the next members; held while asking for the map */
    _Atomic uint64_t n_refreshes; /* attempts to get the map */
    _Atomic int n_nodes;          /* only grows */
    int answered;                 /* node to ask first; NO_NODE: none has answered yet */
    size_t seed;                  /* the same among the endpoint's */
    char message[LK_MESSAGE_MAX]; /* why there was no map */
    _Atomic int64_t hangs_until_us[LK_REDIS_NODES_MAX]; /* skipped before; 0: it does not hang */

    /* An entry that is pinned or has a slot keeps its node. Any other entry may be reused for a new
     * address. Entries change while both mutexes are held. This one is taken last. */
    pthread_mutex_t pins;
    int pinned[LK_REDIS_NODES_MAX]; /* calls that use the entry or are about to */
    lk_redis *node[LK_REDIS_NODES_MAX];
};

/* The address with the login of the endpoint. */
void lk_redis_cluster_url(const lk_redis_cluster *cluster, const char *host, size_t n_host,
                          int port, lk_redis_url *ret);
/* The node at this address, pinned. It is added if it is new. The mutex is held. NO_NODE: all
 * entries are in use. */
int lk_redis_cluster_add(lk_redis_cluster *cluster, const char *host, size_t n_host, int port);
/* The node of a slot, pinned. Slot NO_NODE: any node but the one that failed. */
int lk_redis_cluster_look_up(lk_redis_cluster *cluster, int slot, int failed);
/* To be called once for each pin. NO_NODE: does nothing. */
void lk_redis_cluster_unpin(lk_redis_cluster *cluster, int node);

#endif
