#include "sim_nemesis_pg.h"
#include "sim_pg.h"
#include "sim_threads.h"
#include "sim_world.h"

enum { AS_LONG_AS_US = 400000 };

static void spoil_connections(enum sim_event kind)
{
    struct sim_pg_faults faults = {0};
    uint32_t one_in = 1u << sim_below(4);
    if (kind == SIM_PG_CUT) {
        faults.cut_commit = one_in;
        faults.cut = 20 * one_in;
    }
    if (kind == SIM_PG_SLOW || sim_one_in(3))
        faults.slow = 4 * one_in;
    sim_tell("of PostgreSQL's statements, one in %u meets: %s", one_in, sim_event_texts[kind]);
    sim_pg_faults(&faults);
    if (kind == SIM_PG_SLOW)
        sim_count(SIM_PG_SLOW);
    sim_sleep_us(1000 + sim_below(AS_LONG_AS_US));
    sim_pg_faults(&(struct sim_pg_faults){0});
    sim_tell("PostgreSQL is well");
}

static void stop_server(enum sim_event kind)
{
    int64_t until_us = sim_now_us() + 1000 + sim_below(1u << (10 + sim_below(11)));
    if (kind == SIM_PG_REFUSED)
        sim_pg_refuse(until_us);
    else
        sim_pg_restart(kind == SIM_PG_CRASH, until_us);
    sim_count(kind);
}

bool sim_pg_fault(enum sim_event kind)
{
    switch (kind) {
    case SIM_PG_CUT:
    case SIM_PG_SLOW:
        spoil_connections(kind);
        return true;
    case SIM_PG_REFUSED:
    case SIM_PG_RESTART:
    case SIM_PG_CRASH:
        stop_server(kind);
        return true;
    case SIM_PG_TERMINATED:
        if (sim_pg_terminate_one())
            sim_count(kind);
        return true;
    default:
        return false;
    }
}
