#include "redis_cluster_nodes.h"

#include "number.h"
#include "redis_mux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKS_MAX = 8, PORT_MAX = 65535 };

/* -- the map of slots ------------------------------------------------------------------------- */

/* A map that is being read. Its nodes are pinned until the map is in use. */
struct map {
    int16_t node_of[LK_REDIS_SLOTS];
    bool has[LK_REDIS_NODES_MAX];
};

/* One range: first slot, last slot, [host, port, ...] of the master, replicas. False: malformed. */
static bool read_range(lk_redis_cluster *cluster, const redisReply *range,
                       const lk_redis_url *asked, struct map *map)
{
    if (range->elements < 3 || range->element[0]->type != REDIS_REPLY_INTEGER ||
        range->element[1]->type != REDIS_REPLY_INTEGER || range->element[2]->elements < 2)
        return false;
    long long from = range->element[0]->integer, to = range->element[1]->integer;
    const redisReply *host = range->element[2]->element[0], *port = range->element[2]->element[1];
    if (from < 0 || to >= LK_REDIS_SLOTS || port->type != REDIS_REPLY_INTEGER ||
        port->integer <= 0 || port->integer > PORT_MAX)
        return false;
    bool named =
        host->type == REDIS_REPLY_STRING && host->len > 0; /* no name: the node that was asked */
    int node =
        named ? lk_redis_cluster_add(cluster, host->str, host->len, (int)port->integer)
              : lk_redis_cluster_add(cluster, asked->host, strlen(asked->host), (int)port->integer);
    for (long long slot = from; slot <= to; slot++)
        map->node_of[slot] = (int16_t)node;
    if (node != NO_NODE && map->has[node])
        lk_redis_cluster_unpin(cluster, node); /* one pin is enough */
    else if (node != NO_NODE)
        map->has[node] = true;
    return true;
}

static bool read_map(lk_redis_cluster *cluster, const redisReply *reply, const lk_redis_url *asked)
{
    struct map map = {.has = {false}};
    bool known = reply->elements > 0;
    memset(map.node_of, 0xff, sizeof map.node_of); /* NO_NODE */
    for (size_t i = 0; i < reply->elements && known; i++)
        known = read_range(cluster, reply->element[i], asked, &map);
    for (int slot = 0; slot < LK_REDIS_SLOTS && known; slot++)
        atomic_store_explicit(&cluster->node_of[slot], map.node_of[slot], memory_order_release);
    for (int node = 0; node < LK_REDIS_NODES_MAX; node++)
        if (map.has[node])
            lk_redis_cluster_unpin(cluster, node);
    return known;
}

static bool ask_map(lk_redis_cluster *cluster, const lk_redis_url *url, int64_t deadline_us)
{
    const char *words[] = {"CLUSTER", "SLOTS"};
    lk_redis_connection connection;
    redisReply *reply = NULL;
    lk_redis_connection_init(&connection);
    lk_status status = lk_redis_connection_open(&connection, url, deadline_us);
    if (status == LK_OK) {
        atomic_fetch_add_explicit(cluster->context->commands, 1, memory_order_relaxed);
        status = lk_redis_connection_ask(&connection, 2, words, deadline_us, &reply);
    }
    if (status != LK_OK)
        memcpy(cluster->message, connection.message, sizeof cluster->message);
    bool known = reply != NULL && read_map(cluster, reply, url);
    const char *said = reply != NULL && reply->str != NULL ? reply->str : "no cluster yet?";
    if (reply != NULL && !known)
        snprintf(cluster->message, sizeof cluster->message, "%.60s:%d knows no slots: %.150s%s",
                 url->host, url->port, said,
                 strncmp(said, "NOAUTH", 6) == 0 ? LK_REDIS_LOGIN_ADVICE : "");
    freeReplyObject(reply);
    lk_redis_connection_close(&connection);
    return known;
}

/* Asks for the map, unless another thread has done so since `seen` was read. Asks the node that
 * answered last, then the other nodes, then those of the endpoint. */
