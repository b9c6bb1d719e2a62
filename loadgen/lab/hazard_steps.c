/* What each verb does, and how it is seen that it was done. */
#include "hazard_crowd.h"
#include "hazard_faults.h"
#include "hazard_queue.h"
#include "hazard_readers.h"
#include "hazard_run.h"
#include "hazard_tasks.h"
#include "steady.h"

#include <stdio.h>
#include <string.h>

typedef int do_step(struct hazard_run *run, const struct hazard_step *step);

static struct actor *actor_of(struct hazard_run *run, const struct hazard_step *step)
{
    return &run->actors[step->who];
}

static struct world_instance *instance_of(struct hazard_run *run, const struct hazard_step *step)
{
    return world_instance_of(run->world, &run->with, step->who);
}

/* -- requests --------------------------------------------------------------------------------- */

static int do_send(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == READERS)
        return readers_send(run);
    if (step->who == CROWD)
        return crowd_send(run);
    if (step->who == TASKS)
        return tasks_send(run, step + 1);
    if (step->who == QUEUE)
        return queue_send(run);
    actor_of(run, step)->pays = step->verb == PAY;
    return actor_send(actor_of(run, step), step + 1, true);
}

/* The request was refused before it was held anywhere. Its lease ended on the way, as this machine
 * is slower than the lease; or, with away, its lock server is away. */
static bool is_turned_away(const struct actor *actor, bool away)
{
    return atomic_load(&actor->answered) && !actor->was_held &&
           (strcmp(actor->problem, "lock-lost") == 0 ||
            (away && strcmp(actor->problem, "unavailable") == 0));
}

/* Waits with reach() until the actor's request has come to its point. One that is turned away is
 * sent again with its key. */
static int go(struct hazard_run *run, const struct hazard_step *step,
              int (*reach)(struct actor *actor, const char *point), bool away)
{
    struct actor *actor = actor_of(run, step);
    const int64_t deadline_us = steady_us() + run->how.patience_ms * 1000;
    for (;;) {
        const int result = reach(actor, step->what);
        if (!is_turned_away(actor, away) || steady_us() >= deadline_us)
            return result;
        if (actor_forget(actor) != 0 || actor_send(actor, step, false) != 0)
            return -1;
    }
}

static int do_until(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == READERS)
        return readers_until_inside(run);
    if (step->who == CROWD)
        return crowd_until_waiting(run);
    int result = go(run, step, actor_until, false);
    run->lease_from_us = steady_us();
    return result;
}

static int do_as_far_as(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == READERS)
        return readers_as_far_as(run);
    if (step->who == CROWD)
        return crowd_as_far_as(run);
    if (step->who == TASKS)
        return tasks_as_far_as(run, step->what);
    return go(run, step, actor_as_far_as, false);
}

static int do_passed(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == CROWD)
        return crowd_until_woken(run);
    return actor_passed(actor_of(run, step), step->what);
}

static int do_release(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == CROWD)
        return crowd_release(run);
    if (step->who == TASKS)
        return tasks_release(run);
    return actor_release(actor_of(run, step));
}

static int do_answer(struct hazard_run *run, const struct hazard_step *step)
{
    if (step->who == READERS)
        return readers_answer(run);
    if (step->who == CROWD)
        return crowd_answer(run);
    if (step->who == TASKS)
        return tasks_answer(run);
    if (step->who == QUEUE)
        return queue_answer(run);
    return actor_answer(actor_of(run, step));
}

static int do_run(struct hazard_run *run, const struct hazard_step *step)
{
    return do_send(run, step) == 0 ? do_answer(run, step) : -1;
}

static int do_retry(struct hazard_run *run, const struct hazard_step *step)
{
    struct actor *actor = actor_of(run, step);
    if (actor_answer(actor) != 0)
        return -1;
    actor->retried = actor_was_refused(actor);
    if (!actor->retried)
        return 0;
    return actor_send(actor, step + 1, false) == 0 ? actor_answer(actor) : -1;
}

