#include "hazard_crowd.h"
#include "answer_problem.h"

#include <stdio.h>
#include <string.h>

enum {
    CROWD_CONNECTIONS = 64,
    CROWD_THREADS = 1,
    CROWD_HELD = 8,
    CROWD_TIMEOUT_MS = 60000,
    CROWD_AGAIN_MAX = 1000, /* of all together */
    CROWD_AGAIN_MS = 100
};

static const char point[] = "decided";

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    const struct hazard_run *run = ctx;
    char body[64];
    if (seq >= (uint64_t)run->hazard->crowd)
        return 0;
    snprintf(body, sizeof body, "{\"user_id\":\"u%llu\"}", (unsigned long long)seq);
    int length =
        snprintf(out, size,
                 "POST /v1/items/%s/orders HTTP/1.1\r\nHost: %s\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                 "Idempotency-Key: %s-u%llu\r\n\r\n%s",
                 run->id, target->host, strlen(body), run->id, (unsigned long long)seq, body);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* Who was refused, as by a lock server that did not answer a crowded machine in time, asks again
 * with the same key: nothing was written. All others have had their answer. */
static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct crowd *crowd = &((struct hazard_run *)ctx)->crowd;
    enum hazard_answer came = ANSWER_NONE;
    char problem[64];
    (void)seq;
    if (answer->end == LOAD_ANSWERED) {
        answer_problem_name(answer->body, problem, sizeof problem);
        came = actor_answer_of(answer->status, problem);
    }
    if (came == ANSWER_REFUSED && atomic_fetch_add(&crowd->again, 1) < CROWD_AGAIN_MAX)
        return CROWD_AGAIN_MS;
    atomic_fetch_add(came == ANSWER_SERVED     ? &crowd->accepted
                     : came == ANSWER_SOLD_OUT ? &crowd->refused
                                               : &crowd->failed,
                     1);
    return -1;
}

static void *buy(void *arg)
{
    struct hazard_run *run = arg;
    struct load_options options = {.n_targets = run->with.instances,
                                   .mode = LOAD_CLOSED,
                                   .connections = CROWD_CONNECTIONS,
                                   .threads = CROWD_THREADS,
                                   .requests = (uint64_t)run->hazard->crowd,
                                   .timeout_ms = CROWD_TIMEOUT_MS,
                                   .seed = 1};
    struct load_workload workload = {.request = write_request, .outcome = take_outcome, .ctx = run};
    struct load_result result;
    for (int i = 0; i < run->with.instances; i++)
        options.targets[i] = run->world->instances[i].target;
    if (load_run(&options, &workload, &result, run->crowd.message, sizeof run->crowd.message) == 0)
        load_result_free(&result);
    return NULL;
}

int crowd_send(struct hazard_run *run)
{
    static const struct {
        const char *point, *action;
    } watches[CROWD_WATCHES] = {[CROWD_DECIDED] = {point, "hold"},
                                [CROWD_WAITS] = {"lock.wait", "note"},
                                [CROWD_WOKEN] = {"lock.woken", "note"}};
    struct crowd *crowd = &run->crowd;
    for (int i = 0; i < run->with.instances; i++)
        for (int w = 0; w < CROWD_WATCHES; w++)
            if (lab_pause(&run->world->instances[i].target, watches[w].point, "", watches[w].action,
                          CROWD_HELD, &crowd->pauses[i][w], run->message) != 0)
                return -1;
    run_note(run, "crowd", "sends %lld orders", (long long)run->hazard->crowd);
    crowd->started = pthread_create(&crowd->thread, NULL, buy, run) == 0;
    return crowd->started ? 0 : -1;
}

/* -- looking ---------------------------------------------------------------------------------- */

/* The sums over all instances. False: one did not answer. */
static bool look(struct hazard_run *run, enum crowd_watch watch, struct lab_pause_state *ret)
{
    struct lab_pause_state state;
    *ret = (struct lab_pause_state){0};
    for (int i = 0; i < run->with.instances; i++) {
        if (lab_look(&run->world->instances[i].target, run->crowd.pauses[i][watch], &state,
                     run->message) != 0)
            return false;
        ret->n_held += state.n_held;
        ret->passed += state.passed;
    }
    return true;
}

