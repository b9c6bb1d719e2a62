#include "redlock_node.h"
#include "backoff.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { PAUSE_GROWS_MAX = 8 /* times */ };

static void say_why(lk_redlock_node *node, const char *why)
{
    snprintf(node->connection.message, sizeof node->connection.message, "%s", why);
}

/* -- joining ---------------------------------------------------------------------------------- */

static void close_node(lk_redlock_node *node)
{
    lk_redis_connection_close(&node->connection);
    node->state = LK_REDLOCK_CLOSED;
    node->owes = NULL;
}

void lk_redlock_fail(lk_redlock_node *node)
{
    int64_t now_us = lk_monotonic_us(), pause_us = now_us - node->began_us;
    if (pause_us > node->timeout_us) /* this thread came late */
        pause_us = node->timeout_us;
    if (pause_us < LK_REDLOCK_PAUSE_US)
        pause_us = LK_REDLOCK_PAUSE_US;
    close_node(node);
    node->retry_us = now_us + lk_backoff(pause_us, PAUSE_GROWS_MAX * pause_us, node->failures++);
}

void lk_redlock_dial(lk_redlock_node *node)
{
    assert(node->state == LK_REDLOCK_CLOSED);
    node->began_us = lk_monotonic_us();
    node->state = LK_REDLOCK_JOINING;
    say_why(node, "Redis did not answer in time"); /* until it does */
    if (lk_redis_connection_begin(&node->connection, &node->url) != LK_OK)
        lk_redlock_fail(node);
}

/* True while the connection is being made, and nothing has been written. */
static bool is_connecting(const lk_redlock_node *node)
{
    return node->connection.n_greetings == 0;
}

short lk_redlock_join_events(const lk_redlock_node *node)
{
    return is_connecting(node) ? POLLOUT : POLLIN;
}

void lk_redlock_join(lk_redlock_node *node)
{
    lk_redis_connection *connection = &node->connection;
    lk_status status;
    if (is_connecting(node)) {
        status = lk_redis_connection_greet(connection, &node->url, true, LK_REDIS_NO_WAIT);
        node->began_us = lk_monotonic_us();
        if (status != LK_OK)
            lk_redlock_fail(node);
        return;
    }
    status = lk_redis_connection_greeted(connection, &node->greeting, LK_REDIS_NO_WAIT);
    if (status == LK_TIMEOUT)
        return;
    if (status != LK_OK) {
        lk_redlock_fail(node);
        return;
    }
    node->state = LK_REDLOCK_READY;
    connection->used_us = lk_monotonic_us();
}

void lk_redlock_look(lk_redlock_node *node)
{
    lk_redis_connection_look(&node->connection);
    if (node->connection.fd < 0)
        close_node(node);
}

/* -- a batch ---------------------------------------------------------------------------------- */

/* The first call that was sent, beginning with this one. */
static lk_redlock_call *sent_from(lk_redlock_call *call)
{
    while (call != NULL && call->held_back)
        call = call->next;
    return call;
}

static void set_unanswered(const lk_redlock_node *node, lk_redlock_call *call, lk_status status)
{
    for (call = sent_from(call); call != NULL; call = sent_from(call->next))
        call->status[node->index] = status;
}

size_t lk_redlock_send(lk_redlock_node *node, lk_redlock_call *batch, int64_t deadline_us)
{
    struct iovec iov[LK_REDLOCK_BATCH_MAX];
    size_t n = 0;
    node->began_us = lk_monotonic_us();
    node->owes = sent_from(batch);
    for (lk_redlock_call *call = node->owes; call != NULL; call = sent_from(call->next)) {
        assert(n < LK_REDLOCK_BATCH_MAX);
        iov[n++] = (struct iovec){.iov_base = call->command.bytes, .iov_len = call->command.length};
    }
    if (n == 0)
        return 0;
    lk_status status = lk_redis_connection_write(&node->connection, iov, n, deadline_us);
    set_unanswered(node, node->owes, status == LK_UNAVAILABLE ? LK_UNAVAILABLE : LK_UNKNOWN);
    if (status != LK_OK)
        lk_redlock_fail(node);
    return n;
}

void lk_redlock_receive(lk_redlock_node *node)
{
    size_t i = node->index;
    while (node->owes != NULL) {
        lk_redlock_call *call = node->owes;
        lk_status status =
            lk_redis_connection_read(&node->connection, &call->reply[i], LK_REDIS_NO_WAIT);
        if (status == LK_TIMEOUT)
            return;
        if (status != LK_OK) { /* the next round connects at once */
            set_unanswered(node, call, status);
            close_node(node);
            return;
        }
        call->status[i] = LK_OK;
        node->owes = sent_from(call->next);
    }
    node->connection.used_us = lk_monotonic_us();
    node->failures = 0;
    if (lk_redis_connection_leftover(
            &node->connection)) { /* the next answer could not be told apart */
        say_why(node, "Redis answered more than was asked");
        close_node(node);
    }
}

void lk_redlock_give_up(lk_redlock_node *node)
{
    for (lk_redlock_call *call = node->owes; call != NULL; call = sent_from(call->next))
        if (call->undo != NULL && send(node->connection.fd, call->undo->bytes, call->undo->length,
                                       MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)call->undo->length)
            break;
    say_why(node, "Redis did not answer in time");
    lk_redlock_fail(node);
}
