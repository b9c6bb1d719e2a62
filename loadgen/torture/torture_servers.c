/* The lock servers and databases of a round, and the wires to them. */
#include "sandbox_process.h"
#include "torture_store.h"
#include "torture_world.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

static int revive(struct sandbox_server *server)
{
    if (server == NULL)
        return -1;
    return sandbox_alive(server) || sandbox_restart(server) == 0 ? 0 : -1;
}

static int add_lock_server(struct torture_world *world, struct sandbox_server *server)
{
    if (revive(server) != 0)
        return -1;
    world->locks[world->n_locks++] = (struct torture_process){.server = server};
    return 0;
}

/* -- each kind --------------------------------------------------------------------------------- */

static int use_single_redis(struct torture_world *world)
{
    if (world->redis == NULL)
        world->redis = sandbox_redis_with_clock(world->sandbox, world->shim);
    return world->redis != NULL && sandbox_set_clock(world->redis, 0) == 0
               ? add_lock_server(world, world->redis)
               : -1;
}

static int use_nodes(struct torture_world *world)
{
    for (int i = 0; i < TORTURE_NODES; i++) {
        if (world->nodes[i] == NULL)
            world->nodes[i] = sandbox_redis_with_clock(world->sandbox, world->shim);
        if (world->nodes[i] == NULL || sandbox_set_clock(world->nodes[i], 0) != 0 ||
            add_lock_server(world, world->nodes[i]) != 0)
            return -1;
    }
    return 0;
}

/* After a failover nothing is as it was: each round gets servers of its own. */
static int use_failover(struct torture_world *world)
{
    if (sandbox_open(&world->failover_sandbox) != 0)
        return -1;
    if (world->plan->is.topology == SENTINEL) {
        if (sandbox_sentinel(world->failover_sandbox, &world->sentinel) != 0 ||
            add_lock_server(world, world->sentinel.master) != 0 ||
            add_lock_server(world, world->sentinel.replica) != 0)
            return -1;
        snprintf(world->endpoints, sizeof world->endpoints, "%s", world->sentinel.url);
        return 0;
    }
    if (sandbox_cluster(world->failover_sandbox, true, &world->cluster) != 0)
        return -1;
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        if (add_lock_server(world, world->cluster.master[i]) != 0 ||
            add_lock_server(world, world->cluster.replica[i]) != 0)
            return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", world->cluster.url);
    return 0;
}

static int use_zookeeper(struct torture_world *world)
{
    bool three = world->plan->is.topology == THREE;
    struct sandbox_zookeeper *set = three ? &world->ensemble : &world->single;
    if (set->n == 0 && sandbox_zookeeper(world->sandbox, three ? 3 : 1, set) != 0)
        return -1;
    for (int i = 0; i < set->n; i++)
        if (add_lock_server(world, set->server[i]) != 0)
            return -1;
    return sandbox_zookeeper_agree(set);
}

static int use_memcached(struct torture_world *world)
{
    if (world->memcached == NULL)
        world->memcached = sandbox_memcached(world->sandbox, NULL);
    return add_lock_server(world, world->memcached);
}

/* Locks in the store need nothing more; those beside a SQLite store have a server of their own. */
static int use_database(struct torture_world *world)
{
    const struct torture_settings *is = &world->plan->is;
    if (is->postgres || is->guard->servers == SERVERS_DATABASE) {
        snprintf(world->endpoints, sizeof world->endpoints, "%s%s", world->store,
                 is->postgres ? "" : "-locks");
        return 0;
    }
    if (torture_database_start(world) != 0)
        return -1;
    snprintf(world->endpoints, sizeof world->endpoints, "%s", world->database->url);
    return add_lock_server(world, world->database);
}

/* -- addresses and wires ----------------------------------------------------------------------- */

/* How a client of this guard writes the address of one server at a port. */
static void append_address(const struct torture_world *world, int port, bool first, char *text,
                           size_t size)
{
    size_t length = strlen(text);
    const char *form = world->plan->is.guard->servers == SERVERS_POSTGRES
                           ? "%spostgres://postgres@127.0.0.1:%d/postgres"
                       : world->plan->is.guard->servers == SERVERS_ZOOKEEPER ||
                               world->plan->is.guard->servers == SERVERS_MEMCACHED
                           ? "%s127.0.0.1:%d"
                           : "%sredis://127.0.0.1:%d";
    snprintf(text + length, size - length, form, first ? "" : ",", port);
}

