/*
 * N independent Redis nodes. All threads of a client together ask each node the same.
 *
 * Flat combining as in redis_mux.h, over all nodes at once. The caller that finds no round under
 * way leads one: it takes the queue, writes it to every node, then reads from every node, so N
 * nodes cost little more than one. Then it makes the first caller of the new queue the next leader,
 * and hands out the answers.
 *
 * A node that hangs costs one node timeout, once. Afterwards it is tried in the background
 * (redlock_node.h), and waited for only while there is no quorum without it. The node timeout is
 * half the command timeout, and at most a tenth of the client's lease, so that asking does not use
 * up the lease. A round takes two node timeouts at most: one for joining, one for answers.
 *
 * The leader looks up the hosts' names, and no bound of ours holds there: prefer addresses.
 *
 * Threading: every function may be called from any thread.
 */
#ifndef LOCKKIT_REDLOCK_NODES_H
#define LOCKKIT_REDLOCK_NODES_H

#include "provider.h"
#include "redlock_node.h"

typedef struct lk_redlock_nodes lk_redlock_nodes;

/* Parses context->endpoints, a list of redis:// and unix:// URLs; connects on first use. LK_OK,
 * LK_INVALID (also for the same node twice), LK_NO_MEMORY. */
lk_status lk_redlock_open(const lk_context *context, lk_redlock_nodes **ret, lk_error *error);
/* No call may be under way. */
void lk_redlock_close(lk_redlock_nodes *nodes);

int lk_redlock_n(const lk_redlock_nodes *nodes);
int lk_redlock_quorum(const lk_redlock_nodes *nodes); /* n / 2 + 1, of the nodes configured */

/* Notes the reasons why[] of those nodes that have one (lk_note()). Any thread. */
void lk_redlock_note(const lk_redlock_nodes *nodes, const char *const why[LK_REDLOCK_NODES_MAX]);

/* Asks every ready node. Fills status[] and reply[] of the call; the caller fills its other fields.
 * Returns within two rounds. */
void lk_redlock_run(lk_redlock_nodes *nodes, lk_redlock_call *call);

#endif
