/*
 * The masters of a Redis Cluster: which of them has a key's slot, and following when slots move.
 *
 * The map of slots comes from CLUSTER SLOTS, of whichever node answers first, when it is first
 * needed, and again when a node is away; MOVED corrects it slot by slot. A command that was
 * redirected was not executed, so it is sent again to where it belongs; so is one that certainly
 * was not sent. A lost answer stays lost.
 *
 * A node that did not answer in time hangs: it is left alone for one command timeout, and is then
 * asked by one caller before the others. LK_REDIS_SKIP_IF_HUNG commands, the tries and the
 * renewals, are not sent to it meanwhile: the watchdog renews one hold after the other, and those
 * of the other nodes must not wait behind each of the hung one's. Everything else is sent all the
 * same: a release, or the undoing of a try, keeps up nobody but its caller, and may find a node
 * that was only slow. What is not in a cluster knows no such pause: there are no other holds to
 * keep.
 *
 * Each address has an entry with one connection. Once all are taken, an entry that has no slot and
 * that no call uses is reused: a cluster that is rolled out gets new addresses each time.
 *
 * Threading: every function may be called from any thread; one asks for the map, the others wait
 * for that answer.
 * Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */
#ifndef LOCKKIT_REDIS_CLUSTER_H
#define LOCKKIT_REDIS_CLUSTER_H

#include "redis_command.h"
#include "redis_topology.h"

enum {
    LK_REDIS_SLOTS = 16384,
    LK_REDIS_SENDS_MAX = 4 /* of one command, redirections included */
};

typedef struct lk_redis_cluster lk_redis_cluster;

/* topology is borrowed. LK_OK, LK_NO_MEMORY. */
lk_status lk_redis_cluster_open(const lk_context *context, const lk_redis_topology *topology,
                                lk_redis_cluster **ret, lk_error *error);
void lk_redis_cluster_close(lk_redis_cluster *cluster);

/* As lk_redis_run(): to the master of the command's key; one without a key to any. message:
 * LK_MESSAGE_MAX bytes, written unless LK_OK. Returns within three times the command timeout. */
lk_status lk_redis_cluster_run(lk_redis_cluster *cluster, int flags, lk_redis_reply *reply, int n,
                               const char **words, char *message);

/* Masters that have slots, by a map asked for anew if anybody answers; at most max of them. Their
 * entries are kept until lk_redis_cluster_done() of all that were returned. */
size_t lk_redis_cluster_masters(lk_redis_cluster *cluster, lk_redis **ret, size_t max);
void lk_redis_cluster_done(lk_redis_cluster *cluster, lk_redis *const *nodes, size_t n);

/* Connects to any node that answers. As lk_redis_topology_connect(). */
lk_status lk_redis_cluster_connect(lk_redis_cluster *cluster, lk_redis_connection *connection,
                                   int64_t deadline_us);

/* Slot of a key: CRC16 of what stands in its first braces, or of all of it. */
int lk_redis_slot(const char *key);

#endif
