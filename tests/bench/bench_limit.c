/*
 * How near the service comes to the machine: durable orders per second for one hot item, beside a
 * server that leaves out everything but the lock, the commit and HTTP (peers/bare_limit.c). Same
 * requests, same generator, same Redis, two connections counts, lanes on (a batch of orders shares
 * lock and commit; the ruler: 64 at most) and off (the textbook: one each). Medians of REPEAT
 * interleaved runs; the ratio is that of two neighbouring runs, so a slow moment hits both. Then
 * the same two with orders that come at 10,000 per second whatever becomes of them, with their
 * latency from the moment they are due.
 *
 *     BUILD=build build/bench/bench_limit [REPEAT] [RUN_MS] > build/bench/limit.json
 */
#include "../lib/bench.h"
#include "../lib/bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAYS = 2, TEXT_MAX = 512, OPEN_PER_S = 10000, OPEN_CONNECTIONS = 256 };

static const int connection_counts[] = {64, 256};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };
static const char *const way_names[WAYS] = {"textbook", "lanes"};

/* Its URL is what it prints. */
static pid_t start_bare(const struct sandbox *sandbox, int redis_port, const char *batch,
                        char *ret_url, size_t size)
{
    char binary[TEXT_MAX], file[TEXT_MAX], port[16];
    snprintf(binary, sizeof binary, "%s/bench/peers/bare_limit", bench_build());
    snprintf(file, sizeof file, "%s/bare-%s.db", sandbox_dir(sandbox), batch);
    snprintf(port, sizeof port, "%d", redis_port);
    const char *const argv[] = {binary, file, port, batch, "FULL", NULL};
    pid_t pid = bench_start_peer(argv, ret_url, size);
    if (pid < 0)
        bench_die("bare_limit does not start: was it built?");
    return pid;
}

static struct sandbox_server *start_service(struct sandbox *sandbox, const char *redis, int way)
{
    struct sandbox_server *service = bench_service(
        sandbox, way_names[way],
        (const char *const[]){"--redis", redis, "--lanes", way == 1 ? "on" : "off", NULL});
    bench_put_item(service->url, "1", "redis-token");
    return service;
}

/* Orders answered with 201 per second. */
static double run(const char *url, int connections, int run_ms)
{
    struct order_figures figures;
    bench_ruler();
    bench_orders(
        &(struct order_run){
            .url = url, .item = "1", .connections = connections, .duration_ms = run_ms},
        &figures);
    return figures.per_s;
}

static void measure(int way, const char *service, const char *bare, int connections, int repeat,
                    int run_ms, json_t *rows)
{
    double ours[BENCH_REPEAT_MAX], limit[BENCH_REPEAT_MAX], ratio[BENCH_REPEAT_MAX];
    for (int i = 0; i < repeat; i++) {
        limit[i] = run(bare, connections, run_ms);
        ours[i] = run(service, connections, run_ms);
        ratio[i] = ours[i] / limit[i];
    }
    double our_median = bench_median(ours, repeat), limit_median = bench_median(limit, repeat),
           ratio_median = bench_median(ratio, repeat);
    fprintf(stderr, "%-9s %11d %10.0f %10.0f %8.2f   %.2f to %.2f\n", way_names[way], connections,
            our_median, limit_median, ratio_median, ratio[0], ratio[repeat - 1]);
    json_array_append_new(rows, json_pack("{s:s,s:i,s:f,s:f,s:f}", "way", way_names[way],
                                          "connections", connections, "orders_per_s", our_median,
                                          "limit_per_s", limit_median, "ratio", ratio_median));
}

/* Open model: orders come at a fixed rate, and wait from the moment they are due. */
static void measure_open(const char *service, const char *bare, int repeat, int run_ms,
                         json_t *rows)
{
    static const char *const names[] = {"lanes", "limit"};
    double p99[2][BENCH_REPEAT_MAX], p99_9[2][BENCH_REPEAT_MAX];
    uint64_t undone[2] = {0, 0}; /* refused, or not even sent */
    for (int i = 0; i < repeat; i++)
        for (int who = 0; who < 2; who++) {
            struct order_figures figures;
            bench_ruler();
            bench_orders(&(struct order_run){.url = who == 0 ? service : bare,
                                             .item = "1",
                                             .connections = OPEN_CONNECTIONS,
                                             .per_s = OPEN_PER_S,
                                             .warmup_ms = 200,
                                             .duration_ms = run_ms,
                                             .may_refuse = true},
                         &figures);
            p99[who][i] = figures.p99_us;
            p99_9[who][i] = figures.p99_9_us;
            undone[who] += figures.dropped + figures.others;
        }
    for (int who = 0; who < 2; who++) {
        double high = bench_median(p99[who], repeat), highest = bench_median(p99_9[who], repeat);
        fprintf(stderr,
                "open model, %d orders/s, %s: p99 %.1f ms (%.1f to %.1f; goal 5), p99.9 %.1f ms "
                "(%.1f to %.1f; goal 20), %llu refused or not sent\n",
                OPEN_PER_S, names[who], high / 1e3, p99[who][0] / 1e3, p99[who][repeat - 1] / 1e3,
                highest / 1e3, p99_9[who][0] / 1e3, p99_9[who][repeat - 1] / 1e3,
                (unsigned long long)undone[who]);
        json_array_append_new(rows,
                              json_pack("{s:s,s:s,s:i,s:f,s:f,s:I}", "way", "open", "who",
                                        names[who], "orders_per_s", OPEN_PER_S, "p99_us", high,
                                        "p99_9_us", highest, "dropped", (json_int_t)undone[who]));
    }
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 1500;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 1)
        bench_die("usage: bench_limit [REPEAT] [RUN_MS]");
    if (sandbox_open(&sandbox) != 0)
        return 1;
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    json_t *rows = json_array();
    if (redis == NULL)
        return 1;
    fprintf(stderr, "mode      connections   orders/s      limit    ratio\n");
    for (int way = 0; way < WAYS; way++) {
        char bare[128];
        struct sandbox_server *service = start_service(sandbox, redis->url, way);
        pid_t pid = start_bare(sandbox, redis->port, way == 1 ? "64" : "1", bare, sizeof bare);
        for (int i = 0; i < SIZES; i++)
            measure(way, service->url, bare, connection_counts[i], repeat, run_ms, rows);
        if (way == 1)
            measure_open(service->url, bare, repeat, run_ms, rows);
        bench_stop(pid);
    }
    sandbox_close(sandbox);
    json_t *all = json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise());
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
    return 0;
}
