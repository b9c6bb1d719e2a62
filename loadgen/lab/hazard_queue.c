#include "hazard_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_MAX = 1024, TRIES_MAX = 20 };

static struct world_instance *instance_of(struct hazard_run *run, int i)
{
    return &run->world->instances[i % run->with.instances];
}

static void *ask(void *arg)
{
    struct waiter *waiter = arg;
    struct hazard_run *run = waiter->run;
    int i = (int)(waiter - run->queue.waiters);
    char path[96], headers[96], body[32];
    snprintf(path, sizeof path, "/v1/accounts/%s/transactions", run->id);
    snprintf(headers, sizeof headers, "Idempotency-Key: %s-u%d\r\n", run->id, i);
    snprintf(body, sizeof body, "{\"amount\":%d}", QUEUE_DELTA);
    /* On a busy machine the lock server may not answer in time: such a one has not come yet. */
    for (int n = 0; n < TRIES_MAX; n++) {
        char *answer = NULL;
        waiter->status = load_fetch(&instance_of(run, i)->target, "POST", path, headers, body,
                                    RUN_ANSWER_MS, &answer);
        free(answer);
        if (waiter->status != 503 || atomic_load(&waiter->queues))
            break;
    }
    return NULL;
}

/* Its try was refused. If the server keeps a queue, the waiter is in it. */
static bool waits(void *arg)
{
    struct waiter *waiter = arg;
    struct hazard_run *run = waiter->run;
    int i = (int)(waiter - run->queue.waiters);
    struct lab_pause_state state;
    return lab_look(&instance_of(run, i)->target, waiter->waits_id, &state, run->message) == 0 &&
           state.passed > 0 && world_queues(run->world, run->one->guard, run->lock, i + 1);
}

int queue_send(struct hazard_run *run)
{
    for (int i = 0; i < run->hazard->queue; i++) {
        struct waiter *waiter = &run->queue.waiters[i];
        const struct load_target *target = &instance_of(run, i)->target;
        char key[LAB_KEY_MAX];
        waiter->run = run;
        snprintf(key, sizeof key, "%s-u%d", run->id, i);
        if (lab_pause(target, "lock.wait", key, "note", 1, &waiter->waits_id, run->message) != 0)
            return -1;
        if (pthread_create(&waiter->thread, NULL, ask, waiter) != 0) {
            snprintf(run->message, LAB_MESSAGE_MAX, "no thread for the queue");
            return -1;
        }
        run->queue.n = i + 1;
        if (run_until(run, waits, waiter) != 0) {
            snprintf(run->message, LAB_MESSAGE_MAX, "number %d of the queue does not wait", i + 1);
            return -1;
        }
        atomic_store(&waiter->queues, true);
        lab_let_go(target, waiter->waits_id, run->message); /* an instance knows only so many */
    }
    run_note(run, "crowd", "%d wait", run->queue.n);
    return 0;
}

/* When each waiter came, and when it was granted the lock, by its instance's trace. If the lock
 * server did not answer in time, the try was undone and its place was lost: the waiter came at that
 * time. */
static int take_moments(struct hazard_run *run)
{
    static struct lab_event events[TRACE_MAX];
    size_t length = strlen(run->id);
    int n;
    for (int i = 0; i < run->with.instances; i++) {
        if (lab_trace(&instance_of(run, i)->target, events, TRACE_MAX, &n, run->message) != 0)
            return -1;
        for (int j = 0; j < n; j++) {
            const char *key = events[j].key;
            if (strncmp(key, run->id, length) != 0 || strncmp(key + length, "-u", 2) != 0)
                continue;
            struct waiter *waiter = &run->queue.waiters[atoi(key + length + 2)];
            if (strcmp(events[j].point, "lock.wait") == 0 ||
                strcmp(events[j].point, "lock.cleanup") == 0)
                waiter->came_us = events[j].t_us;
            if (strcmp(events[j].point, "lock.acquired") == 0)
                waiter->served_us = events[j].t_us;
        }
    }
    return 0;
}

int queue_answer(struct hazard_run *run)
{
    struct queue *queue = &run->queue;
    int n = queue->n;
    for (; queue->n > 0; queue->n--) {
        pthread_join(queue->waiters[queue->n - 1].thread, NULL); /* RUN_ANSWER_MS bounds it */
        queue->accepted += queue->waiters[queue->n - 1].status == 201;
    }
    if (n == 0)
        return 0;
    run_note(run, "crowd", "%d of %d served", queue->accepted, n);
    if (queue->accepted == n)
        return take_moments(run);
    snprintf(run->message, LAB_MESSAGE_MAX, "%d of the queue were not served", n - queue->accepted);
    return -1;
}

void queue_measure(struct hazard_run *run)
{
    struct run_outcome *outcome = &run->outcome;
    const struct waiter *waiters = run->queue.waiters;
    int64_t n = run->hazard->queue, sum_us = 0, longest_us = 0;
    for (int i = 0; i < n; i++) {
        int64_t wait_us = waiters[i].served_us - waiters[i].came_us, overtakings = 0;
        for (int j = 0; j < n; j++)
            overtakings += waiters[j].came_us > waiters[i].came_us &&
                           waiters[j].served_us < waiters[i].served_us;
        if (overtakings > outcome->overtakings)
            outcome->overtakings = overtakings;
        if (wait_us > longest_us)
            longest_us = wait_us;
        sum_us += wait_us;
    }
    outcome->measure_ms = longest_us / 1000;
    outcome->mean_wait_ms = sum_us / n / 1000;
}
