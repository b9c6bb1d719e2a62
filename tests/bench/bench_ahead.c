/*
 * What writing ahead brings (lockkit/redis/README.md): pairs of lock and unlock through one shared
 * connection that writes the next batch ahead, over the same through one that does not.
 *
 * All threads change over every WINDOW_MS, and neighbouring windows make a ratio. So whatever else
 * the machine does disturbs both alike. A connection writes nothing ahead while
 * lk_options.replicas is set; no command here asks for replicas.
 *
 *     BUILD=build build/bench/bench_ahead [PAIRS_OF_WINDOWS] > build/bench/ahead.json
 */
#include "bench.h"
#include "redis_guard.h"
#include "sandbox.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDES = 2, AHEAD = 0, PLAIN = 1, THREADS_MAX = 64, WINDOW_MS = 100, PAIRS_MAX = 500 };

static const char acquire_body[] =
    LK_REDIS_NEXT_FENCE "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                        "  return next_fence(KEYS[2]) "
                        "end "
                        "return 0";
static const char release_body[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                   "  return redis.call('del', KEYS[1]) "
                                   "end "
                                   "return 0";

static struct side {
    _Atomic uint64_t commands, pairs;
    lk_options options;
    lk_context context;
    lk_redis *redis;
    lk_redis_script acquire, release;
} sides[SIDES];

static _Atomic int now_on; /* which side */
static atomic_bool stop;

static bool lock_and_unlock(struct side *side, const char *key, const char *fence)
{
    lk_redis_reply reply;
    return lk_redis_eval(side->redis, &side->acquire, &reply, REDIS_REPLY_INTEGER, 2, key, fence,
                         "token", "30000") == LK_OK &&
           reply.root.integer > 0 &&
           lk_redis_eval(side->redis, &side->release, &reply, REDIS_REPLY_INTEGER, 1, key,
                         "token") == LK_OK &&
           reply.root.integer == 1;
}

static void *run(void *arg)
{
    char key[32], fence[32];
    int number = *(int *)arg;
    snprintf(key, sizeof key, "lock:bench:%d", number);
    snprintf(fence, sizeof fence, "{lock:bench:%d}:fence", number);
    while (!atomic_load(&stop)) {
        struct side *side = &sides[atomic_load(&now_on)];
        if (!lock_and_unlock(side, key, fence))
            bench_die("a lock was not granted or not freed");
        atomic_fetch_add_explicit(&side->pairs, 1, memory_order_relaxed);
    }
    return NULL;
}

static double window(int side)
{
    atomic_store(&now_on, side);
    uint64_t before = sides[side].pairs;
    nanosleep(&(struct timespec){.tv_nsec = WINDOW_MS * 1000000L}, NULL);
    return (double)(sides[side].pairs - before);
}

static json_t *measure(int n_threads, int pairs)
{
    static double ratios[PAIRS_MAX];
    pthread_t threads[THREADS_MAX];
    int numbers[THREADS_MAX];
    double sum[SIDES] = {0};
    atomic_store(&stop, false);
    for (int i = 0; i < n_threads; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, run, &numbers[i]) != 0)
            bench_die("no thread");
    }
    window(AHEAD);
    for (int i = 0; i < pairs; i++) { /* each side is first as often as it is second */
        double n[SIDES];
        int first = i % 2 == 0 ? AHEAD : PLAIN;
        n[first] = window(first);
        n[!first] = window(!first);
        ratios[i] = n[AHEAD] / (n[PLAIN] > 0 ? n[PLAIN] : 1);
        for (int side = 0; side < SIDES; side++)
            sum[side] += n[side];
    }
    atomic_store(&stop, true);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    double median = bench_median(ratios, pairs), seconds = pairs * WINDOW_MS / 1e3;
    fprintf(stderr,
            "%7d threads %9.0f pairs/s ahead %9.0f plain   ratio %.2f (quartiles %.2f to %.2f)\n",
            n_threads, sum[AHEAD] / seconds, sum[PLAIN] / seconds, median, ratios[pairs / 4],
            ratios[pairs * 3 / 4]);
    return json_pack("{s:i,s:f,s:f,s:f}", "threads", n_threads, "ahead_pairs_per_s",
                     sum[AHEAD] / seconds, "plain_pairs_per_s", sum[PLAIN] / seconds, "ratio",
                     median);
}

static void open_side(struct side *side, const char *url, int32_t replicas)
{
    lk_error error;
    side->options = (lk_options){.command_timeout_ms = 10000, .spin_us = 50, .replicas = replicas};
    side->context = (lk_context){.env = lk_env_system(),
                                 .options = &side->options,
                                 .endpoints = url,
                                 .commands = &side->commands};
    if (lk_redis_open(&side->context, &side->redis, &error) != LK_OK)
        bench_die_of(url, error.message);
    lk_redis_script_init(&side->acquire, acquire_body);
    lk_redis_script_init(&side->release, release_body);
}

int main(int argc, char **argv)
{
    static const int threads[] = {4, 16, 64};
    int pairs = argc > 1 ? atoi(argv[1]) : 50;
    struct sandbox *sandbox;
    if (pairs < 4 || pairs > PAIRS_MAX)
        bench_die("usage: bench_ahead [PAIRS_OF_WINDOWS 4..500]");
    if (sandbox_open(&sandbox) != 0)
        return 1;
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    if (!redis)
        return 1;
    open_side(&sides[AHEAD], redis->url, 0);
    open_side(&sides[PLAIN], redis->url, 1);
    json_t *all = json_array();
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        json_array_append_new(all, measure(threads[i], pairs));
    for (int side = 0; side < SIDES; side++)
        lk_redis_close(sides[side].redis);
    sandbox_close(sandbox);
    bench_print(all);
    return 0;
}