static void refresh(lk_redis_cluster *cluster, uint64_t seen)
{
    const lk_redis_topology *topology = cluster->topology;
    int64_t deadline_us =
        lk_monotonic_us() + cluster->context->options->command_timeout_ms * INT64_C(1000);
    pthread_mutex_lock(&cluster->mutex);
    int n_nodes = cluster->n_nodes, asks = n_nodes < ASKS_MAX / 2 ? n_nodes : ASKS_MAX / 2;
    int first = cluster->answered == NO_NODE ? 0 : cluster->answered;
    bool known = cluster->n_refreshes != seen;
    for (int i = 0; i < asks && !known; i++) {
        int which = (first + i) % n_nodes;
        /* A copy: the entry may get another address while the answer is read. */
        const lk_redis_url url = *lk_redis_endpoint(cluster->node[which]);
        known = ask_map(cluster, &url, lk_redis_half_way_us(deadline_us));
        cluster->answered = known ? which : (which + 1) % n_nodes;
    }
    for (size_t i = 0; i < topology->n_seeds && i < ASKS_MAX - (size_t)asks && !known; i++) {
        lk_redis_url url;
        const lk_redis_url *seed = &topology->seed[cluster->seed];
        lk_redis_cluster_url(cluster, seed->host, strlen(seed->host), seed->port, &url);
        known = ask_map(cluster, &url, lk_redis_half_way_us(deadline_us));
        if (!known)
            cluster->seed = (cluster->seed + 1) % topology->n_seeds;
    }
    if (cluster->n_refreshes == seen)
        atomic_fetch_add(&cluster->n_refreshes, 1);
    pthread_mutex_unlock(&cluster->mutex);
}

/* The node is away: the map is asked for before its slots are used again. */
static void forget(lk_redis_cluster *cluster, int node)
{
    for (int slot = 0; slot < LK_REDIS_SLOTS; slot++) {
        int16_t expected = (int16_t)node;
        atomic_compare_exchange_strong(&cluster->node_of[slot], &expected, NO_NODE);
    }
}

static int find_node(lk_redis_cluster *cluster, int slot, int failed)
{
    uint64_t seen = atomic_load(&cluster->n_refreshes);
    int node = lk_redis_cluster_look_up(cluster, slot, failed);
    if (node != NO_NODE)
        return node;
    refresh(cluster, seen);
    return lk_redis_cluster_look_up(cluster, slot, failed);
}

/* -- commands --------------------------------------------------------------------------------- */

int lk_redis_slot(const char *key)
{
    size_t length = strlen(key);
    const char *open = strchr(key, '{'), *close = open != NULL ? strchr(open, '}') : NULL;
    if (close != NULL && close > open + 1) {
        key = open + 1;
        length = (size_t)(close - key);
    }
    unsigned crc = 0; /* CRC-16/XMODEM */
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1;
    }
    return (int)(crc % LK_REDIS_SLOTS);
}

/* The slot of a command's first key. All keys of a lock are in one slot. NO_NODE: no key. */
static int slot_of(int n, const char **words)
{
    static const char *const keyless[] = {"PING", "SCRIPT", "ECHO"};
    if (strncmp(words[0], "EVAL", 4) == 0)
        return n > 3 && strcmp(words[2], "0") != 0 ? lk_redis_slot(words[3]) : NO_NODE;
    for (size_t i = 0; i < sizeof keyless / sizeof keyless[0]; i++)
        if (strcmp(words[0], keyless[i]) == 0)
            return NO_NODE;
    return n > 1 ? lk_redis_slot(words[1]) : NO_NODE;
}

/* "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381"; without a host: the host of the node that
 * answers. Returns the node to go to, pinned. NO_NODE: the reply is no redirection. MOVED changes
 * the map. */
