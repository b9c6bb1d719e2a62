/* A Redis Cluster of three masters, each with a replica if asked for. */
#include "sandbox_process.h"
#include "steady.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { NODES_MAX = 2 * SANDBOX_CLUSTER_MASTERS, LOOK_MS = 10, SLOTS = 16384, ID_LENGTH = 40 };

/* How long a node may be silent before it counts as dead. A master with a replica should be
 * replaced soon. Without replicas the time is long, so that a busy machine is not taken for a dead
 * node. */
#define NODE_TIMEOUT_MS    "500"
#define PATIENT_TIMEOUT_MS "10000"

static struct sandbox_server *try_node(struct sandbox *sandbox, int bus_port)
{
    char bus[8];
    snprintf(bus, sizeof bus, "%d", bus_port);
    const char *const extra[] = {
        "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout",
        NODE_TIMEOUT_MS,
        /* The other masters serve while one is being replaced. */
        "--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no",
        "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", NULL};
    return sandbox_redis(sandbox, extra);
}

/* sandbox_redis() retries if its port is taken. This retries if the bus port is taken. */
static struct sandbox_server *start_node(struct sandbox *sandbox, int *ret_bus_port)
{
    struct sandbox_server *node = NULL;
    for (int attempt = 1; node == NULL && attempt <= SANDBOX_PORT_TRIES_MAX; attempt++) {
        *ret_bus_port = sandbox_free_port();
        node = try_node(sandbox, *ret_bus_port);
    }
    return node;
}

static bool run_command(const struct sandbox_server *node, const char *command)
{
    redisReply *reply = sandbox_redis_order(node, command);
    bool ok = reply != NULL;
    freeReplyObject(reply);
    return ok;
}

/* Does its answer to the command contain text? */
static bool answer_contains(const struct sandbox_server *node, const char *command,
                            const char *text)
{
    redisReply *reply = sandbox_redis_ask(node, command);
    bool so = reply != NULL && reply->str != NULL && strstr(reply->str, text) != NULL;
    freeReplyObject(reply);
    return so;
}

/* Waits until the answers of all n nodes contain text. */
static int await_all(struct sandbox_server *const *node, int n, const char *command,
                     const char *text)
{
    int64_t deadline_ms = steady_ms() + SANDBOX_READY_MS;
    for (int i = 0; i < n;) {
        if (answer_contains(node[i], command, text)) {
            i++;
            continue;
        }
        if (steady_ms() > deadline_ms) {
            fprintf(stderr, "sandbox: %s does not say \"%s\" to %s within %d ms\n", node[i]->name,
                    text, command, SANDBOX_READY_MS);
            return -1;
        }
        steady_sleep_ms(LOOK_MS);
    }
    return 0;
}

/* Gives slots and rising epochs before the nodes know each other, so that they do not conflict. */
static int give_slots(struct sandbox_server *const *master)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        char slots[64], epoch[64];
        snprintf(slots, sizeof slots, "CLUSTER ADDSLOTSRANGE %d %d",
                 i * SLOTS / SANDBOX_CLUSTER_MASTERS,
                 (i + 1) * SLOTS / SANDBOX_CLUSTER_MASTERS - 1);
        snprintf(epoch, sizeof epoch, "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
        if (!run_command(master[i], slots) || !run_command(master[i], epoch))
            return -1;
    }
    return 0;
}

/* node[i + SANDBOX_CLUSTER_MASTERS] becomes the replica of node[i]. */
static int replicate(struct sandbox_server *const *node)
{
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        redisReply *id = sandbox_redis_order(node[i], "CLUSTER MYID");
        char command[32 + ID_LENGTH] = "";
        if (id != NULL && id->type == REDIS_REPLY_STRING)
            snprintf(command, sizeof command, "CLUSTER REPLICATE %.*s", ID_LENGTH, id->str);
        freeReplyObject(id);
        if (!run_command(node[i + SANDBOX_CLUSTER_MASTERS], command))
            return -1;
    }
    return await_all(node + SANDBOX_CLUSTER_MASTERS, SANDBOX_CLUSTER_MASTERS, "INFO replication",
                     "master_link_status:up");
}

int sandbox_cluster(struct sandbox *sandbox, bool replicas, struct sandbox_cluster *ret)
{
    struct sandbox_server *node[NODES_MAX];
    int bus_port[NODES_MAX], n = replicas ? NODES_MAX : SANDBOX_CLUSTER_MASTERS;
    for (int i = 0; i < n; i++) {
        node[i] = start_node(sandbox, &bus_port[i]);
        if (node[i] == NULL)
            return -1;
    }
    if (give_slots(node) != 0)
        return -1;
    for (int i = 1; i < n; i++) {
        char meet[64];
        snprintf(meet, sizeof meet, "CLUSTER MEET 127.0.0.1 %d %d", node[i]->port, bus_port[i]);
        if (!run_command(node[0], meet))
            return -1;
    }
    char known[32];
    snprintf(known, sizeof known, "cluster_known_nodes:%d\r", n);
    if (await_all(node, n, "CLUSTER INFO", known) != 0 || (replicas && replicate(node) != 0) ||
        await_all(node, n, "CLUSTER INFO", "cluster_slots_ok:16384") != 0 ||
        await_all(node, n, "CLUSTER INFO", "cluster_state:ok") != 0)
        return -1;
    for (int i = 0; i < n && !replicas; i++) /* only now: a new cluster waits for this time, too */
        if (!run_command(node[i], "CONFIG SET cluster-node-timeout " PATIENT_TIMEOUT_MS))
            return -1;
    *ret = (struct sandbox_cluster){.n_replicas = n - SANDBOX_CLUSTER_MASTERS};
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++) {
        ret->master[i] = node[i];
        ret->replica[i] = replicas ? node[i + SANDBOX_CLUSTER_MASTERS] : NULL;
    }
    snprintf(ret->url, sizeof ret->url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             node[0]->port, node[1]->port, node[2]->port);
    return 0;
}
