#include "redlock_nodes.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LEASE_PARTS = 10, US_PER_MS = 1000, REFUSED_NS = 1000000 };

struct lk_redlock_nodes {
    const lk_context *context;
    int64_t timeout_us;
    size_t n;

    pthread_mutex_t mutex; /* guards the next three */
    lk_redlock_call *queue, **tail;
    bool busy; /* somebody leads */

    lk_redlock_node node[LK_REDLOCK_NODES_MAX]; /* the leader's */
};

/* -- notes ------------------------------------------------------------------------------------ */

void lk_redlock_note(const lk_redlock_nodes *nodes, const char *const why[LK_REDLOCK_NODES_MAX])
{
    char text[LK_MESSAGE_MAX];
    size_t length = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        const lk_redis_url *url = &nodes->node[i].url;
        char port[16] = "";
        if (why[i] == NULL || length >= sizeof text)
            continue;
        if (url->path[0] == '\0')
            snprintf(port, sizeof port, ":%d", url->port);
        length += (size_t)snprintf(text + length, sizeof text - length, "%snode %zu at %s%s: %s",
                                   length == 0 ? "" : "; ", i + 1,
                                   url->path[0] != '\0' ? url->path : url->host, port, why[i]);
    }
    lk_note(nodes->context, LK_UNAVAILABLE, "%s", text);
}

/* -- a round: only the leader's thread -------------------------------------------------------- */

/* Waits until poll(2) reports a watched node, at most to the deadline. Calls ready(node) for each
 * node that is reported. False: none was. */
static bool poll_nodes(lk_redlock_nodes *nodes, bool (*watched)(const lk_redlock_node *node),
                       void (*ready)(lk_redlock_node *node), int64_t deadline_us)
{
    struct pollfd fds[LK_REDLOCK_NODES_MAX];
    for (size_t i = 0; i < nodes->n; i++) {
        const lk_redlock_node *node = &nodes->node[i];
        bool joins = node->state == LK_REDLOCK_JOINING;
        fds[i] = (struct pollfd){.fd = watched(node) ? node->connection.fd : -1,
                                 .events = joins ? lk_redlock_join_events(node) : POLLIN};
    }
    int64_t left_us = deadline_us - lk_monotonic_us();
    if (left_us < 0)
        left_us = 0;
    struct timespec limit = lk_timespec(left_us);
    int n = ppoll(fds, nodes->n, &limit, NULL);
    if (n < 0 && errno != EINTR) /* the kernel has no memory: no node is seen for a moment */
        nanosleep(&(struct timespec){.tv_nsec = REFUSED_NS}, NULL);
    for (size_t i = 0; i < nodes->n && n > 0; i++)
        if (fds[i].revents != 0)
            ready(&nodes->node[i]);
    return n != 0;
}

static bool joins(const lk_redlock_node *node)
{
    return node->state == LK_REDLOCK_JOINING;
}

static bool owes(const lk_redlock_node *node)
{
    return node->owes != NULL;
}

static size_t count_ready(const lk_redlock_nodes *nodes)
{
    size_t n = 0;
    for (size_t i = 0; i < nodes->n; i++)
        n += nodes->node[i].state == LK_REDLOCK_READY;
    return n;
}

/* True: a joining node must be waited for. A node that failed last time counts only while there is
 * no quorum without it. */
static bool must_wait(const lk_redlock_nodes *nodes, bool *ret_any)
{
    bool must = false, enough = count_ready(nodes) > nodes->n / 2;
    *ret_any = false;
    for (size_t i = 0; i < nodes->n; i++)
        if (joins(&nodes->node[i])) {
            *ret_any = true;
            must = must || !enough || nodes->node[i].failures == 0;
        }
    return must;
}