static int redirection(lk_redis_cluster *cluster, int node, const lk_redis_reply *reply,
                       bool *ret_ask)
{
    const char *text = reply->root.text;
    bool ask = reply->root.type == REDIS_REPLY_ERROR && strncmp(text, "ASK ", 4) == 0;
    bool moved = reply->root.type == REDIS_REPLY_ERROR && strncmp(text, "MOVED ", 6) == 0;
    if (!ask && !moved)
        return NO_NODE;
    int slot, port;
    const char *address = lk_digits(strchr(text, ' ') + 1, LK_REDIS_SLOTS - 1, &slot);
    const char *colon = address != NULL && *address == ' ' ? strrchr(address, ':') : NULL;
    const char *end = colon != NULL ? lk_digits(colon + 1, PORT_MAX, &port) : NULL;
    if (end == NULL || *end != '\0' || port == 0)
        return NO_NODE;
    const char *host = address + 1;
    size_t n_host = (size_t)(colon - host);
    if (n_host == 0) {
        host = lk_redis_endpoint(cluster->node[node])->host;
        n_host = strlen(host);
    }
    pthread_mutex_lock(&cluster->mutex);
    int target = lk_redis_cluster_add(cluster, host, n_host, port);
    pthread_mutex_unlock(&cluster->mutex);
    if (moved)
        atomic_store(&cluster->node_of[slot], (int16_t)target);
    *ret_ask = ask;
    return target;
}

static lk_status no_node(lk_redis_cluster *cluster, char *message)
{
    pthread_mutex_lock(&cluster->mutex);
    snprintf(message, LK_MESSAGE_MAX, "no node of the cluster has the slot: %.200s",
             cluster->message);
    pthread_mutex_unlock(&cluster->mutex);
    return LK_UNAVAILABLE;
}

/* True for all callers but one, which finds out whether the node still hangs. If that caller does
 * not tell, the next one finds out. */
static bool is_skipped(_Atomic int64_t *hangs_until_us, int64_t now_us, int64_t timeout_us)
{
    int64_t until_us = atomic_load(hangs_until_us);
    if (until_us == 0)
        return false;
    return now_us < until_us ||
           !atomic_compare_exchange_strong(hangs_until_us, &until_us, now_us + 2 * timeout_us);
}

static lk_status ask_node(lk_redis_cluster *cluster, int node, int flags, lk_redis_reply *reply,
                          int n, const char **words, char *message)
{
    int64_t timeout_us = cluster->context->options->command_timeout_ms * INT64_C(1000);
    int64_t began_us = lk_monotonic_us();
    _Atomic int64_t *hangs_until_us = &cluster->hangs_until_us[node];
    if (flags & LK_REDIS_SKIP_IF_HUNG && is_skipped(hangs_until_us, began_us, timeout_us)) {
        const lk_redis_url *url = lk_redis_endpoint(cluster->node[node]);
        snprintf(message, LK_MESSAGE_MAX, "Redis at %s:%d has not answered in time", url->host,
                 url->port);
        return LK_UNAVAILABLE;
    }
    lk_status status = lk_redis_run(cluster->node[node], flags, reply, n, words);
    int64_t now_us = lk_monotonic_us();
    if (status != LK_OK)
        lk_redis_last_error(cluster->node[node], message, LK_MESSAGE_MAX);
    if (status == LK_OK && atomic_load(hangs_until_us) != 0)
        atomic_store(hangs_until_us, 0);
    else if (status != LK_OK && now_us - began_us >= timeout_us / 2) /* it was waited for */
        atomic_store(hangs_until_us, now_us + timeout_us);
    return status;
}

/* One command on its way through the cluster. */
struct journey {
    int slot;
    int failed, target; /* pinned. NO_NODE: none has failed; the map says where to go */
    bool ask;
};

/* Sends it once. *ret_done: the status is final, or no other node has the slot of the failed one.
 */
static lk_status send_once(lk_redis_cluster *cluster, struct journey *journey, int flags,
                           lk_redis_reply *reply, int n, const char **words, char *message,
                           bool *ret_done)
{
    int node = journey->target;
    if (node == NO_NODE)
        node = find_node(cluster, journey->slot, journey->failed);
    journey->target = NO_NODE;
    *ret_done = node == NO_NODE || node == journey->failed;
    if (*ret_done) {
        lk_redis_cluster_unpin(cluster, node);
        return journey->failed == NO_NODE ? no_node(cluster, message) : LK_UNAVAILABLE;
    }
    lk_status status = ask_node(cluster, node, flags | (journey->ask ? LK_REDIS_ASKING : 0), reply,
                                n, words, message);
    if (status == LK_OK) {
        journey->target = redirection(cluster, node, reply, &journey->ask);
        *ret_done = journey->target == NO_NODE;
        lk_redis_cluster_unpin(cluster, node);
    } else {
        *ret_done = status != LK_UNAVAILABLE;
        forget(cluster, node);
        lk_redis_cluster_unpin(cluster, journey->failed);
        journey->failed = node;
        journey->ask = false;
    }
    return status;
}