/* Two have decided on the same reading, or the guard lets only one get so far. */
static bool overlaps(void *arg)
{
    struct hazard_run *run = arg;
    struct lab_pause_state decided, waits;
    if (!look(run, CROWD_DECIDED, &decided) || !look(run, CROWD_WAITS, &waits))
        return false;
    return decided.n_held >= 2 ||
           (decided.n_held == 1 && (waits.passed > 0 || world_store_waits(run->world)));
}

/* Each passes lock.wait twice: before it sets its watch, and, refused once more, before it sleeps.
 */
static bool all_wait(void *arg)
{
    struct hazard_run *run = arg;
    struct lab_pause_state waits;
    return look(run, CROWD_WAITS, &waits) && waits.passed >= 2 * run->hazard->crowd;
}

/* One has the lock. Every other waiter that was woken has passed lock.wait twice again. If the
 * server was slow, a waiter polls for a while and passes it more often. */
static bool have_woken(void *arg)
{
    struct hazard_run *run = arg;
    struct lab_pause_state decided, waits, woken;
    if (!look(run, CROWD_DECIDED, &decided) || decided.n_held != 1 ||
        !look(run, CROWD_WOKEN, &woken) || !look(run, CROWD_WAITS, &waits))
        return false;
    run->crowd.first_wakes = woken.passed;
    return waits.passed >= 2 * (run->hazard->crowd + woken.passed - 1);
}

int crowd_until_waiting(struct hazard_run *run)
{
    if (run_until(run, all_wait, run) == 0)
        return 0;
    snprintf(run->message, LAB_MESSAGE_MAX, "not all requests of the crowd wait for the lock");
    return -1;
}

int crowd_until_woken(struct hazard_run *run)
{
    if (run_until(run, have_woken, run) != 0) {
        snprintf(run->message, LAB_MESSAGE_MAX, "no request of the crowd was woken and reached %s",
                 point);
        return -1;
    }
    run_note(run, "crowd", "%lld woken", (long long)run->crowd.first_wakes);
    for (int i = 0; i < run->with.instances; i++)
        run_take_trace(run, &run->world->instances[i]);
    return 0;
}

int64_t crowd_wakes(const struct hazard_run *run)
{
    int64_t crowd = run->hazard->crowd, mean = (run->crowd.wakes + crowd - 1) / crowd;
    return mean > run->crowd.first_wakes ? mean : run->crowd.first_wakes;
}

int crowd_as_far_as(struct hazard_run *run)
{
    if (run_until(run, overlaps, run) != 0) {
        snprintf(run->message, LAB_MESSAGE_MAX, "no two requests of the crowd reached %s", point);
        return -1;
    }
    for (int i = 0; i < run->with.instances; i++) /* what follows is too much to look at */
        run_take_trace(run, &run->world->instances[i]);
    return 0;
}

int crowd_release(struct hazard_run *run)
{
    for (int i = 0; i < run->with.instances; i++)
        if (lab_let_go(&run->world->instances[i].target, run->crowd.pauses[i][CROWD_DECIDED],
                       run->message) != 0)
            return -1;
    return 0;
}

int crowd_answer(struct hazard_run *run)
{
    struct crowd *crowd = &run->crowd;
    if (!crowd->started)
        return 0;
    pthread_join(crowd->thread, NULL);
    crowd->started = false;
    run_note(run, "crowd", "%ld accepted, %ld turned away, %ld failed; %ld asked again",
             atomic_load(&crowd->accepted), atomic_load(&crowd->refused),
             atomic_load(&crowd->failed), atomic_load(&crowd->again));
    if (crowd->message[0] != '\0') {
        snprintf(run->message, LAB_MESSAGE_MAX, "%s", crowd->message);
        return -1;
    }
    struct lab_pause_state woken;
    if (!look(run, CROWD_WOKEN, &woken))
        return -1;
    crowd->wakes = woken.passed;
    return 0;
}