static int lay_wires(struct torture_world *world)
{
    const struct torture_settings *is = &world->plan->is;
    bool straight = world->failover_sandbox != NULL;
    for (int i = 0; i < (int)is->instances; i++) {
        for (int j = 0; j < world->n_locks && !straight; j++)
            if ((world->lock_wires[i][j] = proxy_open(world->locks[j].server->port)) == NULL)
                return -1;
        if (is->postgres && (world->store_wires[i] = proxy_open(world->database->port)) == NULL)
            return -1;
    }
    if (straight)
        return 0;
    for (int j = 0; j < world->n_locks; j++)
        append_address(world, world->locks[j].server->port, j == 0, world->endpoints,
                       sizeof world->endpoints);
    return 0;
}

void torture_servers_flag(const struct torture_world *world, int i, const char **ret_flag,
                          char *ret_value, size_t size)
{
    static const char *const flags[] = {[SERVERS_NONE] = "",
                                        [SERVERS_REDIS] = "--redis",
                                        [SERVERS_REDLOCK] = "--redis",
                                        [SERVERS_ZOOKEEPER] = "--zookeeper",
                                        [SERVERS_MEMCACHED] = "--memcached",
                                        [SERVERS_DATABASE] = "",
                                        [SERVERS_POSTGRES] = "--lock-db"};
    *ret_flag = world->n_locks > 0 ? flags[world->plan->is.guard->servers] : "";
    ret_value[0] = '\0';
    if (world->failover_sandbox != NULL)
        snprintf(ret_value, size, "%s", world->endpoints);
    else
        for (int j = 0; j < world->n_locks; j++)
            append_address(world, proxy_port(world->lock_wires[i][j]), j == 0, ret_value, size);
}

int torture_servers_prepare(struct torture_world *world)
{
    static int (*const use[])(struct torture_world * world) = {
        [SERVERS_REDIS] = use_single_redis,  [SERVERS_REDLOCK] = use_nodes,
        [SERVERS_ZOOKEEPER] = use_zookeeper, [SERVERS_MEMCACHED] = use_memcached,
        [SERVERS_DATABASE] = use_database,   [SERVERS_POSTGRES] = use_database};
    const struct torture_settings *is = &world->plan->is;
    bool failover = is->topology == SENTINEL || is->topology == CLUSTER;
    world->n_locks = 0;
    world->endpoints[0] = '\0';
    if (is->guard->servers != SERVERS_NONE &&
        (failover ? use_failover(world) : use[is->guard->servers](world)) != 0)
        return -1;
    return lay_wires(world);
}

/* The next round finds no lock of this one. */
void torture_servers_clear(struct torture_world *world)
{
    lk_close(world->hand);
    world->hand = NULL;
    for (int i = 0; i < TORTURE_INSTANCES; i++) {
        for (int j = 0; j < TORTURE_NODES; j++)
            if (world->lock_wires[i][j] != NULL)
                proxy_close(world->lock_wires[i][j]);
        if (world->store_wires[i] != NULL)
            proxy_close(world->store_wires[i]);
        world->store_wires[i] = NULL;
        memset(world->lock_wires[i], 0, sizeof world->lock_wires[i]);
    }
    sandbox_close(world->failover_sandbox);
    world->failover_sandbox = NULL;
    world->ahead_us = 0;
    struct sandbox_server *const all[] = {world->redis,    world->nodes[0], world->nodes[1],
                                          world->nodes[2], world->nodes[3], world->nodes[4]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL && revive(all[i]) == 0)
            freeReplyObject(sandbox_redis_ask(all[i], "FLUSHALL"));
    world->n_locks = 0;
}

/* -- PostgreSQL -------------------------------------------------------------------------------- */

int torture_database_start(struct torture_world *world)
{
    if (world->database == NULL)
        world->database = sandbox_postgres(
            world->sandbox, (const char *const[]){"-c", "max_connections=300", NULL});
    return revive(world->database);
}

long torture_database_ask(const struct torture_world *world, const char *sql)
{
    char message[400];
    struct torture_store *store =
        world->database == NULL ? NULL
                                : torture_store_open(world->database->url, message, sizeof message);
    long rows = -1;
    if (store != NULL)
        rows = torture_store_ask(store, sql, NULL, NULL, message, sizeof message);
    torture_store_close(store);
    return rows;
}
