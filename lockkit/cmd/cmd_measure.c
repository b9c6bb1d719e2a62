#include "cmd_measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAITS_MAX = 1 << 13 /* kept of each thread */, PATIENCE_MS = 10000, US_PER_MS = 1000 };

/* What the threads share about one key. */
struct key {
    char name[LK_KEY_MAX + 1];
    _Atomic int inside;
    _Atomic int last; /* thread that had it; -1: none yet */
};

/* What all threads share. */
struct course {
    atomic_bool go, stop;
    _Atomic int first_failure; /* lk_status */
};

struct worker {
    pthread_t thread;
    int index;
    const struct measure_plan *plan;
    lk_client *client;
    struct key *key; /* the first of its own */
    struct course *course;
    uint64_t pairs, failures, overlaps, hand_overs;
    int64_t waits_us[WAITS_MAX]; /* a fair sample of all */
    int64_t max_us;
};

static int64_t now_us(void)
{
    return lk_env_system()->now_us(NULL);
}

/* Every wait has the same chance of being kept: Vitter's algorithm R, ACM TOMS 11/1, 1985. */
static void keep_wait(struct worker *worker, int64_t wait_us, unsigned *seed)
{
    uint64_t at =
        worker->pairs < WAITS_MAX ? worker->pairs : (uint64_t)rand_r(seed) % (worker->pairs + 1);
    if (at < WAITS_MAX)
        worker->waits_us[at] = wait_us;
    if (wait_us > worker->max_us)
        worker->max_us = wait_us;
}

/* Between acquire and release. */
static void enter(struct worker *worker, struct key *key)
{
    const struct measure_plan *plan = worker->plan;
    int allowed = plan->permits > 1 ? (int)plan->permits : 1;
    if (atomic_fetch_add(&key->inside, 1) >= allowed && plan->mode == LK_EXCLUSIVE)
        worker->overlaps++;
    int last = atomic_exchange(&key->last, worker->index);
    worker->hand_overs += last >= 0 && last != worker->index;
}

static void stay(const struct worker *worker)
{
    if (worker->plan->hold_us > 0)
        lk_env_system()->sleep_us(NULL, worker->plan->hold_us);
}

static void leave(struct key *key)
{
    atomic_fetch_sub(&key->inside, 1);
}

static void note(struct worker *worker, lk_status status)
{
    int none = LK_OK;
    if (status == LK_OK)
        return;
    worker->failures++;
    atomic_compare_exchange_strong(&worker->course->first_failure, &none, (int)status);
}

static void lock_and_unlock_once(struct worker *worker, const lk_request *request, unsigned *seed)
{
    lk_hold held;
    lk_status status = lk_acquire(worker->client, request, &held);
    note(worker, status);
    if (status != LK_OK)
        return;
    keep_wait(worker, held.wait_us, seed);
    enter(worker, worker->key);
    stay(worker);
    leave(worker->key);
    note(worker, lk_release(&held));
    worker->pairs++;
}

static void lock_and_unlock_each(struct worker *worker, const lk_request *requests, unsigned *seed)
{
    size_t n = (size_t)worker->plan->each;
    lk_hold held[LK_EACH_MAX], *holds[LK_EACH_MAX];
    lk_status tried[LK_EACH_MAX], released[LK_EACH_MAX];
    for (size_t i = 0; i < LK_EACH_MAX; i++)
        holds[i] = &held[i];
    lk_try_each(worker->client, requests, n, holds, tried);
    for (size_t i = 0; i < n; i++) {
        if (tried[i] != LK_OK)
            continue;
        keep_wait(worker, held[i].wait_us, seed);
        enter(worker, &worker->key[i]);
        worker->pairs++;
    }
    stay(worker);
    for (size_t i = 0; i < n; i++)
        if (tried[i] == LK_OK)
            leave(&worker->key[i]);
    lk_release_each(holds, n, released);
    for (size_t i = 0; i < n; i++)
        note(worker, tried[i] != LK_OK ? tried[i] : released[i]);
}

static void *lock_and_unlock(void *arg)
{
    struct worker *worker = arg;
    const struct measure_plan *plan = worker->plan;
    unsigned seed = (unsigned)worker->index + 1;
    lk_request requests[LK_EACH_MAX];
    for (int i = 0; i < (plan->each ? plan->each : 1); i++)
        requests[i] = (lk_request){.key = worker->key[i].name,
                                   .mode = plan->mode,
                                   .permits = plan->permits,
                                   .wait_ms = plan->each ? 0 : PATIENCE_MS};
    while (!atomic_load(&worker->course->go))
        sched_yield();
    while (!atomic_load(&worker->course->stop))
        (plan->each ? lock_and_unlock_each : lock_and_unlock_once)(worker, requests, &seed);
    return NULL;
}

