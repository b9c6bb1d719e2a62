/* Instances of the service: their lives, each in a group of fibers of its own. */
#include "business.h"
#include "sim_disk.h"
#include "sim_files.h"
#include "sim_memcached.h"
#include "sim_sockets.h"
#include "sim_pg.h"
#include "sim_points.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARGS_MAX = 64, DRAIN_MS = 20000, RETRY_US = 200000 };

/* Through seckilld's own flags: they are a contract, struct config is not. */
static void configure(struct sim_instance *instance)
{
    const struct sim_settings *is = &sim_world.is;
    static char texts[ARGS_MAX][96];
    char *args[ARGS_MAX];
    int n = 0;
#define ADD(...)                                                                                   \
    do {                                                                                           \
        snprintf(texts[n], sizeof texts[n], __VA_ARGS__);                                          \
        args[n] = texts[n];                                                                        \
        n++;                                                                                       \
    } while (0)
#define ON(yes) ((yes) ? "on" : "off")
    ADD("seckilld");
    if (is->postgres)
        ADD("--db=postgres://shop@model/shop?isolation=%s", is->isolation);
    else
        ADD("--db=sqlite:%s", sim_store);
    if (is->lock_postgres)
        ADD("--lock-db=postgres://shop@model/shop?pool=12");
    else
        ADD("--lock-db=sqlite:%s", sim_lock_store);
    ADD("--redis=%s", sim_redis_endpoint(is->redis));
    ADD("--zookeeper=z1:2181");
    ADD("--memcached=127.0.0.9:%d", SIM_MEMCACHED_PORT);
    ADD("--redis-replicas=%u", is->replicas);
    if (is->instances > 1 && !is->postgres)
        ADD("--db-shared");
    ADD("--sync=%s", is->sync_normal ? "normal" : "full");
    ADD("--guard=%s", is->guard);
    ADD("--lease-ms=%u", is->lease_ms);
    ADD("--wait-ms=%u", is->wait_ms);
    ADD("--max-hold-ms=%u", is->max_hold_ms);
    ADD("--watchdog=%s", ON(is->watchdog));
    ADD("--fence=%s", ON(is->fence));
    ADD("--fence-source=%s", is->fence_database ? "database" : "lock");
    ADD("--lock-queue=%s", ON(is->lock_queue));
    ADD("--lanes=%s", ON(is->lanes));
    ADD("--batch=%u", is->batch);
    ADD("--lane-turns=%u", is->turns);
    ADD("--workers=%u", is->workers);
    ADD("--refusals-max=%u", is->refusals_max);
    ADD("--close-orders-ms=%u", is->close_ms);
    ADD("--key-retention-s=%u", is->retention_s);
    ADD("--instance=i%d", instance->number);
    args[n] = NULL;
    if (config_load(n, args, true, &instance->config) != -1)
        abort();
}

/* The process's main(): opens, serves until it is told to stop, drains, closes. */
static void *live(void *arg)
{
    struct sim_instance *instance = arg;
    if (service_open(&instance->config, &business, sim_seams(), &instance->service) != 0) {
        instance->state = SIM_DOWN;
        sim_wake(instance, INT32_MAX);
        return instance; /* as a failed exit */
    }
    instance->state = SIM_UP;
    sim_tell("i%d is up", instance->number);
    while (!instance->stop)
        sim_wait(&instance->stop, SIM_FOREVER);
    instance->state = SIM_STOPPING;
    service_drain(instance->service, DRAIN_MS);
    while (instance->entering > 0) /* the HTTP side ends before the service does */
        sim_sleep_us(1);
    instance->state = SIM_CLOSING;
    service_close(instance->service);
    instance->state = SIM_DOWN;
    sim_wake(instance, INT32_MAX);
    return NULL;
}

static void end_process(struct sim_instance *instance)
{
    int group = instance->group;
    instance->life++;
    instance->supervised = false;
    instance->state = SIM_DOWN;
    instance->service = NULL;
    instance->entering = 0;
    sim_disk_kill(group);
    sim_files_kill(group);
    sim_sockets_kill(group);
    sim_pg_kill(group);
    sim_wake(instance, INT32_MAX);
    sim_kill(group);
}

struct watch {
    struct sim_instance *instance;
    uint32_t start;
};

/* Keeps one instance alive: what a supervisor does. It ends with the process that was killed, and
 * whoever did it starts another. */
static void *supervise(void *arg)
{
    struct sim_instance *instance = ((struct watch *)arg)->instance;
    const uint32_t start = ((struct watch *)arg)->start;
    free(arg);
    while (start == instance->starts) {
        void *failed = NULL;
        if (sim_world.last_group + 1 == SIM_GROUPS_MAX)
            abort();
        instance->group = ++sim_world.last_group;
        instance->life++;
        instance->stop = false;
        instance->kill_in = 0;
        instance->state = SIM_STARTING;
        uint32_t life = instance->life;
        struct sim_fiber *process = sim_spawn(instance->group, "main", live, instance);
        while (instance->life == life && !sim_ended(process, &failed))
            sim_wait(instance, sim_now_us() + RETRY_US);
        if (instance->life != life) /* killed, and to be started by who did it */
            return NULL;
        end_process(instance);
        if (!failed)
            return NULL;
        instance->supervised = true;
        sim_count(SIM_START_FAILED);
        sim_tell("i%d cannot start", instance->number);
        sim_sleep_us(RETRY_US);
    }
    return NULL;
}

void sim_instance_start(struct sim_instance *instance)
{
    if (instance->supervised)
        return;
    instance->supervised = true;
    if (instance->config.instance[0] == '\0')
        configure(instance);
    instance->state = SIM_STARTING;
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        abort();
    *watch = (struct watch){.instance = instance, .start = ++instance->starts};
    sim_spawn(SIM_WORLD, "supervisor", supervise, watch);
}

void sim_instance_kill(struct sim_instance *instance)
{
    sim_tell("i%d is killed", instance->number);
    instance->starts++; /* a supervisor that has not started it yet is not to, either */
    end_process(instance);
}

void sim_instance_stop(struct sim_instance *instance)
{
    uint32_t life = instance->life;
    if (instance->state != SIM_UP)
        return;
    sim_tell("i%d is to stop", instance->number);
    instance->stop = true;
    sim_wake(&instance->stop, 1);
    while (instance->life == life)
        sim_wait(instance, sim_now_us() + RETRY_US);
    sim_tell("i%d has stopped", instance->number);
}

struct sim_instance *sim_instance_any(void)
{
    struct sim_instance *chosen = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        if ((sim_world.instances[i].state == SIM_UP ||
             sim_world.instances[i].state == SIM_STOPPING) &&
            sim_below(++n) == 0)
            chosen = &sim_world.instances[i];
    return chosen;
}
