#include "steady.h"
#include "sandbox_process.h"
#include "torture_archive.h"
#include "torture_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LIVE_MS = 1000, NUMBERS = 8, NUMBER_MAX = 16, ARGS_MAX = 60 };

int torture_world_open(struct torture_world *world, const char *seckilld, const char *shim)
{
    *world = (struct torture_world){.seckilld = seckilld, .shim = shim};
    return sandbox_open(&world->sandbox);
}

void torture_world_close(struct torture_world *world)
{
    lk_close(world->hand);
    sandbox_close(world->failover_sandbox);
    sandbox_close(world->sandbox);
}

/* -- instances --------------------------------------------------------------------------------- */

/* It serves; whether its servers answer is another matter (/readyz). */
static bool is_alive(struct sandbox_server *server)
{
    return sandbox_answers(NULL, server->port,
                           "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
                           "HTTP/1.1 200 ", LIVE_MS);
}

struct args {
    const char *list[ARGS_MAX + 1];
    int n;
    char numbers[NUMBERS][NUMBER_MAX];
    int n_numbers;
};

static void add(struct args *args, const char *flag, const char *value)
{
    args->list[args->n++] = flag;
    if (value != NULL)
        args->list[args->n++] = value;
}

static void add_number(struct args *args, const char *flag, uint32_t value)
{
    char *text = args->numbers[args->n_numbers++];
    snprintf(text, NUMBER_MAX, "%u", value);
    add(args, flag, text);
}

static const char *on_off(bool on)
{
    return on ? "on" : "off";
}

static void add_settings(struct args *args, const struct torture_settings *is)
{
    add(args, "--guard", is->guard->name);
    add(args, "--lanes", on_off(is->lanes));
    add(args, "--lock-queue", on_off(is->lock_queue));
    add(args, "--watchdog", on_off(is->watchdog));
    add(args, "--fence", on_off(is->fence));
    add(args, "--fence-source", is->fence_database ? "database" : "lock");
    add_number(args, "--batch", is->batch);
    add_number(args, "--lane-turns", is->turns);
    add_number(args, "--workers", is->workers);
    add_number(args, "--lease-ms", is->lease_ms);
    add_number(args, "--wait-ms", is->wait_ms);
    if (!is->postgres && is->instances > 1)
        add(args, "--db-shared", NULL);
}

static int start_instance(struct torture_world *world, int i)
{
    const struct torture_settings *is = &world->plan->is;
    struct args args = {.n = 0};
    char store[TORTURE_URL_MAX], locks[TORTURE_URL_MAX], message[200];
    const char *flag;
    snprintf(store, sizeof store, "%s", world->store);
    if (is->postgres)
        snprintf(store, sizeof store, "postgres://postgres@127.0.0.1:%d/%s?pool=20",
                 proxy_port(world->store_wires[i]), world->database_name);
    torture_servers_flag(world, i, &flag, locks, sizeof locks);
    add(&args, "--db", store);
    if (flag[0] != '\0')
        add(&args, flag, locks);
    add(&args, "--instance", i == 0 ? "one" : "two");
    add_settings(&args, is);
    if (world->slip != NULL) {
        add(&args, "--lab", NULL);
        add(&args, "--lab-slip", world->slip);
    }
    struct sandbox_server **server = &world->instances[i];
    if (*server == NULL)
        *server = sandbox_seckilld(world->sandbox, world->seckilld, args.list);
    else if (sandbox_seckilld_anew(*server, world->seckilld, args.list) != 0)
        return -1;
    if (*server == NULL)
        return -1;
    (*server)->ready = is_alive;
    world->instance[i] = (struct torture_process){.server = *server, .instance = true};
    return load_target_parse((*server)->url, &world->targets[i], message, sizeof message);
}

/* -- a round ----------------------------------------------------------------------------------- */

