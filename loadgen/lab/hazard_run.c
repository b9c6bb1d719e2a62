#include "hazard_run.h"
#include "hazard_crowd.h"
#include "hazard_queue.h"
#include "hazard_readers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void name_all(struct hazard_run *run)
{
    static int n_runs;
    bool item = run->hazard->subject == ITEM;
    snprintf(run->id, sizeof run->id, "h%d", ++n_runs);
    snprintf(run->other_id, sizeof run->other_id, "%s-x", run->id);
    snprintf(run->resource, sizeof run->resource, "%s:%s", item ? "item" : "account", run->id);
    snprintf(run->lock, sizeof run->lock, "lock:%s", run->resource);
}

/* Every instance uses the lock once, so that no first use (a connection, a script to be loaded)
 * disturbs the experiment. A guard that is stuck by nature may refuse: no matter here. */
static void warm_up(struct hazard_run *run)
{
    char id[32], ignored[LAB_MESSAGE_MAX];
    snprintf(id, sizeof id, "%s-warm", run->id);
    for (int i = run->with.instances; i >= 0; i--)
        lab_put(&run->world->instances[i % run->with.instances].target, run->hazard, id, false,
                ignored);
}

static int put_resources(struct hazard_run *run)
{
    const struct load_target *target = &run->world->instances[0].target;
    bool fence = run->with.fence == ON;
    if (lab_put(target, run->hazard, run->id, fence, run->message) != 0)
        return -1;
    if (run->hazard->reserve_s != 0 && lab_put_buyer(target, who_name(A), run->message) != 0)
        return -1;
    return run->hazard->subject != TRANSFER
               ? 0
               : lab_put(target, run->hazard, run->other_id, fence, run->message);
}

static int prepare(struct hazard_run *run)
{
    if (world_prepare(run->world, run->one->guard, &run->with) != 0) {
        snprintf(run->message, sizeof run->message, "the servers could not be set up");
        return -1;
    }
    warm_up(run);
    for (int i = 0; i < run->with.instances; i++)
        if (lab_reset(&run->world->instances[i].target, run->message) != 0)
            return -1;
    return put_resources(run);
}

static int do_steps(struct hazard_run *run)
{
    const struct hazard_step *step = run->one->steps != NULL ? run->one->steps : run->hazard->steps;
    narrate_begin(run);
    for (; step->verb != HAZARD_VERBS; step++) {
        if (step_do(run, step) != 0)
            return -1;
        narrate_step(run, step);
    }
    return 0;
}

/* Whatever happened: everybody goes on, everybody lives, every thread has ended. */
static void clean_up(struct hazard_run *run)
{
    char ignored[LAB_MESSAGE_MAX];
    for (int i = 0; i < run->with.instances; i++) {
        struct world_instance *instance = &run->world->instances[i];
        for (int j = 0; j < WORLD_NODES; j++)
            if (instance->links[j].proxy != NULL) {
                proxy_lose_answer(instance->links[j].proxy, "", 0, PROXY_CUT);
                proxy_mute(instance->links[j].proxy, "SUBSCRIBE", false);
            }
        if (instance->store.proxy != NULL) {
            proxy_hold(instance->store.proxy, "", 0);
            proxy_let_go(instance->store.proxy);
        }
        if (instance->stopped)
            world_continue(instance);
        if (!sandbox_alive(instance->server))
            world_restart(instance);
        if (run->hazard->crowd == 0)
            run_take_trace(run, instance);
        lab_reset(&instance->target, ignored);
    }
    for (int i = 0; i < HAZARD_ACTORS; i++)
        actor_answer(&run->actors[i]);
    crowd_answer(run);
    queue_answer(run);
    readers_answer(run);
}

int hazard_run_once(struct world *world, const struct hazard *hazard, const struct hazard_case *one,
                    const struct run_how *how, struct hazard_run *run)
{
    *run = (struct hazard_run){.hazard = hazard,
                               .one = one,
                               .with = hazard_setting_of(hazard, one),
                               .world = world,
                               .how = *how};
    for (int i = 0; i < HAZARD_ACTORS; i++)
        run->actors[i] = (struct actor){.run = run, .who = (enum hazard_who)i, .held_at = -1};
    name_all(run);
    if (prepare(run) != 0)
        return -1;
    run->took_effect = do_steps(run) == 0;
    char why[LAB_MESSAGE_MAX];
    snprintf(why, sizeof why, "%s", run->message);
    clean_up(run);
    if (!run->took_effect)
        snprintf(run->message, sizeof run->message, "%s", why);
    run_sort_events(run);
    if (run_judge(run) != 0)
        return -1;
    narrate_end(run);
    return 0;
}