/* Connects closed nodes. Returns the number of ready ones. */
static size_t settle(lk_redlock_nodes *nodes)
{
    int64_t start_us = lk_monotonic_us();
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->node[i].state == LK_REDLOCK_READY)
            lk_redlock_look(&nodes->node[i]);
    bool enough = count_ready(nodes) > nodes->n / 2, any;
    for (size_t i = 0; i < nodes->n; i++) {
        lk_redlock_node *node = &nodes->node[i];
        if (node->state == LK_REDLOCK_CLOSED && (!enough || node->retry_us <= start_us))
            lk_redlock_dial(node);
    }
    int64_t deadline_us = start_us + nodes->timeout_us, now_us = start_us;
    bool must = must_wait(nodes, &any), moved = true;
    while (any && (must || moved) && now_us < deadline_us) {
        moved = poll_nodes(nodes, joins, lk_redlock_join, must ? deadline_us : start_us);
        must = must_wait(nodes, &any);
        now_us = lk_monotonic_us();
    }
    bool waited_out = must && now_us >= deadline_us;
    for (size_t i = 0; i < nodes->n; i++) {
        lk_redlock_node *node = &nodes->node[i];
        if (joins(node) && (waited_out || node->began_us + nodes->timeout_us <= now_us))
            lk_redlock_fail(node);
    }
    return count_ready(nodes);
}

static void note_missing(const lk_redlock_nodes *nodes)
{
    const char *why[LK_REDLOCK_NODES_MAX];
    for (size_t i = 0; i < nodes->n; i++)
        why[i] =
            nodes->node[i].state == LK_REDLOCK_READY ? NULL : nodes->node[i].connection.message;
    lk_redlock_note(nodes, why);
}

/* Writes to all nodes, then reads from all. */
static void serve(lk_redlock_nodes *nodes, lk_redlock_call *batch)
{
    bool enough = settle(nodes) > nodes->n / 2;
    for (lk_redlock_call *call = batch; call != NULL; call = call->next) {
        call->held_back = call->needs_quorum && !enough;
        for (size_t i = 0; i < nodes->n; i++)
            call->status[i] = LK_UNAVAILABLE;
    }
    int64_t deadline_us = lk_monotonic_us() + nodes->timeout_us;
    size_t n_sent = 0, n_owing;
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->node[i].state == LK_REDLOCK_READY)
            n_sent += lk_redlock_send(&nodes->node[i], batch, deadline_us);
    atomic_fetch_add_explicit(nodes->context->commands, n_sent, memory_order_relaxed);
    for (bool late = false;; late = lk_monotonic_us() >= deadline_us) {
        n_owing = 0;
        for (size_t i = 0; i < nodes->n; i++)
            n_owing += owes(&nodes->node[i]);
        if (n_owing == 0 || late)
            break;
        poll_nodes(nodes, owes, lk_redlock_receive, deadline_us);
    }
    for (size_t i = 0; i < nodes->n && n_owing > 0; i++)
        if (owes(&nodes->node[i]))
            lk_redlock_give_up(&nodes->node[i]);
    if (count_ready(nodes) <= nodes->n / 2)
        note_missing(nodes);
}

/* -- callers ---------------------------------------------------------------------------------- */

/* Takes the first of the queue, as many as one round takes. */
static lk_redlock_call *take_batch(lk_redlock_nodes *nodes)
{
    lk_redlock_call *batch, **end = &nodes->queue;
    pthread_mutex_lock(&nodes->mutex);
    batch = nodes->queue;
    for (int n = 0; n < LK_REDLOCK_BATCH_MAX && *end != NULL; n++)
        end = &(*end)->next;
    lk_redlock_call *rest = *end;
    *end = NULL;
    nodes->queue = rest;
    if (rest == NULL)
        nodes->tail = &nodes->queue;
    pthread_mutex_unlock(&nodes->mutex);
    return batch;
}

/* One round, with the leader's call in it. Wakes the next leader, then the other callers. */
static void lead(lk_redlock_nodes *nodes, const lk_redlock_call *mine)
{
    lk_redlock_call *call = take_batch(nodes), *next;
    serve(nodes, call);
    pthread_mutex_lock(&nodes->mutex);
    lk_redlock_call *leader = nodes->queue;
    nodes->busy = leader != NULL;
    pthread_mutex_unlock(&nodes->mutex);
    if (leader != NULL) {
        leader->lead = true;
        sem_post(&leader->wake);
    }
    for (; call != NULL; call = next) {
        next = call->next;
        if (call != mine)
            sem_post(&call->wake); /* from here its caller may be gone */
    }
}

