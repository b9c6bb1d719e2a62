#include "hazard_world.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int world_open(struct world *world, const char *seckilld, const char *clock_shim)
{
    /* Two instances with all connections of their stores and of their locks. */
    static const char *const roomy[] = {"-c", "max_connections=250", NULL};
    *world = (struct world){.seckilld = seckilld, .clock_shim = clock_shim};
    if (sandbox_open(&world->sandbox) != 0)
        return -1;
    world->postgres = sandbox_postgres(world->sandbox, roomy);
    if (world->postgres != NULL)
        return 0;
    world_close(world);
    return -1;
}

void world_close(struct world *world)
{
    for (int i = 0; i < HAZARD_INSTANCES; i++) {
        for (int j = 0; j < WORLD_NODES; j++)
            if (world->instances[i].links[j].proxy != NULL)
                proxy_close(world->instances[i].links[j].proxy);
        if (world->instances[i].store.proxy != NULL)
            proxy_close(world->instances[i].store.proxy);
    }
    PQfinish(world->asker);
    world_close_inspector(world);
    sandbox_close(world->failover_sandbox);
    sandbox_close(world->sandbox);
    *world = (struct world){0};
}

/* -- an instance's command line --------------------------------------------------------------- */

struct command_line {
    char text[WORLD_ARGS_TEXT_MAX]; /* NUL-separated */
    size_t length;
    const char *args[WORLD_ARGS_MAX + 1];
    int n;
};

__attribute__((format(printf, 2, 3))) static void add(struct command_line *line, const char *format,
                                                      ...)
{
    size_t room = sizeof line->text - line->length;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line->text + line->length, room, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= room || line->n == WORLD_ARGS_MAX)
        return; /* the service will say what it misses */
    line->args[line->n++] = line->text + line->length;
    line->length += (size_t)length + 1;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool nodes_by_proxy(const char *guard, const struct hazard_setting *with)
{
    return with->by_proxy && strcmp(guard, "redlock") == 0;
}

static void add_proxied_nodes(struct command_line *line, const struct world_instance *instance)
{
    char urls[SANDBOX_TEXT_MAX];
    size_t length = 0;
    for (int i = 0; i < WORLD_NODES; i++)
        length += (size_t)snprintf(urls + length, sizeof urls - length, "%sredis://127.0.0.1:%d",
                                   i > 0 ? "," : "", proxy_port(instance->links[i].proxy));
    add(line, "%s", urls);
}

/* A single lock server is reached through the instance's proxy. */
static void add_locks(struct command_line *line, const struct world *world,
                      const struct world_instance *instance, const char *guard,
                      const struct hazard_setting *with)
{
    const char *flag = begins(guard, "red")         ? "--redis"
                       : begins(guard, "zk-")       ? "--zookeeper"
                       : begins(guard, "memcached") ? "--memcached"
                                                    : NULL;
    if (flag == NULL)
        return;
    add(line, "%s", flag);
    if (world->locks != NULL)
        add(line, "%s127.0.0.1:%d", begins(guard, "red") ? "redis://" : "",
            proxy_port(instance->links[0].proxy));
    else if (nodes_by_proxy(guard, with))
        add_proxied_nodes(line, instance);
    else
        add(line, "%s", world->endpoints);
}

/* A's instance is the first. */
static bool by_store_proxy(int index, const struct hazard_setting *with)
{
    return index == 0 && with->store_by_proxy;
}

static void compose(struct command_line *line, struct world *world, int index, const char *guard,
                    const struct hazard_setting *with)
{
    const struct world_instance *instance = &world->instances[index];
    *line = (struct command_line){0};
    add(line, "--lab");
    add(line, "--db");
    if (by_store_proxy(index, with))
        add(line, "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&isolation=%s",
            proxy_port(instance->store.proxy), with->isolation);
    else
        add(line, "%s?isolation=%s", world->postgres->url, with->isolation);
    add_locks(line, world, instance, guard, with);
    add(line, "--lanes");
    add(line, with->lane_turns != 0 ? "on" : "off");
    if (with->lane_turns != 0) {
        add(line, "--lane-turns");
        add(line, "%lld", (long long)with->lane_turns);
    }
    add(line, "--guard");
    add(line, "%s", guard);
    add(line, "--instance");
    add(line, "shop-%d", index + 1);
    add(line, "--lease-ms");
    add(line, "%lld", (long long)with->lease_ms);
    add(line, "--wait-ms");
    add(line, "%lld", (long long)with->wait_ms);
    add(line, "--watchdog");
    add(line, with->watchdog == OFF ? "off" : "on");
    if (with->fence_source[0] != '\0') {
        add(line, "--fence-source");
        add(line, "%s", with->fence_source);
    }
    if (with->replicas != 0) {
        add(line, "--redis-replicas");
        add(line, "%lld", (long long)with->replicas);
    }
    if (with->max_hold_ms != 0) {
        add(line, "--max-hold-ms");
        add(line, "%lld", (long long)with->max_hold_ms);
    }
    if (with->workers != 0) {
        add(line, "--workers");
        add(line, "%lld", (long long)with->workers);
    }
    if (with->close_ms != 0) {
        add(line, "--close-orders-ms");
        add(line, "%lld", (long long)with->close_ms);
    }
    if (with->slip[0] != '\0') {
        add(line, "--lab-slip");
        add(line, "%s", with->slip);
    }
    if (with->clock_ms != 0 && index == 0) {
        add(line, "--lab-clock-ms");
        add(line, "%lld", (long long)with->clock_ms);
    }
}