static int do_insist(struct hazard_run *run, const struct hazard_step *step)
{
    return actor_send(actor_of(run, step), step, true) == 0 ? go(run, step, actor_as_far_as, true)
                                                            : -1;
}

static int do_send_again(struct hazard_run *run, const struct hazard_step *step)
{
    struct actor *actor = actor_of(run, step);
    return actor_send(actor, step + 1, true) == 0 ? actor_answer(actor) : -1;
}

static int do_repeat(struct hazard_run *run, const struct hazard_step *step)
{
    struct actor *actor = actor_of(run, step);
    return actor_send(actor, step + 1, false) == 0 ? actor_answer(actor) : -1;
}

/* -- instances -------------------------------------------------------------------------------- */

static int do_kill(struct hazard_run *run, const struct hazard_step *step)
{
    struct world_instance *instance = instance_of(run, step);
    run_take_trace(run, instance);
    run_note(run, who_name(step->who), "killed");
    return world_kill(instance);
}

static int do_restart(struct hazard_run *run, const struct hazard_step *step)
{
    run_note(run, who_name(step->who), "started again");
    return world_restart(instance_of(run, step));
}

static int do_stop(struct hazard_run *run, const struct hazard_step *step)
{
    run_note(run, who_name(step->who), "stopped");
    return world_stop(instance_of(run, step));
}

static int do_continue(struct hazard_run *run, const struct hazard_step *step)
{
    run_note(run, who_name(step->who), "continues");
    return world_continue(instance_of(run, step));
}

/* -- the table -------------------------------------------------------------------------------- */

static do_step *const verbs[HAZARD_VERBS] = {
    [SEND] = do_send,
    [UNTIL] = do_until,
    [AS_FAR_AS] = do_as_far_as,
    [PASSED] = do_passed,
    [RELEASE] = do_release,
    [ANSWER] = do_answer,
    [RUN] = do_run,
    [PAY] = do_send,
    [RETRY] = do_retry,
    [INSIST] = do_insist,
    [LEAP] = fault_leap,
    [CUT_REPLICA] = fault_cut_replica,
    [FAIL_OVER] = fault_fail_over,
    [DEPOSE] = fault_depose,
    [NEED_COPY] = fault_need_copy,
    [SEND_AGAIN] = do_send_again,
    [REPEAT] = do_repeat,
    [EVICT] = fault_evict,
    [KILL] = do_kill,
    [RESTART] = do_restart,
    [STOP] = do_stop,
    [CONTINUE] = do_continue,
    [OUTLIVE] = fault_outlive,
    [GONE] = fault_gone,
    [STILL_THERE] = fault_still_there,
    [DELETE] = fault_delete,
    [REBOOT] = fault_reboot,
    [DOWN] = fault_down,
    [UP] = fault_up,
    [SPLIT] = fault_split,
    [LOSE] = fault_lose,
    [LOST] = fault_lost,
    [LOSE_LEAVE] = fault_lose_leave,
    [SILENCE] = fault_silence,
    [UNHEARD] = fault_unheard,
    [LOSE_ASKING] = fault_lose_asking,
    [ASKING_LOST] = fault_asking_lost,
    [CUT] = fault_cut,
    [HOLD_COMMIT] = fault_hold_commit,
    [COMMIT_HELD] = fault_commit_held,
    [LAND_COMMIT] = fault_land_commit,
};

int step_do(struct hazard_run *run, const struct hazard_step *step)
{
    return verbs[step->verb](run, step);
}

int run_until(const struct hazard_run *run, bool (*seen)(void *arg), void *arg)
{
    int64_t deadline_us = steady_us() + run->how.patience_ms * 1000;
    while (!seen(arg)) {
        if (steady_us() > deadline_us)
            return -1;
        steady_sleep_ms(RUN_LOOK_MS);
    }
    return 0;
}

const char *who_name(enum hazard_who who)
{
    static const char *const names[] = {
        [A] = "A",         [B] = "B",         [C] = "C",         [LOCKS] = "locks",
        [CROWD] = "crowd", [TASKS] = "tasks", [QUEUE] = "queue", [READERS] = "readers"};
    return names[who];
}
