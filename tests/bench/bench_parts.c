/*
 * What a part of the service is worth: durable orders per second for one hot item, and CPU time per
 * order, of seckilld with the part and without it (a file of without/, linked in the part's place).
 *
 * Each pair runs one after the other, in turns which one first, on the same Redis and with stores
 * of their own. A ratio is that of a pair, so a slow moment of the machine hits both. A part that
 * gains less than 5 % of the hot item does not stay.
 *
 *     BUILD=build build/bench/bench_parts [REPEAT] [RUN_MS] > build/bench/parts.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT_MAX = 512, WITH = 0, WITHOUT, BOTH };

static const char *const parts[] = {"wal_vfs"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static const struct way {
    const char *name, *lanes, *sync;
    int connections;
} ways[] = {
    {"lanes", "on", "full", 64},
    {"lanes", "on", "full", 256},
    {"textbook", "off", "full", 64},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct figures {
    double per_s, cpu_us; /* orders answered with 201; CPU time per order */
};

static struct sandbox_server *start(struct sandbox *sandbox, const char *redis, int way,
                                    const char *part)
{
    char binary[TEXT_MAX], file[TEXT_MAX];
    const char *const flags[] = {"--db",          file,     "--redis",      redis, "--lanes",
                                 ways[way].lanes, "--sync", ways[way].sync, NULL};
    if (part == NULL)
        snprintf(binary, sizeof binary, "%s/seckilld", bench_build());
    else
        snprintf(binary, sizeof binary, "%s/bench/without/%s", bench_build(), part);
    snprintf(file, sizeof file, "sqlite:%s/%d-%s.db", sandbox_dir(sandbox), way,
             part ? part : "all");
    struct sandbox_server *service = sandbox_seckilld(sandbox, binary, flags);
    if (service == NULL)
        bench_die_of(binary, "does not start");
    bench_put_item(service->url, "1", "redis-token", 0);
    return service;
}

static double cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_die("a service has ended");
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static struct figures run(const struct sandbox_server *service, int connections, int run_ms)
{
    struct order_figures orders;
    bench_ruler();
    double before_us = cpu_us(service->pid);
    bench_orders(
        &(struct order_run){
            .url = service->url, .item = "1", .connections = connections, .duration_ms = run_ms},
        &orders);
    return (struct figures){orders.per_s,
                            (cpu_us(service->pid) - before_us) / (double)orders.accepted};
}

static void measure(struct sandbox_server *const services[BOTH], int way, const char *part,
                    int repeat, int run_ms, json_t *rows)
{
    double per_s[BOTH][BENCH_REPEAT_MAX], cpu[BOTH][BENCH_REPEAT_MAX], rate[BENCH_REPEAT_MAX],
        work[BENCH_REPEAT_MAX];
    for (int i = 0; i < repeat; i++) {
        for (int turn = 0; turn < BOTH; turn++) {
            int which = (turn + i) % BOTH;
            struct figures figures = run(services[which], ways[way].connections, run_ms);
            per_s[which][i] = figures.per_s;
            cpu[which][i] = figures.cpu_us;
        }
        rate[i] = per_s[WITH][i] / per_s[WITHOUT][i];
        work[i] = cpu[WITH][i] / cpu[WITHOUT][i];
    }
    double with = bench_median(per_s[WITH], repeat), without = bench_median(per_s[WITHOUT], repeat),
           with_us = bench_median(cpu[WITH], repeat),
           without_us = bench_median(cpu[WITHOUT], repeat), gain = bench_median(rate, repeat),
           cost = bench_median(work, repeat);
    fprintf(stderr, "%-8s %-8s %-6s %11d %9.0f %9.0f %5.2f (%.2f to %.2f) %6.1f %6.1f %5.2f\n",
            part, ways[way].name, ways[way].sync, ways[way].connections, with, without, gain,
            rate[0], rate[repeat - 1], with_us, without_us, cost);
    json_array_append_new(rows,
                          json_pack("{s:s,s:s,s:s,s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "part", part,
                                    "way", ways[way].name, "sync", ways[way].sync, "connections",
                                    ways[way].connections, "with_per_s", with, "without_per_s",
                                    without, "ratio", gain, "with_cpu_us", with_us,
                                    "without_cpu_us", without_us, "cpu_ratio", cost));
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 9, run_ms = argc > 2 ? atoi(argv[2]) : 1500;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 200)
        bench_die("usage: bench_parts [REPEAT 1..25] [RUN_MS 200..]");
    struct sandbox_server *redis = bench_redis(&sandbox);
    json_t *rows = json_array();
    fprintf(stderr, "%-8s %-8s %-6s %11s %9s %9s %5s %14s %6s %6s %5s\n", "part", "way", "sync",
            "connections", "with/s", "without/s", "ratio", "", "with", "without", "CPU");
    for (int way = 0; way < WAYS; way++) {
        struct sandbox_server *services[BOTH] = {[WITH] = start(sandbox, redis->url, way, NULL)};
        for (int part = 0; part < PARTS; part++) {
            services[WITHOUT] = start(sandbox, redis->url, way, parts[part]);
            measure(services, way, parts[part], repeat, run_ms, rows);
        }
    }
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise()));
    return 0;
}
