/* An actor's request: sent in a thread of its own, held where a pause waits for it, answered. */
#include "hazard_run.h"
#include "answer_problem.h"
#include "steady.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char wait_point[] = "lock.wait";

/* -- sending ---------------------------------------------------------------------------------- */

static void take_order(struct actor *actor, const char *answer)
{
    json_t *json = json_loads(answer, 0, NULL);
    const char *id = json_string_value(json_object_get(json, "order_id"));
    snprintf(actor->order, sizeof actor->order, "%s", id == NULL ? "" : id);
    json_decref(json);
}

enum hazard_answer actor_answer_of(int status, const char *problem)
{
    static const struct {
        int status;
        const char *problem;
        enum hazard_answer answer;
    } known[] = {
        {201, "", ANSWER_SERVED},
        {409, "sold-out", ANSWER_SOLD_OUT},
        {409, "order-closed", ANSWER_REFUSED},
        {503, "lock-lost", ANSWER_REFUSED},
        {503, "unavailable", ANSWER_REFUSED},
        {503, "lock-timeout", ANSWER_STUCK},
        {-1, "", ANSWER_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status && strcmp(known[i].problem, problem) == 0)
            return known[i].answer;
    return ANSWER_FAILED;
}

static void *ask(void *arg)
{
    struct actor *actor = arg;
    const struct hazard_run *run = actor->run;
    char path[LAB_PATH_MAX], body[160], headers[160], *answer = NULL;
    if (actor->pays) {
        snprintf(path, sizeof path, "/v1/orders/%s/payment", actor->order);
        snprintf(body, sizeof body, "{}");
    } else if (run->hazard->subject == ITEM) {
        snprintf(path, sizeof path, "/v1/items/%s/orders", run->id);
        snprintf(body, sizeof body, "{\"user_id\":\"%s\"}", who_name(actor->who));
    } else if (run->hazard->subject == TRANSFER) {
        bool back = actor->who != A;
        int64_t delta = hazard_delta(run->hazard, actor->who);
        snprintf(path, sizeof path, "/v1/transfers");
        snprintf(body, sizeof body, "{\"from\":\"%s\",\"to\":\"%s\",\"amount\":%lld}",
                 back ? run->other_id : run->id, back ? run->id : run->other_id,
                 (long long)(delta < 0 ? -delta : delta));
    } else {
        snprintf(path, sizeof path, "/v1/accounts/%s/transactions", run->id);
        snprintf(body, sizeof body, "{\"amount\":%lld}",
                 (long long)hazard_delta(run->hazard, actor->who));
    }
    snprintf(headers, sizeof headers, "Idempotency-Key: %s\r\n", actor->key);
    actor->status =
        load_fetch(&actor->instance->target, "POST", path, headers, body, RUN_ANSWER_MS, &answer);
    actor->problem[0] = '\0';
    if (actor->status > 0)
        answer_problem_name(answer, actor->problem, sizeof actor->problem);
    actor->answer = actor_answer_of(actor->status, actor->problem);
    if (actor->status == 201 && run->hazard->subject == ITEM)
        take_order(actor, answer);
    actor->took_us = steady_us() - actor->sent_us;
    free(answer);
    atomic_store(&actor->answered, true);
    return NULL;
}

static bool ends_request(const struct hazard_step *step)
{
    return step->verb == SEND || step->verb == RUN || step->verb == PAY || step->verb == RETRY ||
           step->verb == SEND_AGAIN || step->verb == REPEAT || step->verb == HAZARD_VERBS;
}

/* Points that the watchdog's thread passes, which runs no request. */
static bool is_watchdogs(const char *point)
{
    return strcmp(point, "lock.renew") == 0 || strcmp(point, "lock.lost") == 0;
}

static int arm(struct actor *actor, const char *point, const char *action, int *ret_id)
{
    const char *match = is_watchdogs(point) ? actor->run->lock : actor->key;
    return lab_pause(&actor->instance->target, point, match, action, 1, ret_id,
                     actor->run->message);
}

/* Sets a pause for each point that the steps up to the actor's next request name. */
static int arm_all(struct actor *actor, const struct hazard_step *steps)
{
    actor->n_pauses = 0;
    actor->held_at = -1;
    actor->was_held = false;
    if (arm(actor, wait_point, "note", &actor->waits_id) != 0)
        return -1;
    for (; steps->verb != HAZARD_VERBS; steps++) {
        if (steps->who != actor->who)
            continue;
        if (ends_request(steps))
            break;
        bool holds = steps->verb == UNTIL || steps->verb == AS_FAR_AS || steps->verb == INSIST;
        if (!holds && steps->verb != PASSED)
            continue;
        if (actor->n_pauses == RUN_PAUSES_MAX) {
            snprintf(actor->run->message, LAB_MESSAGE_MAX,
                     "one request can be paused at %d points at most", RUN_PAUSES_MAX);
            return -1;
        }
        struct actor_pause *pause = &actor->pauses[actor->n_pauses++];
        snprintf(pause->point, sizeof pause->point, "%s", steps->what);
        if (arm(actor, steps->what, holds ? "hold" : "note", &pause->id) != 0)
            return -1;
    }
    return 0;
}

int actor_send(struct actor *actor, const struct hazard_step *steps, bool new_key)
{
    struct hazard_run *run = actor->run;
    if (actor->started && actor_answer(actor) != 0)
        return -1;
    if (new_key)
        snprintf(actor->key, sizeof actor->key, "%s-%s%d", run->id, who_name(actor->who),
                 ++actor->times);
    actor->instance = world_instance_of(run->world, &run->with, actor->who);
    if (arm_all(actor, steps) != 0)
        return -1;
    atomic_store(&actor->answered, false);
    run_note(run, who_name(actor->who), "sends");
    actor->sent_us = steady_us();
    actor->started = pthread_create(&actor->thread, NULL, ask, actor) == 0;
    if (!actor->started)
        snprintf(run->message, LAB_MESSAGE_MAX, "no thread for %s", who_name(actor->who));
    return actor->started ? 0 : -1;
}

/* -- looking ---------------------------------------------------------------------------------- */

struct look {
    struct actor *actor;
    int index;      /* of the pause; -1: none */
    bool or_blocks; /* true also if it waits for a lock or has its answer */
    bool or_passed; /* is looked for: whether it has passed the point, held or not */
};

static bool has_come(void *arg)
{
    const struct look *look = arg;
    struct actor *actor = look->actor;
    struct hazard_run *run = actor->run;
    struct lab_pause_state state;
    const struct load_target *target = &actor->instance->target;
    if (lab_look(target, actor->pauses[look->index].id, &state, run->message) != 0)
        return false;
    if (state.n_held > 0) {
        actor->held_at = look->index;
        actor->was_held = true;
        return true;
    }
    if (look->or_passed)
        return state.passed > 0;
    if (atomic_load(&actor->answered))
        return true; /* it will not come any more */
    return look->or_blocks &&
           ((lab_look(target, actor->waits_id, &state, run->message) == 0 && state.passed > 0) ||
            world_store_waits(run->world));
}

static int find_pause(struct actor *actor, const char *point)
{
    for (int i = 0; i < actor->n_pauses; i++)
        if (actor->pauses[i].id != 0 && strcmp(actor->pauses[i].point, point) == 0)
            return i;
    return -1;
}

static int come(struct actor *actor, const char *point, bool or_blocks, bool or_passed)
{
    struct look look = {.actor = actor,
                        .index = find_pause(actor, point),
                        .or_blocks = or_blocks,
                        .or_passed = or_passed};
    if (look.index >= 0 && run_until(actor->run, has_come, &look) == 0 &&
        (or_blocks || or_passed || actor->held_at == look.index))
        return 0;
    snprintf(actor->run->message, LAB_MESSAGE_MAX, "%s did not reach %s (%s, last answer %d %s)",
             who_name(actor->who), point,
             atomic_load(&actor->answered) ? "answered" : "not answered", actor->status,
             actor->problem);
    return -1;
}

int actor_until(struct actor *actor, const char *point)
{
    return come(actor, point, false, false);
}

int actor_as_far_as(struct actor *actor, const char *point)
{
    return come(actor, point, true, false);
}

int actor_passed(struct actor *actor, const char *point)
{
    return come(actor, point, false, true);
}

/* Lets it go from the pause at which it is held, and removes that pause and those before it. If it
 * is not held, removes all its pauses. */
int actor_release(struct actor *actor)
{
    struct hazard_run *run = actor->run;
    int last = actor->held_at >= 0 ? actor->held_at : actor->n_pauses - 1;
    for (int i = 0; i <= last; i++) {
        int id = actor->pauses[i].id;
        actor->pauses[i].id = 0;
        if (id != 0 && lab_let_go(&actor->instance->target, id, run->message) != 0)
            return -1;
    }
    actor->held_at = -1;
    return 0;
}

int actor_forget(struct actor *actor)
{
    struct hazard_run *run = actor->run;
    if (actor_answer(actor) != 0 || actor_release(actor) != 0)
        return -1;
    return lab_let_go(&actor->instance->target, actor->waits_id, run->message);
}

int actor_answer(struct actor *actor)
{
    if (!actor->started)
        return 0;
    pthread_join(actor->thread, NULL); /* RUN_ANSWER_MS bounds it */
    actor->started = false;
    if (actor->status < 0)
        run_note(actor->run, who_name(actor->who), "no answer");
    else
        run_note(actor->run, who_name(actor->who), "answer %d%s%s", actor->status,
                 actor->problem[0] != '\0' ? " " : "", actor->problem);
    if (actor->answer == ANSWER_FAILED)
        snprintf(actor->run->message, LAB_MESSAGE_MAX, "%s is answered %d %s", who_name(actor->who),
                 actor->status, actor->problem);
    return actor->answer == ANSWER_FAILED ? -1 : 0;
}

bool actor_was_refused(const struct actor *actor)
{
    return actor->status < 0 || actor->status == 503;
}
