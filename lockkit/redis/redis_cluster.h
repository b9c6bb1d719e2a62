/*
 * The masters of a Redis Cluster: which of them has the slot of a key, also while slots move.
 *
 * The map of slots is the answer to CLUSTER SLOTS of the first node that answers. It is asked for
 * when it is first needed, and again when a node is away. MOVED corrects one slot of it. A command
 * that was redirected, or certainly not sent, was not executed: it is sent again, to the right
 * node. A lost answer stays lost.
 *
 * A node that does not answer in time hangs. For one command timeout, commands with
 * LK_REDIS_SKIP_IF_HUNG (tries and renewals) are refused for it at once; then one caller tries it
 * before the others. The reason: one thread renews all holds, and the holds on the other nodes must
 * not wait behind each hold of the hung one. Releases and clean-ups are sent to it nevertheless:
 * they delay only their caller, and the node may only be slow. A single node is never refused
 * commands like this: there are no holds on other nodes.
 *
 * Each address has an entry with one connection. When all entries are taken, an entry without a
 * slot that no call uses is reused: a cluster that is rolled out gets new addresses each time.
 *
 * Threading: every function may be called from any thread. One thread asks for the map; the others
 * wait for its answer.
 * Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */
#ifndef LOCKKIT_REDIS_CLUSTER_H
#define LOCKKIT_REDIS_CLUSTER_H

#include "redis_command.h"
#include "redis_topology.h"

enum {
    LK_REDIS_SLOTS = 16384,
    LK_REDIS_SENDS_MAX = 4 /* of one command, with redirections */
};

typedef struct lk_redis_cluster lk_redis_cluster;

/* topology is borrowed. LK_OK, LK_NO_MEMORY. */
lk_status lk_redis_cluster_open(const lk_context *context, const lk_redis_topology *topology,
                                lk_redis_cluster **ret, lk_error *error);
void lk_redis_cluster_close(lk_redis_cluster *cluster);

/* As lk_redis_run(), to the master of the command's key, or to any master if it has no key.
 * message: LK_MESSAGE_MAX bytes, written unless LK_OK. Returns within three times the command
 * timeout. */
lk_status lk_redis_cluster_run(lk_redis_cluster *cluster, int flags, lk_redis_reply *reply, int n,
                               const char **words, char *message);

/* The masters that have slots, at most max, by a new map if a node answers. Their entries are kept
 * until lk_redis_cluster_done() for all that were returned. */
size_t lk_redis_cluster_masters(lk_redis_cluster *cluster, lk_redis **ret, size_t max);
void lk_redis_cluster_done(lk_redis_cluster *cluster, lk_redis *const *nodes, size_t n);

/* Connects to any node that answers. As lk_redis_topology_connect(). */
lk_status lk_redis_cluster_connect(lk_redis_cluster *cluster, lk_redis_connection *connection,
                                   int64_t deadline_us);

/* The slot of a key: the CRC16 of the text in its first braces, or of the whole key. */
int lk_redis_slot(const char *key);

#endif
