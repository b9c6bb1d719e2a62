#include "sim_zk.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

enum { NODES_MAX = 4096, SESSIONS_MAX = 1024, WATCHES_MAX = 4096, TICK_US = 20000 };
enum { CONTAINER_US = 1000000 }; /* an empty one is removed after this time, at most */

struct session {
    int64_t timeout_us, heard_us;
    bool ended;
};

struct watch {
    char *path;
    void (*fired)(void *arg, const char *path);
    void *arg;
};

struct sim_zk_server sim_zk_server;
static struct {
    struct sim_zk_node *nodes[NODES_MAX];
    size_t n;
    struct session sessions[SESSIONS_MAX];
    int64_t n_sessions, zxid;
    struct watch watches[WATCHES_MAX];
    size_t n_watches;
} zk;

void sim_zk_begin(void)
{
    memset(&zk, 0, sizeof zk);
    memset(&sim_zk_server, 0, sizeof sim_zk_server);
    zk.zxid = 1000;
}

void sim_zk_faults(const struct sim_zk_faults *faults)
{
    sim_zk_server.faults = *faults;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static size_t parent_length(const char *path)
{
    return (size_t)(strrchr(path, '/') - path);
}

static struct sim_zk_node *find(const char *path, size_t length)
{
    for (size_t i = 0; i < zk.n; i++)
        if (strncmp(zk.nodes[i]->path, path, length) == 0 && zk.nodes[i]->path[length] == '\0')
            return zk.nodes[i];
    return NULL;
}

struct sim_zk_node *sim_zk_find(const char *path)
{
    return find(path, strlen(path));
}

static bool is_child(const struct sim_zk_node *node, const char *path, size_t length)
{
    return strncmp(node->path, path, length) == 0 && node->path[length] == '/' &&
           !strchr(node->path + length + 1, '/');
}

size_t sim_zk_children(const char *path, char **ret, size_t max)
{
    const size_t length = strlen(path);
    size_t n = 0;
    for (size_t i = 0; i < zk.n; i++)
        if (is_child(zk.nodes[i], path, length)) {
            assert(n < max);
            ret[n++] = zk.nodes[i]->path + length + 1;
        }
    return n;
}

static bool has_children(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < zk.n; i++)
        if (is_child(zk.nodes[i], path, length))
            return true;
    return false;
}

void sim_zk_watch(const char *path, void (*fired)(void *arg, const char *path), void *arg)
{
    assert(zk.n_watches < WATCHES_MAX);
    zk.watches[zk.n_watches++] = (struct watch){strdup(path), fired, arg};
}

static void fire(const char *path)
{
    for (size_t i = 0; i < zk.n_watches;) {
        struct watch watch = zk.watches[i];
        if (strcmp(watch.path, path) != 0) {
            i++;
            continue;
        }
        zk.watches[i] = zk.watches[--zk.n_watches];
        sim_count(SIM_ZK_WATCH);
        watch.fired(watch.arg, path);
        free(watch.path);
    }
}

int sim_zk_create(int64_t session, const char *path, const char *data, enum sim_zk_mode mode,
                  struct sim_zk_node **ret)
{
    const size_t length = parent_length(path);
    struct sim_zk_node *parent = find(path, length);
    char full[2048];
    if (length > 0 && !parent)
        return ZNONODE;
    if (parent && parent->session != 0)
        return ZNOCHILDRENFOREPHEMERALS;
    snprintf(full, sizeof full, mode == ZK_SEQUENTIAL_NODE ? "%s%010d" : "%s", path,
             parent ? parent->cversion : 0);
    if (sim_zk_find(full))
        return ZNODEEXISTS;
    struct sim_zk_node *node = calloc(1, sizeof *node);
    if (!node || zk.n == NODES_MAX)
        abort();
    *node = (struct sim_zk_node){.path = strdup(full),
                                 .data = strdup(data),
                                 .czxid = ++zk.zxid,
                                 .container = mode == ZK_CONTAINER_NODE};
    if (mode == ZK_EPHEMERAL_NODE || mode == ZK_SEQUENTIAL_NODE)
        node->session = session;
    if (parent)
        parent->cversion++;
    *ret = zk.nodes[zk.n++] = node;
    return ZOK;
}