static bool same(const struct world_instance *instance, const struct command_line *line)
{
    return instance->server != NULL &&
           memcmp(instance->args, line->text, sizeof instance->args) == 0;
}

/* -- instances -------------------------------------------------------------------------------- */

static int start(struct world *world, struct world_instance *instance,
                 const struct command_line *line)
{
    char message[256];
    instance->args[0] = '\0';
    if (instance->server == NULL)
        instance->server = sandbox_seckilld(world->sandbox, world->seckilld, line->args);
    else if (world_kill(instance) != 0 ||
             sandbox_seckilld_anew(instance->server, world->seckilld, line->args) != 0)
        return -1;
    if (instance->server == NULL)
        return -1;
    if (load_target_parse(instance->server->url, &instance->target, message, sizeof message) != 0) {
        fprintf(stderr, "hazards: %s\n", message);
        return -1;
    }
    memcpy(instance->args, line->text, sizeof instance->args);
    return 0;
}

static int prepare_link(struct world_link *link, int port)
{
    if (link->proxy != NULL && link->server_port == port)
        return 0;
    if (link->proxy != NULL)
        proxy_close(link->proxy);
    link->proxy = proxy_open(port);
    link->server_port = port;
    if (link->proxy != NULL)
        proxy_mute(link->proxy, "SUBSCRIBE", false); /* marks subscriptions, for SILENCE */
    return link->proxy != NULL ? 0 : -1;
}

static int prepare_links(const struct world *world, struct world_instance *instance,
                         const char *guard, const struct hazard_setting *with)
{
    struct sandbox_server *const *servers = &world->locks;
    int n = world->locks != NULL;
    if (nodes_by_proxy(guard, with)) {
        servers = world->nodes;
        n = WORLD_NODES;
    }
    for (int i = 0; i < n; i++)
        if (prepare_link(&instance->links[i], servers[i]->port) != 0)
            return -1;
    return 0;
}

int world_prepare(struct world *world, const char *guard, const struct hazard_setting *with)
{
    struct command_line line;
    if (world_choose_locks(world, guard, with) != 0)
        return -1;
    for (int i = 0; i < with->instances; i++) {
        struct world_instance *instance = &world->instances[i];
        if (instance->stopped && world_continue(instance) != 0)
            return -1;
        if (prepare_links(world, instance, guard, with) != 0 ||
            (by_store_proxy(i, with) && prepare_link(&instance->store, world->postgres->port) != 0))
            return -1;
        compose(&line, world, i, guard, with);
        if (!same(instance, &line) && start(world, instance, &line) != 0)
            return -1;
        if (!sandbox_alive(instance->server) && sandbox_restart(instance->server) != 0)
            return -1;
    }
    /* Its scheduled task would close the others' orders, under another guard. */
    for (int i = with->instances; i < HAZARD_INSTANCES; i++)
        if (world->instances[i].server != NULL && world_kill(&world->instances[i]) != 0)
            return -1;
    return 0;
}

struct world_instance *world_instance_of(struct world *world, const struct hazard_setting *with,
                                         enum hazard_who who)
{
    return &world->instances[who == A || with->instances == 1 ? 0 : 1];
}

static int ask_store(struct world *world, const char *question)
{
    if (world->asker == NULL || PQstatus(world->asker) != CONNECTION_OK) {
        PQfinish(world->asker);
        world->asker = PQconnectdb(world->postgres->url);
    }
    PGresult *result = PQexec(world->asker, question);
    bool answered = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    int number = answered ? (int)strtol(PQgetvalue(result, 0, 0), NULL, 10) : -1;
    PQclear(result);
    return number;
}

bool world_store_waits(struct world *world)
{
    return ask_store(world, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
}

int world_store_writes(struct world *world)
{
    return ask_store(world, "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL "
                            "AND backend_type = 'client backend'");
}

/* -- faults ----------------------------------------------------------------------------------- */

int world_kill(struct world_instance *instance)
{
    if (!sandbox_alive(instance->server))
        return 0;
    int status = sandbox_signal(instance->server, SIGKILL);
    instance->stopped = false;
    return status != -1 && WIFSIGNALED(status) ? 0 : -1;
}

int world_restart(struct world_instance *instance)
{
    return sandbox_restart(instance->server);
}

int world_stop(struct world_instance *instance)
{
    instance->stopped = sandbox_signal(instance->server, SIGSTOP) == 0;
    return instance->stopped ? 0 : -1;
}

int world_continue(struct world_instance *instance)
{
    instance->stopped = false;
    return sandbox_signal(instance->server, SIGCONT);
}
