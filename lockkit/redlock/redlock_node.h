/*
 * One of Redlock's nodes: a connection that no thread waits for alone.
 *
 * A node is closed, joining (connecting, then greeted: AUTH, SELECT, PING), or ready. Commands are
 * sent to ready nodes only: a ready node has answered since it was connected. A node that does not
 * answer in time, or refuses to join, is left alone for a pause: LK_REDLOCK_PAUSE_US, or as long as
 * it was waited for. Each failure in a row doubles the pause, up to eight times.
 *
 * Threading: none; redlock_nodes.c hands all nodes over together.
 */
#ifndef LOCKKIT_REDLOCK_NODE_H
#define LOCKKIT_REDLOCK_NODE_H

#include "redis_connection.h"

#include <semaphore.h>

enum { LK_REDLOCK_NODES_MAX = 9, LK_REDLOCK_BATCH_MAX = 64, LK_REDLOCK_PAUSE_US = 50000 };

/* One command for all nodes, on its caller's stack. */
typedef struct lk_redlock_call {
    lk_redis_encoded command;
    const lk_redis_encoded
        *undo;         /* sent to a node that is given up before it has answered; or NULL */
    bool needs_quorum; /* sent to no node unless a quorum is ready */

    /* Per node. LK_OK: answered. LK_UNAVAILABLE: certainly not sent. LK_UNKNOWN, LK_PROTOCOL. */
    lk_status status[LK_REDLOCK_NODES_MAX];
    lk_redis_reply reply[LK_REDLOCK_NODES_MAX];

    bool held_back, lead;
    struct lk_redlock_call *next; /* in the queue, then in the batch */
    sem_t wake;
} lk_redlock_call;

enum lk_redlock_state { LK_REDLOCK_CLOSED, LK_REDLOCK_JOINING, LK_REDLOCK_READY };

typedef struct lk_redlock_node {
    lk_redis_url url;
    lk_redis_connection connection;
    int64_t timeout_us;
    size_t index; /* of status[] and reply[] */
    enum lk_redlock_state state;
    unsigned failures;     /* in a row */
    int64_t began_us;      /* start of the present step of joining */
    int64_t retry_us;      /* not dialled before */
    lk_redlock_call *owes; /* the first call of the batch that it has not answered; or NULL */
    lk_redis_reply greeting;
} lk_redlock_node;

/* Closed -> joining, or failed. */
void lk_redlock_dial(lk_redlock_node *node);
/* The events that poll(2) is to wait for while the node joins. */
short lk_redlock_join_events(const lk_redlock_node *node);
/* To be called when poll(2) has reported these events. */
void lk_redlock_join(lk_redlock_node *node);
/* Any -> closed, with a pause by the time that it has cost since began_us. */
void lk_redlock_fail(lk_redlock_node *node);
/* Ready -> closed without a pause, if it has hung up while it was idle. */
void lk_redlock_look(lk_redlock_node *node);

/* Writes the batch. Returns the number of commands. Their status is LK_UNKNOWN until answered. */
size_t lk_redlock_send(lk_redlock_node *node, lk_redlock_call *batch, int64_t deadline_us);
/* Takes the answers that have arrived. Closes a node that has hung up or answers nonsense. */
void lk_redlock_receive(lk_redlock_node *node);
/* The node has not answered in time. It may only sleep, so the undo of each unanswered call is sent
 * after it. Then the connection is closed. */
void lk_redlock_give_up(lk_redlock_node *node);

#endif
