/*
 * Redis Cluster: three masters, each with a third of the slots and a replica.
 *
 * Each node has a view of its own: which node is the master of each third (a shard), which shard
 * has each slot, and at which port each node is. A change reaches the nodes one after the other, as
 * by gossip. A node that does not have a command's slot in its view answers MOVED; while a slot
 * moves, it answers ASK for keys that it does not have. Messages go to the subscribers of all nodes
 * that hear each other.
 *
 * What answers is made after Redis 7 (cluster.c: getNodeByQuery()), and compared with it by
 * test_redis_cluster_model.
 */
#ifndef SIM_REDIS_CLUSTER_H
#define SIM_REDIS_CLUSTER_H

#include "sim_redis.h"

enum { SIM_CLUSTER_SHARDS = 3, SIM_CLUSTER_NODES = 6, SIM_SLOTS = 16384, SIM_NO_SLOT = -1 };

/* Nodes 0 to 2 are masters, 3 to 5 their replicas. */
void sim_cluster_begin(void);
void sim_cluster_end(void); /* there is none */
bool sim_cluster_is(void);

int sim_redis_slot(const char *key);

/* -- what a node answers ---------------------------------------------------------------------- */

/* The node does not run the command; ret has what it answers instead. asking: ASKING came before
 * it. */
bool sim_cluster_redirects(struct sim_redis *redis, bool asking, int n, char **words,
                           struct sim_bytes *ret);
/* CLUSTER SLOTS */
void sim_cluster_slots(const struct sim_redis *redis, struct sim_bytes *ret);
/* These two hear each other's messages. */
bool sim_cluster_hears(const struct sim_redis *to, const struct sim_redis *from);

/* -- what is done to it ----------------------------------------------------------------------- */

struct sim_redis *sim_cluster_master(int shard); /* as it is, whatever the nodes think */
int sim_cluster_shard(int slot);
/* In the node's own view: node is the master of the shard. */
void sim_cluster_learn_master(const struct sim_redis *redis, int shard,
                              const struct sim_redis *node);
void sim_cluster_set_master(int shard, const struct sim_redis *node);
/* The node knows all that is so. */
void sim_cluster_learn_all(const struct sim_redis *redis);
/* It tells that the cluster is down, and nobody hears its messages. */
void sim_cluster_set_down(const struct sim_redis *redis, bool down);
void sim_cluster_set_apart(const struct sim_redis *redis, bool apart);
/* A slot begins to move to another shard. Returns once both masters know. */
void sim_cluster_move_begin(int slot, int to_shard);
/* Moves one key of that slot. False: none is left. */
bool sim_cluster_move_key(void);
/* The new master has the slot, and knows; the others learn it by sim_cluster_learn_all(). */
void sim_cluster_move_end(void);

#endif