lk_status lk_redis_cluster_run(lk_redis_cluster *cluster, int flags, lk_redis_reply *reply, int n,
                               const char **words, char *message)
{
    struct journey journey = {.slot = slot_of(n, words), .failed = NO_NODE, .target = NO_NODE};
    int64_t late_us =
        lk_monotonic_us() + cluster->context->options->command_timeout_ms * INT64_C(1000);
    lk_status status = LK_UNAVAILABLE;
    bool done = false;
    for (int sends = 0; sends < LK_REDIS_SENDS_MAX && !done; sends++) {
        status = send_once(cluster, &journey, flags, reply, n, words, message, &done);
        done = done || lk_monotonic_us() >= late_us;
    }
    lk_redis_cluster_unpin(cluster, journey.target);
    lk_redis_cluster_unpin(cluster, journey.failed);
    return status;
}

/* -- the cluster as a whole -------------------------------------------------------------------- */

size_t lk_redis_cluster_masters(lk_redis_cluster *cluster, lk_redis **ret, size_t max)
{
    bool taken[LK_REDIS_NODES_MAX] = {false};
    size_t n = 0;
    refresh(cluster, atomic_load(&cluster->n_refreshes));
    pthread_mutex_lock(&cluster->pins);
    for (int slot = 0; slot < LK_REDIS_SLOTS && n < max; slot++) {
        int node = atomic_load(&cluster->node_of[slot]);
        if (node == NO_NODE || taken[node])
            continue;
        taken[node] = true;
        cluster->pinned[node]++;
        ret[n++] = cluster->node[node];
    }
    pthread_mutex_unlock(&cluster->pins);
    return n;
}

void lk_redis_cluster_done(lk_redis_cluster *cluster, lk_redis *const *nodes, size_t n)
{
    pthread_mutex_lock(&cluster->pins);
    for (size_t i = 0; i < n; i++)
        for (int node = 0; node < LK_REDIS_NODES_MAX; node++)
            cluster->pinned[node] -= cluster->node[node] == nodes[i];
    pthread_mutex_unlock(&cluster->pins);
}

lk_status lk_redis_cluster_connect(lk_redis_cluster *cluster, lk_redis_connection *connection,
                                   int64_t deadline_us)
{
    lk_redis *masters[LK_REDIS_NODES_MAX];
    size_t n = lk_redis_cluster_masters(cluster, masters, LK_REDIS_NODES_MAX);
    lk_status status = LK_UNAVAILABLE;
    snprintf(connection->message, sizeof connection->message, "no node of the cluster answers");
    for (size_t i = 0; i < n && status != LK_OK; i++)
        status = lk_redis_connection_open(connection, lk_redis_endpoint(masters[i]),
                                          lk_redis_half_way_us(deadline_us));
    lk_redis_cluster_done(cluster, masters, n);
    return status == LK_OK ? LK_OK : LK_UNAVAILABLE;
}

lk_status lk_redis_cluster_open(const lk_context *context, const lk_redis_topology *topology,
                                lk_redis_cluster **ret, lk_error *error)
{
    lk_redis_cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis cluster");
    cluster->context = context;
    cluster->topology = topology;
    cluster->answered = NO_NODE;
    for (int slot = 0; slot < LK_REDIS_SLOTS; slot++)
        atomic_init(&cluster->node_of[slot], NO_NODE);
    pthread_mutex_init(&cluster->mutex, NULL);
    pthread_mutex_init(&cluster->pins, NULL);
    *ret = cluster;
    return LK_OK;
}

void lk_redis_cluster_close(lk_redis_cluster *cluster)
{
    for (int i = 0; i < cluster->n_nodes; i++)
        lk_redis_close(cluster->node[i]);
    pthread_mutex_destroy(&cluster->pins);
    pthread_mutex_destroy(&cluster->mutex);
    free(cluster);
}
