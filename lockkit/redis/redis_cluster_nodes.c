#include "redis_cluster_nodes.h"

#include <stdio.h>
#include <string.h>

void lk_redis_cluster_url(const lk_redis_cluster *cluster, const char *host, size_t n_host,
                          int port, lk_redis_url *ret)
{
    *ret = cluster->topology->node; /* the login */
    snprintf(ret->host, sizeof ret->host, "%.*s", (int)n_host, host);
    ret->port = port;
}

void lk_redis_cluster_unpin(lk_redis_cluster *cluster, int node)
{
    if (node == NO_NODE)
        return;
    pthread_mutex_lock(&cluster->pins);
    cluster->pinned[node]--;
    pthread_mutex_unlock(&cluster->pins);
}

/* Puts a connection into the entry, closes the old one, and pins it. The mutex is held. */
static int put(lk_redis_cluster *cluster, int node, lk_redis *redis)
{
    pthread_mutex_lock(&cluster->pins);
    lk_redis *old = cluster->node[node];
    cluster->node[node] = redis;
    cluster->pinned[node]++;
    pthread_mutex_unlock(&cluster->pins);
    atomic_store(&cluster->hangs_until_us[node], 0);
    if (old != NULL)
        lk_redis_close(old);
    return node;
}

/* An entry without a slot and without a call, pinned. NO_NODE: there is none. */
static int take_idle(lk_redis_cluster *cluster)
{
    bool has_slot[LK_REDIS_NODES_MAX] = {false};
    int idle = NO_NODE;
    pthread_mutex_lock(&cluster->pins);
    for (int slot = 0; slot < LK_REDIS_SLOTS; slot++) {
        int node = atomic_load_explicit(&cluster->node_of[slot], memory_order_relaxed);
        if (node != NO_NODE)
            has_slot[node] = true;
    }
    for (int i = 0; i < LK_REDIS_NODES_MAX && idle == NO_NODE; i++)
        if (!has_slot[i] && cluster->pinned[i] == 0)
            idle = i;
    if (idle != NO_NODE)
        cluster->pinned[idle]++;
    pthread_mutex_unlock(&cluster->pins);
    return idle;
}

int lk_redis_cluster_add(lk_redis_cluster *cluster, const char *host, size_t n_host, int port)
{
    int n = cluster->n_nodes;
    lk_redis_url url;
    lk_redis *redis;
    lk_redis_cluster_url(cluster, host, n_host, port, &url);
    for (int i = 0; i < n; i++) {
        const lk_redis_url *other = lk_redis_endpoint(cluster->node[i]);
        if (other->port == port && strcmp(other->host, url.host) == 0) {
            pthread_mutex_lock(&cluster->pins);
            cluster->pinned[i]++;
            pthread_mutex_unlock(&cluster->pins);
            return i;
        }
    }
    int entry = n < LK_REDIS_NODES_MAX ? n : take_idle(cluster);
    if (entry == NO_NODE || lk_redis_open_node(cluster->context, &url, &redis, NULL) != LK_OK) {
        lk_redis_cluster_unpin(cluster, n < LK_REDIS_NODES_MAX ? NO_NODE : entry);
        snprintf(cluster->message, sizeof cluster->message,
                 "all %d entries for nodes of the cluster are in use", n);
        return NO_NODE;
    }
    put(cluster, entry, redis);
    if (n < LK_REDIS_NODES_MAX)
        atomic_store(&cluster->n_nodes, n + 1);
    else
        lk_redis_cluster_unpin(cluster, entry); /* the pin of take_idle() */
    return entry;
}

int lk_redis_cluster_look_up(lk_redis_cluster *cluster, int slot, int failed)
{
    int node = NO_NODE;
    pthread_mutex_lock(&cluster->pins);
    if (slot != NO_NODE)
        node = atomic_load_explicit(&cluster->node_of[slot], memory_order_acquire);
    for (int i = 0; i < LK_REDIS_SLOTS && slot == NO_NODE && node == NO_NODE; i++) {
        int other = atomic_load_explicit(&cluster->node_of[i], memory_order_acquire);
        if (other != failed)
            node = other;
    }
    if (node != NO_NODE)
        cluster->pinned[node]++;
    pthread_mutex_unlock(&cluster->pins);
    return node;
}
