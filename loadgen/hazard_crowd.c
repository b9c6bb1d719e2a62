#include "hazard_crowd.h"
#include "remote.h"

#include <stdio.h>
#include <string.h>

enum { CROWD_CONNECTIONS = 64, CROWD_THREADS = 1, CROWD_HELD = 8, CROWD_TIMEOUT_MS = 60000 };

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

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct hazard_run *run = ctx;
    (void)seq;
    bool answered = answer->end == LOAD_ANSWERED;
    atomic_long *counter = answered && answer->status == 201   ? &run->crowd.accepted
                           : answered && answer->status == 409 ? &run->crowd.refused
                                                               : &run->crowd.failed;
    atomic_fetch_add(counter, 1);
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
    struct crowd *crowd = &run->crowd;
    for (int i = 0; i < run->with.instances; i++) {
        const struct load_target *target = &run->world->instances[i].target;
        if (lab_pause(target, point, "", "hold", CROWD_HELD, &crowd->hold_ids[i], run->message) !=
                0 ||
            lab_pause(target, "lock.wait", "", "note", 1, &crowd->wait_ids[i], run->message) != 0)
            return -1;
    }
    run_note(run, "crowd", "sends %lld orders", (long long)run->hazard->crowd);
    crowd->started = pthread_create(&crowd->thread, NULL, buy, run) == 0;
    return crowd->started ? 0 : -1;
}

/* Two have decided on the same reading, or the guard lets only one get so far. */
static bool overlaps(void *arg)
{
    struct hazard_run *run = arg;
    struct lab_pause_state state;
    int held = 0;
    bool waits = false;
    for (int i = 0; i < run->with.instances; i++) {
        const struct load_target *target = &run->world->instances[i].target;
        if (lab_look(target, run->crowd.hold_ids[i], &state, run->message) != 0)
            return false;
        held += state.n_held;
        if (lab_look(target, run->crowd.wait_ids[i], &state, run->message) != 0)
            return false;
        waits |= state.passed > 0;
    }
    return held >= 2 || (held == 1 && (waits || world_store_waits(run->world)));
}

int crowd_as_far_as(struct hazard_run *run)
{
    if (run_until(run, overlaps, run) != 0) {
        snprintf(run->message, LAB_MESSAGE_MAX, "no two of the crowd came to %s", point);
        return -1;
    }
    for (int i = 0; i < run->with.instances; i++) /* what follows is too much to look at */
        run_take_trace(run, &run->world->instances[i]);
    return 0;
}

int crowd_release(struct hazard_run *run)
{
    for (int i = 0; i < run->with.instances; i++)
        if (lab_let_go(&run->world->instances[i].target, run->crowd.hold_ids[i], run->message) != 0)
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
    run_note(run, "crowd", "%ld accepted, %ld turned away, %ld failed",
             atomic_load(&crowd->accepted), atomic_load(&crowd->refused),
             atomic_load(&crowd->failed));
    if (crowd->message[0] != '\0')
        snprintf(run->message, LAB_MESSAGE_MAX, "%s", crowd->message);
    return crowd->message[0] == '\0' ? 0 : -1;
}
