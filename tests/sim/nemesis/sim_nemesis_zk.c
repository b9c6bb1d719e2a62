#include "sim_nemesis_zk.h"
#include "sim_threads.h"
#include "sim_world.h"
#include "sim_zk.h"

enum { AS_LONG_AS_US = 400000 };

static int64_t draw_until_us(void)
{
    return sim_now_us() + 1000 + sim_below(1u << (10 + sim_below(13)));
}

static void spoil_connections(void)
{
    uint32_t one_in = 1u << (1 + sim_below(5));
    sim_tell("of the requests to ZooKeeper, one in %u loses its connection", one_in);
    sim_zk_faults(&(struct sim_zk_faults){.cut_before = one_in, .cut_after = one_in});
    sim_sleep_us(1000 + sim_below(AS_LONG_AS_US));
    sim_zk_faults(&(struct sim_zk_faults){0});
    sim_tell("ZooKeeper is well");
}

static void part(void)
{
    const struct sim_instance *instance = &sim_world.instances[sim_below(sim_world.is.instances)];
    int64_t until_us = draw_until_us();
    sim_tell("i%d does not reach ZooKeeper for %lld ms", instance->number,
             (long long)(until_us - sim_now_us()) / 1000);
    sim_zk_part(instance->group, until_us);
}

bool sim_zk_fault(enum sim_event kind)
{
    bool done = true;
    switch (kind) {
    case SIM_ZK_CUT: /* counted as it happens */
        spoil_connections();
        return true;
    case SIM_ZK_AWAY:
        sim_tell("ZooKeeper has no leader for a while");
        sim_zk_away(draw_until_us());
        break;
    case SIM_ZK_PART:
        part();
        break;
    case SIM_ZK_DELETE:
        done = sim_zk_delete_any();
        break;
    case SIM_ZK_EXPIRE:
        done = sim_zk_expire_any();
        break;
    default:
        return false;
    }
    if (done)
        sim_count(kind);
    return true;
}

void sim_zk_heal(void)
{
    sim_zk_faults(&(struct sim_zk_faults){0});
    for (uint32_t i = 0; i < sim_world.is.instances; i++)
        sim_zk_part(sim_world.instances[i].group, 0);
    sim_zk_away(sim_now_us());
}
