/*
 * How near the service comes to the machine: durable orders per second for one hot item, beside a
 * server that leaves out everything but the lock, the commit and HTTP (peers/bare_limit.c). Same
 * requests, same generator, same Redis, two connection counts, lanes on (a batch of orders shares
 * lock and commit; the ruler: 64 at most) and off (the textbook: one each), each commit flushed or
 * not. Medians of REPEAT interleaved runs; the ratio is that of two neighbouring runs, so a slow
 * moment hits both. "CPU" is what the process itself takes per order, generator and Redis apart: it
 * suffers least from a busy machine. Then orders that come at 10,000 per second whatever becomes of
 * them, with their latency from the moment they are due.
 *
 *     BUILD=build build/bench/bench_limit [REPEAT] [RUN_MS] > build/bench/limit.json
 */
#include "../lib/bench.h"
#include "../lib/bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT_MAX = 512, OPEN_PER_S = 10000, OPEN_CONNECTIONS = 256 };

static const int connection_counts[] = {64, 256};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };
static const struct way {
    const char *name, *lanes, *sync, *bare_sync, *batch;
} ways[] = {
    {"textbook", "off", "full", "FULL", "1"},
    {"textbook", "off", "normal", "NORMAL", "1"},
    {"lanes", "on", "full", "FULL", "64"},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct server {
    pid_t pid;
    char url[SANDBOX_TEXT_MAX];
};

struct figures {
    double per_s, cpu_us; /* orders answered with 201; CPU time per order */
};

/* Its URL is what it prints. */
static void start_bare(const struct sandbox *sandbox, int redis_port, const struct way *way,
                       struct server *ret)
{
    char binary[TEXT_MAX], file[TEXT_MAX], port[16];
    snprintf(binary, sizeof binary, "%s/bench/peers/bare_limit", bench_build());
    snprintf(file, sizeof file, "%s/bare-%s-%s.db", sandbox_dir(sandbox), way->name, way->sync);
    snprintf(port, sizeof port, "%d", redis_port);
    const char *const argv[] = {binary, file, port, way->batch, way->bare_sync, NULL};
    ret->pid = bench_start_peer(argv, ret->url, sizeof ret->url);
    if (ret->pid < 0)
        bench_die("bare_limit does not start: was it built?");
}

static void start_service(struct sandbox *sandbox, const char *redis, const struct way *way,
                          struct server *ret)
{
    char store[64];
    snprintf(store, sizeof store, "%s-%s", way->name, way->sync);
    struct sandbox_server *service = bench_service(
        sandbox, store,
        (const char *const[]){"--redis", redis, "--lanes", way->lanes, "--sync", way->sync, NULL});
    bench_put_item(service->url, "1", "redis-token");
    ret->pid = service->pid;
    snprintf(ret->url, sizeof ret->url, "%s", service->url);
}

static double cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_die("a server has ended");
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static struct figures run(const struct server *server, int connections, int run_ms)
{
    struct order_figures orders;
    bench_ruler();
    double before_us = cpu_us(server->pid);
    bench_orders(
        &(struct order_run){
            .url = server->url, .item = "1", .connections = connections, .duration_ms = run_ms},
        &orders);
    return (struct figures){orders.per_s,
                            (cpu_us(server->pid) - before_us) / (double)orders.accepted};
}

static void measure(const struct way *way, const struct server *service, const struct server *bare,
                    int connections, int repeat, int run_ms, json_t *rows)
{
    double ours[BENCH_REPEAT_MAX], limit[BENCH_REPEAT_MAX], ratio[BENCH_REPEAT_MAX],
        our_cpu[BENCH_REPEAT_MAX], limit_cpu[BENCH_REPEAT_MAX];
    for (int i = 0; i < repeat; i++) {
        struct figures of_bare = run(bare, connections, run_ms),
                       of_service = run(service, connections, run_ms);
        limit[i] = of_bare.per_s;
        limit_cpu[i] = of_bare.cpu_us;
        ours[i] = of_service.per_s;
        our_cpu[i] = of_service.cpu_us;
        ratio[i] = ours[i] / limit[i];
    }
    double our_median = bench_median(ours, repeat), limit_median = bench_median(limit, repeat),
           ratio_median = bench_median(ratio, repeat), our_us = bench_median(our_cpu, repeat),
           limit_us = bench_median(limit_cpu, repeat);
    fprintf(stderr, "%-9s %-6s %11d %10.0f %10.0f %7.2f (%.2f to %.2f) %7.1f us %7.1f us\n",
            way->name, way->sync, connections, our_median, limit_median, ratio_median, ratio[0],
            ratio[repeat - 1], our_us, limit_us);
    json_array_append_new(rows,
                          json_pack("{s:s,s:s,s:i,s:f,s:f,s:f,s:f,s:f}", "way", way->name, "sync",
                                    way->sync, "connections", connections, "orders_per_s",
                                    our_median, "limit_per_s", limit_median, "ratio", ratio_median,
                                    "cpu_us", our_us, "limit_cpu_us", limit_us));
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
    struct sandbox_server *redis = bench_redis(&sandbox);
    json_t *rows = json_array();
    fprintf(stderr,
            "mode      sync   connections   orders/s      limit   ratio                CPU each, "
            "limit's\n");
    for (int i = 0; i < WAYS; i++) {
        struct server bare, service;
        start_service(sandbox, redis->url, &ways[i], &service);
        start_bare(sandbox, redis->port, &ways[i], &bare);
        for (int size = 0; size < SIZES; size++)
            measure(&ways[i], &service, &bare, connection_counts[size], repeat, run_ms, rows);
        if (i == WAYS - 1)
            measure_open(service.url, bare.url, repeat, run_ms, rows);
        bench_stop(bare.pid);
    }
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise()));
    return 0;
}