/* -- summing up ------------------------------------------------------------------------------- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void percentiles(const struct worker *workers, int n_workers, struct measure_result *ret,
                        int64_t *waits_us)
{
    size_t n = 0;
    for (int i = 0; i < n_workers; i++) {
        size_t kept = workers[i].pairs < WAITS_MAX ? (size_t)workers[i].pairs : WAITS_MAX;
        memcpy(waits_us + n, workers[i].waits_us, kept * sizeof *waits_us);
        n += kept;
        if ((double)workers[i].max_us > ret->wait_max_us)
            ret->wait_max_us = (double)workers[i].max_us;
    }
    if (n == 0)
        return;
    qsort(waits_us, n, sizeof *waits_us, compare_i64);
    ret->wait_p50_us = (double)waits_us[n / 2];
    ret->wait_p99_us = (double)waits_us[n * 99 / 100];
}

static void sum_up(const struct worker *workers, int n, double seconds, const lk_stats *stats,
                   struct measure_result *ret)
{
    double sum = 0, squares = 0, hand_overs = 0;
    for (int i = 0; i < n; i++) {
        double pairs = (double)workers[i].pairs;
        sum += pairs;
        squares += pairs * pairs;
        hand_overs += (double)workers[i].hand_overs;
        ret->failures += workers[i].failures;
        ret->overlaps += workers[i].overlaps;
    }
    ret->pairs = (uint64_t)sum;
    ret->seconds = seconds;
    ret->pairs_per_s = sum / seconds;
    ret->hand_overs_per_s = hand_overs / seconds;
    ret->jain = squares > 0 ? sum * sum / (n * squares) : 0;
    ret->local_per_s = (double)stats->handovers / seconds;
    ret->commands_per_pair = sum > 0 ? (double)stats->commands / sum : 0;
}

/* -- running ---------------------------------------------------------------------------------- */

/* Returns how many could be started. */
static int start(const struct measure_plan *plan, lk_client *client, struct key *keys,
                 struct worker *workers, struct course *course)
{
    for (int i = 0; i < plan->keys; i++) {
        keys[i].last = -1;
        snprintf(keys[i].name, sizeof keys[i].name, "lock:bench:%d", i);
    }
    for (int i = 0; i < plan->threads; i++) {
        workers[i].index = i;
        workers[i].plan = plan;
        workers[i].client = client;
        workers[i].key = &keys[i * (plan->each ? plan->each : 1) % plan->keys];
        workers[i].course = course;
        if (pthread_create(&workers[i].thread, NULL, lock_and_unlock, &workers[i]) != 0)
            return i;
    }
    return plan->threads;
}

static lk_status explain(lk_error *error, lk_status status, const char *text)
{
    if (error != NULL) {
        error->status = status;
        snprintf(error->message, sizeof error->message, "%s", text);
    }
    return status;
}

/* Returns the signal that came first, or 0. */
static int wait_out(const struct measure_plan *plan)
{
    sigset_t signals;
    sigemptyset(&signals);
    if (plan->ended_by != NULL)
        signals = *plan->ended_by;
    int64_t end_us = now_us() + plan->duration_ms * US_PER_MS, left_us;
    int caught = -1;
    while (caught < 0 && (left_us = end_us - now_us()) > 0)
        caught = sigtimedwait(&signals, NULL,
                              &(struct timespec){left_us / 1000000, left_us % 1000000 * 1000});
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* while the last are waited for */
    return caught > 0 ? caught : 0;
}

lk_status measure(const struct measure_plan *plan, struct measure_result *ret, lk_error *error)
{
    struct course course = {0};
    struct measure_result result = {0};
    lk_client *client;
    const lk_options options = {.local_queue = plan->local_queue,
                                .local_handovers = plan->local_handovers,
                                .spin_us = plan->spin_us};
    lk_status status = lk_open(plan->guard, plan->endpoints, &options, &client, error);
    if (status != LK_OK)
        return status;
    status = lk_ping(client);
    if (status != LK_OK) {
        char reason[LK_MESSAGE_MAX];
        lk_last_error(client, reason, sizeof reason);
        lk_close(client);
        return explain(error, status, reason[0] != '\0' ? reason : lk_status_text(status));
    }
    struct worker *workers = calloc((size_t)plan->threads, sizeof *workers);
    struct key *keys = calloc((size_t)plan->keys, sizeof *keys);
    int64_t *waits_us = calloc((size_t)plan->threads * WAITS_MAX, sizeof *waits_us);
    int started = workers != NULL && keys != NULL && waits_us != NULL
                      ? start(plan, client, keys, workers, &course)
                      : 0;
    bool whole = started == plan->threads;
    int64_t start_us = now_us();
    atomic_store(&course.stop, !whole);
    atomic_store(&course.go, true);
    if (whole)
        result.ended_by = wait_out(plan);
    atomic_store(&course.stop, true);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    double seconds = (double)(now_us() - start_us) / 1e6;
    lk_stats stats;
    lk_client_stats(client, &stats);
    lk_close(client);
    if (whole) {
        sum_up(workers, started, seconds, &stats, &result);
        result.first_failure = (lk_status)atomic_load(&course.first_failure);
        percentiles(workers, started, &result, waits_us);
        *ret = result;
    } else {
        status = explain(error, LK_NO_MEMORY, "no memory for so many threads");
    }
    free(waits_us);
    free(keys);
    free(workers);
    return status;
}