void lk_redlock_run(lk_redlock_nodes *nodes, lk_redlock_call *call)
{
    call->next = NULL;
    sem_init(&call->wake, 0, 0);
    pthread_mutex_lock(&nodes->mutex);
    call->lead = !nodes->busy;
    bool first = call->lead;
    nodes->busy = true;
    *nodes->tail = call;
    nodes->tail = &call->next;
    pthread_mutex_unlock(&nodes->mutex);
    while (!first && sem_wait(&call->wake) != 0)
        assert(errno == EINTR);
    if (call->lead)
        lead(nodes, call);
    sem_destroy(&call->wake);
}

/* -- opening and closing ---------------------------------------------------------------------- */

/* Another database of one server is the same server. */
static bool same_node(const lk_redis_url *a, const lk_redis_url *b)
{
    if (a->path[0] != '\0' || b->path[0] != '\0')
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static lk_status add_node(lk_redlock_nodes *nodes, const char *text, size_t length, lk_error *error)
{
    char one[LK_REDIS_HOST_MAX + 2 * LK_REDIS_SECRET_MAX * 3 + 64];
    lk_redis_url url;
    if (nodes->n == LK_REDLOCK_NODES_MAX)
        return lk_fail(error, LK_INVALID, "redlock takes at most %d nodes", LK_REDLOCK_NODES_MAX);
    if (length >= sizeof one)
        return lk_fail(error, LK_INVALID, "an endpoint of redlock is too long");
    memcpy(one, text, length);
    one[length] = '\0';
    if (strchr(one, ',') != NULL)
        return lk_fail(
            error, LK_INVALID,
            "each endpoint of redlock begins with redis:// or unix://, also after a comma");
    lk_status status = lk_redis_url_parse(one, &url, error);
    if (status == LK_OK)
        status = lk_redis_url_login(&url, LK_REDIS_LOGIN, error);
    if (status != LK_OK)
        return status;
    for (size_t i = 0; i < nodes->n; i++)
        if (same_node(&nodes->node[i].url, &url))
            return lk_fail(error, LK_INVALID,
                           "redlock's nodes %zu and %zu are one server: they must be independent",
                           i + 1, nodes->n + 1);
    lk_redlock_node *node = &nodes->node[nodes->n];
    node->url = url;
    node->index = nodes->n++;
    lk_redis_connection_init(&node->connection);
    return LK_OK;
}

lk_status lk_redlock_open(const lk_context *context, lk_redlock_nodes **ret, lk_error *error)
{
    const char *text = context->endpoints;
    if (text == NULL || text[0] == '\0')
        return lk_fail(error, LK_INVALID, "redlock needs endpoints: redis://host[:port],...");
    lk_redlock_nodes *nodes = calloc(1, sizeof *nodes);
    if (nodes == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for the nodes of redlock");
    for (bool more = true; more;) {
        size_t length = lk_redis_url_span(text);
        lk_status status = add_node(nodes, text, length, error);
        if (status != LK_OK) {
            free(nodes);
            return status;
        }
        text += length;
        more = *text == ',';
        text += more;
    }
    const lk_options *options = context->options;
    int64_t timeout_us = options->command_timeout_ms * US_PER_MS / 2,
            part_us = options->lease_ms * US_PER_MS / LEASE_PARTS;
    nodes->timeout_us = part_us < timeout_us ? part_us : timeout_us;
    for (size_t i = 0; i < nodes->n; i++)
        nodes->node[i].timeout_us = nodes->timeout_us;
    nodes->context = context;
    nodes->tail = &nodes->queue;
    pthread_mutex_init(&nodes->mutex, NULL);
    *ret = nodes;
    return LK_OK;
}

void lk_redlock_close(lk_redlock_nodes *nodes)
{
    assert(!nodes->busy);
    for (size_t i = 0; i < nodes->n; i++)
        lk_redis_connection_close(&nodes->node[i].connection);
    pthread_mutex_destroy(&nodes->mutex);
    free(nodes);
}

int lk_redlock_n(const lk_redlock_nodes *nodes)
{
    return (int)nodes->n;
}

int lk_redlock_quorum(const lk_redlock_nodes *nodes)
{
    return (int)(nodes->n / 2 + 1);
}
