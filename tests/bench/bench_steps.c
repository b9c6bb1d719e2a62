/*
 * Where the time of an order goes: one hot item, step by step, as the service itself counts it
 * (seckill_step_seconds). What is left of the latency that the generator sees is HTTP: both ends of
 * the connection, parsing, handing over to a worker and back. "lock" begins with what is read
 * before one: the key's stored answer, the item's guard. "commit" is the store's COMMIT: the log is
 * written and, with FULL, flushed.
 *
 * One connection shows what each step takes when nothing waits. With lanes on and 64 connections
 * the orders of a batch go through the steps from the lock on together: the second figure is the
 * share of one. (HTTP goes on beside them.) Medians of REPEAT interleaved runs.
 *
 *     BUILD=build build/bench/bench_steps [REPEAT] [RUN_MS] > build/bench/steps.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct way {
    const char *name, *lanes, *sync;
    int connections;
} ways[] = {
    {"lanes off (textbook), FULL", "off", "full", 1},
    {"lanes off (textbook), NORMAL", "off", "normal", 1},
    {"lanes on, FULL", "on", "full", 64},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* In the order of an operation's points. A step takes as long for each operation of a batch: its
 * sum over its count. A part of the step above it (count NULL) is shared by the batch, or a lock by
 * several: its sum over the batches. */
#define STEP(name)                                                                                 \
    name, "seckill_step_seconds_sum{step=\"" name "\"}",                                           \
        "seckill_step_seconds_count{step=\"" name "\"}"
static const struct step {
    const char *name, *sum, *count;
} steps[] = {
    {STEP("queue")},
    {STEP("lock")},
    {"  of it lock", "seckill_lock_wait_seconds_sum{guard=\"redis-token\"}", NULL},
    {STEP("read")},
    {STEP("decide")},
    {STEP("check")},
    {STEP("write")},
    {"  of it commit", "seckill_store_commit_seconds_total", NULL},
    {STEP("unlock")},
};
enum { STEPS = sizeof steps / sizeof steps[0], HTTP = STEPS, FIGURES };

static double grown(const char *before, const char *after, const char *name)
{
    return bench_metric_of(after, name) - bench_metric_of(before, name);
}

/* Microseconds of an order in each step, into column `run`; returns the orders in a batch. */
static double measure(const struct way *way, const char *url, int run_ms, int run,
                      double us[FIGURES][BENCH_REPEAT_MAX])
{
    static const char batches[] = "seckill_batch_operations_count",
                      batched[] = "seckill_batch_operations_sum";
    struct order_figures orders;
    bench_ruler();
    char *before = bench_get(url, "/metrics");
    bench_orders(
        &(struct order_run){
            .url = url, .item = "1", .connections = way->connections, .duration_ms = run_ms},
        &orders);
    char *after = bench_get(url, "/metrics");
    us[HTTP][run] = way->connections * 1e6 / orders.per_s;
    for (int i = 0; i < STEPS; i++) {
        us[i][run] = grown(before, after, steps[i].sum) * 1e6 /
                     grown(before, after, steps[i].count ? steps[i].count : batches);
        us[HTTP][run] -= steps[i].count ? us[i][run] : 0;
    }
    double batch = grown(before, after, batched) / grown(before, after, batches);
    free(before);
    free(after);
    return batch;
}

/* each_us: NAN for none. */
static void print_line(const char *name, double step_us, double each_us)
{
    fprintf(stderr, "  %-14s %8.1f us", name, step_us);
    if (!isnan(each_us))
        fprintf(stderr, " %8.2f us each", each_us);
    fprintf(stderr, "\n");
}

static void print(const struct way *way, double us[FIGURES][BENCH_REPEAT_MAX], double *batches,
                  int repeat, json_t *rows)
{
    const double batch = bench_median(batches, repeat), http_us = bench_median(us[HTTP], repeat);
    const bool batched = batch > 1.5;
    double together_us = http_us, section_us = 0;
    json_t *row = json_pack("{s:s,s:i,s:f,s:f}", "way", way->name, "connections", way->connections,
                            "batch", batch, "http", http_us);
    fprintf(stderr, "\nredis-token, %s, %d connection%s, %.1f orders in a batch\n", way->name,
            way->connections, way->connections == 1 ? "" : "s", batch);
    print_line("http", http_us, NAN);
    for (int i = 0; i < STEPS; i++) {
        const double step_us = bench_median(us[i], repeat);
        print_line(steps[i].name, step_us, batched && i > 0 ? step_us / batch : NAN);
        json_object_set_new(row, steps[i].name + strspn(steps[i].name, " "), json_real(step_us));
        together_us += steps[i].count ? step_us : 0;
        section_us += steps[i].count && i > 0 ? step_us : 0;
    }
    print_line("together", together_us, batched ? section_us / batch : NAN);
    json_array_append_new(rows, row);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 1500;
    static double us[WAYS][FIGURES][BENCH_REPEAT_MAX], batches[WAYS][BENCH_REPEAT_MAX];
    const char *urls[WAYS];
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 200)
        bench_die("usage: bench_steps [REPEAT] [RUN_MS]");
    struct sandbox_server *redis = bench_redis(&sandbox);
    for (int i = 0; i < WAYS; i++) {
        char store[16];
        snprintf(store, sizeof store, "steps-%d", i);
        urls[i] = bench_service(sandbox, store,
                                (const char *const[]){"--redis", redis->url, "--lanes",
                                                      ways[i].lanes, "--sync", ways[i].sync, NULL})
                      ->url;
        bench_put_item(urls[i], "1", "redis-token", 0);
    }
    for (int run = 0; run < repeat; run++)
        for (int i = 0; i < WAYS; i++)
            batches[i][run] = measure(&ways[i], urls[i], run_ms, run, us[i]);
    json_t *rows = json_array();
    for (int i = 0; i < WAYS; i++)
        print(&ways[i], us[i], batches[i], repeat, rows);
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise()));
    return 0;
}
