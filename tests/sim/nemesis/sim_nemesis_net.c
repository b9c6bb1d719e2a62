#include "sim_nemesis_net.h"
#include "sim_memcached.h"
#include "sim_nemesis_redis.h"
#include "sim_threads.h"
#include "sim_world.h"

enum { AS_LONG_AS_US = 400000 };

/* -- the net ---------------------------------------------------------------------------------- */

/* The kind that was drawn, and perhaps others that exist in this run: an answer is lost while a
 * message is late. */
static void spoil_net(enum sim_event kind)
{
    struct sim_net_faults faults = {0};
    uint32_t *const of[] = {&faults.cut_before, &faults.cut_after, &faults.late, &faults.silent};
    for (int i = 0; i < 4; i++) {
        const enum sim_event each = (enum sim_event)(SIM_NET_CUT + i);
        if (each != kind && !(sim_world.is.faults[each] && sim_one_in(3)))
            continue;
        *of[i] = 2u << sim_below(6);
        sim_tell("of the packets, one in %u meets: %s", *of[i], sim_event_texts[each]);
    }
    sim_net_faults(&faults);
    sim_sleep_us(1000 + sim_below(AS_LONG_AS_US));
    sim_net_faults(&(struct sim_net_faults){.late = 0});
    sim_tell("the net is well");
}

/* -- memcached -------------------------------------------------------------------------------- */

static void cut_off(struct sim_host *host)
{
    sim_tell("memcached cannot be reached");
    host->unreachable = true;
    sim_sleep_us(INT64_C(1000) << sim_below(13));
    host->unreachable = false;
    sim_net_changed();
    sim_tell("memcached can be reached");
}

static void kill_and_restart(void)
{
    sim_tell("memcached is killed");
    sim_memcached_kill();
    sim_sleep_us(sim_below(AS_LONG_AS_US));
    sim_memcached_restart();
    sim_tell("memcached is back, empty");
}

static void stop(struct sim_host *host)
{
    const int64_t us = INT64_C(1000) << sim_below(13);
    sim_tell("memcached stands still for %lld ms", (long long)us / 1000);
    host->stopped_until_us = sim_now_us() + us;
}

static void forget(enum sim_event kind)
{
    const size_t n = sim_memcached_forget(kind == SIM_MEMCACHED_FLUSH);
    sim_tell("memcached forgets %zu keys", n);
    if (n > 0)
        sim_count(kind);
}

static void do_memcached(enum sim_event kind)
{
    struct sim_host *host = &sim_memcached()->host;
    if (kind == SIM_MEMCACHED_EVICT || kind == SIM_MEMCACHED_FLUSH) {
        forget(kind);
        return;
    }
    sim_count(kind);
    if (kind == SIM_MEMCACHED_AWAY)
        cut_off(host);
    else if (kind == SIM_MEMCACHED_KILL)
        kill_and_restart();
    else
        stop(host);
}

/* -- one at a time, while other things go wrong too ------------------------------------------- */

static enum sim_event running; /* 0: none, as instances are killed elsewhere */

static void *run_one(void *arg)
{
    (void)arg;
    if (running >= SIM_NET_CUT && running <= SIM_NET_SILENT)
        spoil_net(running);
    else if (running >= SIM_MEMCACHED_AWAY && running <= SIM_MEMCACHED_FLUSH)
        do_memcached(running);
    else
        sim_redis_fault(running);
    running = 0;
    sim_wake(&running, INT32_MAX);
    return NULL;
}

void sim_net_fault(enum sim_event kind)
{
    while (running != 0)
        sim_wait(&running, SIM_FOREVER);
    running = kind;
    sim_spawn(SIM_WORLD, "net-fault", run_one, NULL);
}

void sim_net_heal(void)
{
    while (running != 0)
        sim_wait(&running, SIM_FOREVER);
    sim_net_faults(&(struct sim_net_faults){.late = 0});
    sim_redis_heal();
    sim_memcached()->host.stopped_until_us = 0;
    sim_net_changed();
}
