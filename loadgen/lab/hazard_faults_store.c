/* Faults between an instance and the database. */
#include "hazard_faults.h"

#include <stdio.h>

static struct proxy *proxy_of(struct hazard_run *run, const struct hazard_step *step)
{
    return world_instance_of(run->world, &run->with, step->who)->store.proxy;
}

int fault_hold_commit(struct hazard_run *run, const struct hazard_step *step)
{
    proxy_hold(proxy_of(run, step), "COMMIT", 1);
    return 0;
}

static bool is_held(void *arg)
{
    return proxy_held(arg) > 0;
}

/* A scheduled task may write, too; it ends soon. */
static bool one_is_under_way(void *arg)
{
    return world_store_writes(arg) == 1;
}

int fault_commit_held(struct hazard_run *run, const struct hazard_step *step)
{
    struct proxy *proxy = proxy_of(run, step);
    if (run_until(run, is_held, proxy) != 0) {
        snprintf(run->message, sizeof run->message, "no COMMIT was held");
        return -1;
    }
    if (run_until(run, one_is_under_way, run->world) != 0) {
        snprintf(run->message, sizeof run->message, "%d transactions write while a COMMIT is held",
                 world_store_writes(run->world));
        return -1;
    }
    proxy_hang_up(proxy);
    run_note(run, "store", "%s's COMMIT is held, its connection is gone", who_name(step->who));
    return 0;
}

static bool nothing_is_under_way(void *arg)
{
    return world_store_writes(arg) == 0;
}

int fault_land_commit(struct hazard_run *run, const struct hazard_step *step)
{
    proxy_let_go(proxy_of(run, step));
    if (run_until(run, nothing_is_under_way, run->world) != 0) {
        snprintf(run->message, sizeof run->message, "a transaction did not end");
        return -1;
    }
    run_note(run, "store", "no transaction is open");
    return 0;
}