/* Its memory stays: an answer may be under way. */
int sim_zk_delete(const char *path)
{
    struct sim_zk_node *node = sim_zk_find(path), *parent = find(path, parent_length(path));
    size_t i = 0;
    if (!node)
        return ZNONODE;
    if (has_children(path))
        return ZNOTEMPTY;
    while (zk.nodes[i] != node)
        i++;
    memmove(&zk.nodes[i], &zk.nodes[i + 1], (zk.n - i - 1) * sizeof zk.nodes[0]);
    zk.n--;
    zk.zxid++;
    if (parent) {
        parent->cversion++;
        parent->emptied_us = sim_now_us();
    }
    fire(path);
    return ZOK;
}

/* -- sessions ---------------------------------------------------------------------------------- */

int64_t sim_zk_session(int64_t timeout_us)
{
    assert(zk.n_sessions + 1 < SESSIONS_MAX);
    zk.sessions[++zk.n_sessions] =
        (struct session){.timeout_us = timeout_us, .heard_us = sim_now_us()};
    zk.zxid++;
    return zk.n_sessions;
}

bool sim_zk_heard(int64_t session)
{
    zk.sessions[session].heard_us = sim_now_us();
    return !zk.sessions[session].ended;
}

static const struct sim_zk_node *node_of(int64_t session)
{
    for (size_t i = 0; i < zk.n; i++)
        if (zk.nodes[i]->session == session)
            return zk.nodes[i];
    return NULL;
}

void sim_zk_end_session(int64_t session)
{
    const struct sim_zk_node *node;
    zk.sessions[session].ended = true;
    while ((node = node_of(session)) != NULL)
        sim_zk_delete(node->path);
}

static void expire(int64_t session)
{
    sim_tell("ZooKeeper: session %lld has ended", (long long)session);
    if (node_of(session))
        sim_count(SIM_ZK_HOLDING);
    sim_zk_end_session(session);
}

/* Ends sessions that nobody has heard of, and containers that are empty. */
static void *tick(void *arg)
{
    (void)arg;
    for (;; sim_sleep_us(TICK_US)) {
        if (sim_now_us() < sim_zk_server.away_until_us)
            continue;
        for (int64_t i = 1; i <= zk.n_sessions; i++)
            if (!zk.sessions[i].ended &&
                sim_now_us() > zk.sessions[i].heard_us + zk.sessions[i].timeout_us)
                expire(i);
        for (size_t i = 0; i < zk.n; i++)
            if (zk.nodes[i]->container && zk.nodes[i]->emptied_us > 0 &&
                sim_now_us() > zk.nodes[i]->emptied_us + sim_below(CONTAINER_US) &&
                sim_zk_delete(zk.nodes[i]->path) == ZOK)
                break;
    }
    return NULL;
}

void sim_zk_start(void)
{
    sim_spawn(SIM_WORLD, "zookeeper", tick, NULL);
}

/* A new leader counts all sessions anew. */
void sim_zk_away(int64_t until_us)
{
    sim_zk_server.away_until_us = until_us;
    for (int64_t i = 1; i <= zk.n_sessions; i++)
        zk.sessions[i].heard_us = until_us;
}

static struct sim_zk_node *any_ephemeral(void)
{
    struct sim_zk_node *chosen = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < zk.n; i++)
        if (zk.nodes[i]->session != 0 && sim_below(++n) == 0)
            chosen = zk.nodes[i];
    return chosen;
}

bool sim_zk_delete_any(void)
{
    const struct sim_zk_node *node = any_ephemeral();
    if (!node)
        return false;
    sim_tell("ZooKeeper: %s is removed by hand", node->path);
    sim_zk_delete(node->path);
    return true;
}

bool sim_zk_expire_any(void)
{
    const struct sim_zk_node *node = any_ephemeral();
    if (!node)
        return false;
    expire(node->session);
    return true;
}