static int make_store(struct torture_world *world)
{
    char sql[96];
    if (!world->plan->is.postgres) {
        snprintf(world->store, sizeof world->store, "sqlite:%.500s/store.db", world->dir);
        return 0;
    }
    if (torture_database_start(world) != 0)
        return -1;
    snprintf(world->database_name, sizeof world->database_name, "t%llu",
             (unsigned long long)world->plan->seed);
    torture_world_drop(world);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s", world->database_name);
    if (torture_database_ask(world, sql) < 0) {
        fprintf(stderr, "torture: PostgreSQL makes no database\n");
        return -1;
    }
    snprintf(world->store, sizeof world->store, "postgres://postgres@127.0.0.1:%d/%s",
             world->database->port, world->database_name);
    world->postgres = (struct torture_process){.server = world->database};
    return 0;
}

int torture_world_prepare(struct torture_world *world, const struct torture_plan *plan,
                          const char *dir)
{
    world->plan = plan;
    world->why[0] = '\0';
    world->failovers = 0;
    world->postgres = (struct torture_process){.server = NULL};
    for (int i = 0; i < TORTURE_INSTANCES; i++)
        world->instance[i] = (struct torture_process){.server = NULL};
    snprintf(world->dir, sizeof world->dir, "%s", dir);
    if (torture_archive_prepare(world) != 0 || make_store(world) != 0 ||
        torture_servers_prepare(world) != 0)
        return -1;
    for (int i = 0; i < (int)plan->is.instances; i++)
        if (start_instance(world, i) != 0)
            return -1;
    return 0;
}

/* Their logs go where the round's other traces are. */
static void keep_log(const struct torture_world *world, int i)
{
    char line[2 * TORTURE_PATH_MAX], buffer[4096];
    size_t n;
    snprintf(line, sizeof line, "%s/instance-%d.log", world->dir, i + 1);
    FILE *from = fopen(world->instances[i]->log, "re"), *to = fopen(line, "we");
    while (from != NULL && to != NULL && (n = fread(buffer, 1, sizeof buffer, from)) > 0)
        fwrite(buffer, 1, n, to);
    if (from != NULL)
        fclose(from);
    if (to != NULL)
        fclose(to);
}

void torture_world_end_round(struct torture_world *world)
{
    torture_archive_kill(world);
    for (int i = 0; i < TORTURE_INSTANCES; i++) {
        if (world->instance[i].server == NULL)
            continue;
        if (sandbox_alive(world->instances[i]))
            sandbox_signal(world->instances[i], SIGKILL);
        keep_log(world, i);
        world->instance[i].server = NULL;
    }
    torture_servers_clear(world);
}

void torture_world_drop(struct torture_world *world)
{
    char sql[96];
    if (world->database == NULL || !world->plan->is.postgres)
        return;
    snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", world->database_name);
    torture_database_ask(world, sql);
}

/* -- time passes ------------------------------------------------------------------------------- */

/* Servers before instances: an instance needs its store. */
static struct torture_process *process_at(struct torture_world *world, int i)
{
    if (i == 0)
        return &world->postgres;
    if (i <= world->n_locks)
        return &world->locks[i - 1];
    i -= 1 + world->n_locks;
    return i < TORTURE_INSTANCES ? &world->instance[i] : NULL;
}

void torture_world_tick(struct torture_world *world, int64_t now_us)
{
    struct torture_process *process;
    torture_archive_look(world);
    for (int i = 0; (process = process_at(world, i)) != NULL; i++)
        torture_process_tick(world, process, now_us);
}

bool torture_world_heal(struct torture_world *world)
{
    struct torture_process *process;
    bool all = true;
    for (int i = 0; (process = process_at(world, i)) != NULL; i++)
        if (process->server != NULL && process->state != RUNS &&
            !(process->state == DOWN && process->until_us == INT64_MAX)) {
            process->down_ms = 0;
            if (process->state != LEAVES)
                process->until_us = 0;
        }
    torture_world_tick(world, steady_us());
    for (int i = 0; (process = process_at(world, i)) != NULL; i++)
        all = all && (process->server == NULL || process->state == RUNS ||
                      (process->state == DOWN && process->until_us == INT64_MAX));
    return all;
}
