#include "sim_world.h"
#include "sim_archive.h"
#include "sim_disk.h"
#include "sim_fence.h"
#include "sim_files.h"
#include "sim_memcached.h"
#include "sim_sockets.h"
#include "sim_pg.h"
#include "sim_points.h"
#include "sim_threads.h"
#include "sim_zk.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char sim_store[] = "/store", sim_lock_store[] = "/locks";
struct sim_world sim_world;

enum { PROGRESS_US = 180000000 };

/* -- what happened ---------------------------------------------------------------------------- */

void sim_broken(const char *format, ...)
{
    struct sim_result *result = sim_world.result;
    va_list args;
    va_start(args, format);
    if (result->broken[0] == '\0') {
        vsnprintf(result->broken, sizeof result->broken, format, args);
        sim_tell("BROKEN: %s", result->broken);
    }
    va_end(args);
}

void sim_count(enum sim_event event)
{
    sim_world.result->events[event]++;
    sim_note((uint64_t)event);
}

void sim_tell(const char *format, ...)
{
    if (!sim_world.timeline)
        return;
    va_list args;
    va_start(args, format);
    fprintf(sim_world.timeline, "%10.3f ms  ", (double)(sim_now_us() - 1000000) / 1000);
    vfprintf(sim_world.timeline, format, args);
    fputc('\n', sim_world.timeline);
    va_end(args);
}

static void note_disk_and_net(void)
{
    const struct sim_net_counts *net = sim_net_counts();
    const struct sim_disk_counts *disk = sim_disk_counts();
    uint64_t *events = sim_world.result->events;
    events[SIM_WRITE_FAILED] = disk->write_failures;
    events[SIM_FLUSH_FAILED] = disk->flush_failures;
    events[SIM_DISK_FULL] = disk->fulls;
    events[SIM_NET_CUT] = net->cut_before;
    events[SIM_NET_LOST] = net->cut_after;
    events[SIM_NET_LATE] = net->late;
    events[SIM_NET_SILENT] = net->silent;
    events[SIM_CLUSTER_GONE] = net->elsewhere;
}

/* -- the run ---------------------------------------------------------------------------------- */

static void open_shop(void)
{
    char id[16];
    for (uint32_t i = 0; i < sim_world.is.items; i++) {
        snprintf(id, sizeof id, "%u", i);
        sim_put(OP_PUT_ITEM, id, sim_world.is.stock, "");
    }
    for (uint32_t i = 0; i < sim_world.is.accounts; i++) {
        snprintf(id, sizeof id, "u%u", i);
        sim_put(OP_PUT_ACCOUNT, id, sim_world.is.balance, "");
    }
}

static void *nemesis(void *arg)
{
    (void)arg;
    sim_nemesis();
    sim_wake(&sim_world.healed, INT32_MAX);
    return NULL;
}

/* Everybody is served once all is healed. */
static void await_clients(void)
{
    while (!sim_world.healed)
        sim_wait(&sim_world.healed, sim_now_us() + PROGRESS_US);
    while (sim_world.clients_left > 0 && sim_world.result->broken[0] == '\0') {
        sim_wait(&sim_world.clients_left, sim_now_us() + PROGRESS_US);
        if (sim_now_us() > sim_world.healed_us + PROGRESS_US && sim_world.clients_left > 0)
            sim_broken("%u clients still wait, %d s after all was healed", sim_world.clients_left,
                       PROGRESS_US / 1000000);
    }
}

static void script(void *arg)
{
    (void)arg;
    if (sim_world.is.redis != SIM_REDIS_NONE || sim_world.is.memcached)
        sim_net_start();
    if (sim_world.is.memcached)
        sim_memcached_start();
    sim_redis_start(sim_world.is.redis);
    if (sim_world.is.zookeeper)
        sim_zk_start();
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        sim_instance_start(&sim_world.instances[i]);
    open_shop();
    if (sim_world.result->broken[0] != '\0')
        return;
    sim_tell("the shop is open");
    sim_clients_start();
    sim_spawn(SIM_WORLD, "nemesis", nemesis, NULL);
    await_clients();
    if (sim_world.result->broken[0] != '\0')
        return;
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        while (sim_world.instances[i].state != SIM_DOWN) {
            sim_instance_stop(&sim_world.instances[i]);
            sim_sleep_us(1000);
        }
    sim_archive_finish();
    sim_judge();
}

void sim_world_run(const struct sim_settings *settings, struct sim_result *ret, FILE *timeline)
{
    memset(&sim_world, 0, sizeof sim_world);
    memset(ret, 0, sizeof *ret);
    sim_world.is = *settings;
    sim_world.result = ret;
    sim_world.timeline = timeline;
    for (int i = 0; i < SIM_INSTANCES_MAX; i++)
        sim_world.instances[i].number = i;
    sim_archive_new();
    sim_fence_begin();
    sim_files_begin();
    sim_redis_begin();
    sim_sockets_begin();
    sim_points_begin();
    sim_disk_begin(settings->seed);
    sim_disk_faults(&(struct sim_disk_faults){.slow = 0});
    if (settings->postgres)
        sim_pg_begin();
    if (settings->zookeeper)
        sim_zk_begin();
    if (!sim_run(script, NULL)) {
        sim_broken("everybody waits for something that nobody does");
        if (timeline)
            sim_print_fibers();
    }
    note_disk_and_net();
    ret->deals = sim_world.n_deals;
    ret->virtual_us = sim_now_us();
    ret->hash = sim_hash();
}
