#include "hazard_tasks.h"

#include <stdio.h>
#include <string.h>

static const char task_lock[] = "lock:task:close-orders";

static const struct load_target *target_of(const struct hazard_run *run, int i)
{
    return &run->world->instances[i].target;
}

int tasks_send(struct hazard_run *run, const struct hazard_step *steps)
{
    struct tasks *tasks = &run->tasks;
    char key[LAB_KEY_MAX + 8];
    while (steps->who != TASKS || steps->what == NULL)
        steps++;
    snprintf(key, sizeof key, "close:%s", run->actors[A].order);
    if (run->actors[A].order[0] == '\0') {
        snprintf(run->message, LAB_MESSAGE_MAX, "A has placed no order");
        return -1;
    }
    for (int i = 0; i < run->with.instances; i++) {
        const struct load_target *target = target_of(run, i);
        if (lab_pause(target, steps->what, key, "hold", 1, &tasks->hold_ids[i], run->message) !=
                0 ||
            lab_pause(target, "lock.wait", key, "note", 1, &tasks->wait_ids[i], run->message) !=
                0 ||
            lab_pause(target, "released", key, "note", 1, &tasks->done_ids[i], run->message) != 0)
            return -1;
    }
    return 0;
}

static bool passed(struct hazard_run *run, int i, int id)
{
    struct lab_pause_state state;
    return id != 0 && lab_look(target_of(run, i), id, &state, run->message) == 0 &&
           (state.passed > 0 || state.n_held > 0);
}

static bool is_at_it(struct hazard_run *run, int i)
{
    return passed(run, i, run->tasks.hold_ids[i]) || passed(run, i, run->tasks.wait_ids[i]);
}

static bool one_is_at_it(void *arg)
{
    struct hazard_run *run = arg;
    bool any = world_store_waits(run->world);
    for (int i = 0; i < run->with.instances && !any; i++)
        any = is_at_it(run, i);
    return any;
}

/* Each instance's task works on the order, or was refused the task's lock while another one has it.
 * Or one waits for a lock of the database. */
static bool all_are_accounted_for(void *arg)
{
    struct hazard_run *run = arg;
    int n = 0;
    for (int i = 0; i < run->with.instances; i++) {
        bool at_it = is_at_it(run, i);
        run->tasks.turned_away[i] = !at_it && passed(run, i, run->tasks.door_ids[i]);
        n += at_it || run->tasks.turned_away[i];
    }
    return n == run->with.instances || world_store_waits(run->world);
}

static int look_at_order(struct hazard_run *run)
{
    char state[LAB_STATE_MAX];
    if (lab_order_state(target_of(run, 0), run->actors[A].order, state, run->message) != 0)
        return -1;
    if (strcmp(state, "closed") == 0 && !run->tasks.closed) {
        run->tasks.closed = true;
        run_note(run, "tasks", "A's order is closed");
    }
    return 0;
}

int tasks_as_far_as(struct hazard_run *run, const char *point)
{
    int result = run_until(run, one_is_at_it, run);
    for (int i = 0; i < run->with.instances && result == 0; i++)
        result = lab_pause(target_of(run, i), "lock.try", task_lock, "note", 1,
                           &run->tasks.door_ids[i], run->message);
    if (result == 0)
        result = run_until(run, all_are_accounted_for, run);
    if (result != 0) {
        snprintf(run->message, LAB_MESSAGE_MAX, "the tasks did not reach %s", point);
        return -1;
    }
    for (int i = 0; i < run->with.instances; i++)
        if (run->tasks.turned_away[i])
            run_note(run, "tasks", "shop-%d turned away", i + 1);
    return look_at_order(run);
}

int tasks_release(struct hazard_run *run)
{
    for (int i = 0; i < run->with.instances; i++)
        if (lab_let_go(target_of(run, i), run->tasks.hold_ids[i], run->message) != 0)
            return -1;
    return 0;
}

static bool are_done(void *arg)
{
    struct hazard_run *run = arg;
    for (int i = 0; i < run->with.instances; i++)
        if (!run->tasks.turned_away[i] && !passed(run, i, run->tasks.done_ids[i]))
            return false;
    return true;
}

int tasks_answer(struct hazard_run *run)
{
    if (run_until(run, are_done, run) != 0) {
        snprintf(run->message, LAB_MESSAGE_MAX, "the tasks did not finish A's order");
        return -1;
    }
    return look_at_order(run);
}
