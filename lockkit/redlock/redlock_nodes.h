/*
 * N independent Redis nodes, each asked the same, by all threads of a client together.
 *
 * Flat combining as in redis_mux.h, but over all nodes at once: the caller who finds nobody asking
 * leads a round. It takes what is queued, writes it to every node, then reads from every node, so
 * that N nodes cost little more than one; then it makes the first of those who queued up meanwhile
 * the next leader, and hands the answers out.
 *
 * A node that hangs costs one node timeout, once: it is then tried in the background
 * (redlock_node.h) and waited for only while a quorum is not ready without it. Node timeout: half
 * the command timeout, and a tenth of the client's lease at most, so that asking does not use the
 * lease up. A round takes two of them at most (one for joining, one for answers).
 *
 * A host's name is looked up by the leader, and no bound of ours holds there: prefer addresses.
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

/* lk_note() of the nodes whose why[] is not NULL. Any thread. */
void lk_redlock_note(const lk_redlock_nodes *nodes, const char *const why[LK_REDLOCK_NODES_MAX]);

/* Asks every node that is ready, and fills status[] and reply[] of the call, whose other fields are
 * the caller's. Returns within two rounds. */
void lk_redlock_run(lk_redlock_nodes *nodes, lk_redlock_call *call);

#endif
