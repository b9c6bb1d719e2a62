/*
 * The hot item beside the usual service: durable orders per second for one item, this service
 * (lanes on, redis-token, synchronous=FULL) beside fastify + better-sqlite3 + ioredis + redlock
 * (peers/node/server.js) with its lock as the library comes and tuned, without a lock, and with one
 * conditional UPDATE instead. Same requests, same generator, same Redis, closed model; medians of
 * REPEAT interleaved runs, a ratio is the median of the ratios of neighbouring runs. "untaken" are
 * orders sold that the stock does not know of: each would be sold a second time.
 *
 *     BUILD=build build/bench/bench_peers [REPEAT] [RUN_MS] [CONNECTIONS] > build/bench/peers.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *sync, *way; /* way: of server.js; NULL: this service */
    double goal;                   /* of the ratio; 0: none was set */
    char url[SANDBOX_TEXT_MAX];
    pid_t pid;
    double rates[BENCH_REPEAT_MAX], p50[BENCH_REPEAT_MAX], p99[BENCH_REPEAT_MAX],
        ratios[BENCH_REPEAT_MAX];
    uint64_t refused;
    long long untaken;
};

static struct row rows[] = {
    {.name = "this service", .sync = "FULL"},
    {.name = "redlock as it comes", .sync = "FULL", .way = "redlock", .goal = 25},
    {.name = "redlock tuned", .sync = "FULL", .way = "redlock-tuned", .goal = 25},
    {.name = "redlock tuned", .sync = "NORMAL", .way = "redlock-tuned"},
    {.name = "no lock: wrong", .sync = "FULL", .way = "none", .goal = 3},
    {.name = "no lock: wrong", .sync = "NORMAL", .way = "none", .goal = 3},
    {.name = "conditional UPDATE", .sync = "FULL", .way = "conditional", .goal = 9},
    {.name = "conditional UPDATE", .sync = "NORMAL", .way = "conditional"},
};
enum { ROWS = sizeof rows / sizeof rows[0], TEXT_MAX = 512 };

static void start(struct sandbox *sandbox, const struct sandbox_server *redis, struct row *row)
{
    char script[TEXT_MAX], file[TEXT_MAX], port[16];
    snprintf(script, sizeof script, "%s/bench/peers/node/server.js", bench_build());
    snprintf(file, sizeof file, "%s/%s-%s.db", sandbox_dir(sandbox), row->way, row->sync);
    snprintf(port, sizeof port, "%d", redis->port);
    const char *const argv[] = {"node", script, file, port, row->sync, row->way, NULL};
    row->pid = bench_start_peer(argv, row->url, sizeof row->url);
    if (row->pid < 0)
        bench_die("the Node service does not start");
}

/* Orders in its database beyond what its stock fell by. */
static long long untaken(const struct row *row)
{
    long long initial, stock, sold;
    char *text = bench_get(row->url, row->way ? "/audit" : "/v1/audit?resource=item:1");
    json_t *audit = json_loads(text, 0, NULL);
    int bad = row->way ? json_unpack(audit, "{s:I,s:I,s:I}", "initial", &initial, "stock", &stock,
                                     "sold", &sold)
                       : json_unpack(audit, "{s:[{s:I,s:I,s:I}]}", "resources", "initial", &initial,
                                     "current", &stock, "sold", &sold);
    if (bad)
        bench_die(text);
    json_decref(audit);
    free(text);
    return sold - (initial - stock);
}

static void print_versions(void)
{
    char script[TEXT_MAX], line[TEXT_MAX];
    snprintf(script, sizeof script, "%s/bench/peers/node/server.js", bench_build());
    if (!bench_ask((const char *const[]){"node", script, "versions", NULL}, line, sizeof line))
        bench_die("the Node service cannot be started: is there a node of version 20 or later, and "
                  "what did `make bench` say when it installed its packages?");
    fprintf(stderr, "beside %s\n", line);
}

static void measure(struct row *row, int i, int connections, int run_ms)
{
    struct order_figures figures;
    bench_ruler();
    bench_orders(&(struct order_run){.url = row->url,
                                     .item = "1",
                                     .connections = connections,
                                     .duration_ms = run_ms,
                                     .may_refuse = row->way != NULL},
                 &figures);
    if (i < 0)
        return;
    row->rates[i] = figures.per_s;
    row->p50[i] = figures.p50_us;
    row->p99[i] = figures.p99_us;
    double least = 1000.0 / run_ms; /* none in time counts as one */
    row->ratios[i] = rows[0].rates[i] / (figures.per_s > least ? figures.per_s : least);
    row->refused += figures.others;
}

static json_t *report(int repeat)
{
    json_t *all = json_array();
    fprintf(stderr, "%-20s %-6s %9s %9s %10s %8s %8s  %s\n", "hot item", "sync", "orders/s", "p50",
            "p99", "refused", "untaken", "this service is faster");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        double rate = bench_median(row->rates, repeat), p50 = bench_median(row->p50, repeat),
               p99 = bench_median(row->p99, repeat), ratio = bench_median(row->ratios, repeat);
        fprintf(stderr, "%-20s %-6s %9.0f %6.1f ms %7.1f ms %8llu %8lld", row->name, row->sync,
                rate, p50 / 1e3, p99 / 1e3, (unsigned long long)row->refused, row->untaken);
        if (i > 0)
            fprintf(stderr, "  %.1f x", ratio);
        if (row->goal > 0)
            fprintf(stderr, " (%.1f to %.1f; goal %.0f)", row->ratios[0], row->ratios[repeat - 1],
                    row->goal);
        fputc('\n', stderr);
        json_array_append_new(all, json_pack("{s:s,s:s,s:f,s:f,s:f,s:I,s:I,s:f}", "name", row->name,
                                             "sync", row->sync, "orders_per_s", rate, "p50_us", p50,
                                             "p99_us", p99, "refused", (json_int_t)row->refused,
                                             "untaken", (json_int_t)row->untaken, "ratio", ratio));
    }
    return all;
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 1500,
        connections = argc > 3 ? atoi(argv[3]) : 64;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 1 || connections < 1)
        bench_die("usage: bench_peers [REPEAT 1..25] [RUN_MS] [CONNECTIONS]");
    struct sandbox_server *redis = bench_redis(&sandbox);
    struct sandbox_server *service =
        bench_service(sandbox, "service", (const char *const[]){"--redis", redis->url, NULL});
    print_versions();
    bench_put_item(service->url, "1", "redis-token", 0);
    snprintf(rows[0].url, sizeof rows[0].url, "%s", service->url);
    for (size_t i = 1; i < ROWS; i++)
        start(sandbox, redis, &rows[i]);
    for (int run = -1; run < repeat; run++) /* once before, for Node's compiler to warm up */
        for (size_t i = 0; i < ROWS; i++)
            measure(&rows[i], run, connections, run_ms);
    for (size_t i = 0; i < ROWS; i++)
        rows[i].untaken = untaken(&rows[i]);
    json_t *table = report(repeat);
    json_t *all = json_pack("{s:i,s:o,s:f}", "connections", connections, "rows", table, "noise",
                            bench_noise());
    for (size_t i = 1; i < ROWS; i++)
        bench_stop(rows[i].pid);
    sandbox_close(sandbox);
    bench_print(all);
    return 0;
}
