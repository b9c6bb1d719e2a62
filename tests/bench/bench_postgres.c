/*
 * A hot item on PostgreSQL, every commit flushed: a lock and a commit for a batch of orders (lanes)
 * beside one for each, with SELECT ... FOR UPDATE, the conditional UPDATE and the Redis lock; the
 * same server, the same settings, closed model. Two instances that share the database sell the same
 * item with lanes on: nothing may get lost. Medians of REPEAT interleaved runs; a ratio is the
 * median of the ratios to lanes in the same round.
 *
 *     BUILD=build build/bench/bench_postgres [REPEAT] [RUN_MS] [CONNECTIONS] > postgres.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES = 3 };

/* Which instances: the first two have lanes, the third has none. */
static struct row {
    const char *name, *item, *guard;
    int instance, second; /* second: -1: none */
    double goal;          /* of the ratio; 0: none was set */
    double rates[BENCH_REPEAT_MAX], p50[BENCH_REPEAT_MAX], p99[BENCH_REPEAT_MAX],
        ratios[BENCH_REPEAT_MAX];
    uint64_t accepted;
} rows[] = {
    {.name = "lanes, redis-token", .item = "lanes", .guard = "redis-token", .second = -1},
    {.name = "two instances, lanes", .item = "two", .guard = "redis-token", .second = 1},
    {.name = "SELECT FOR UPDATE",
     .item = "row",
     .guard = "sql-row",
     .instance = 2,
     .second = -1,
     .goal = 10},
    {.name = "conditional UPDATE",
     .item = "atomic",
     .guard = "sql-atomic",
     .instance = 2,
     .second = -1},
    {.name = "redis-token per order",
     .item = "token",
     .guard = "redis-token",
     .instance = 2,
     .second = -1},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void measure(struct row *row, struct sandbox_server *const *services, int i, int connections,
                    int run_ms)
{
    struct order_figures figures;
    bench_ruler();
    bench_orders(&(struct order_run){.url = services[row->instance]->url,
                                     .second = row->second < 0 ? NULL : services[row->second]->url,
                                     .item = row->item,
                                     .connections = connections,
                                     .duration_ms = run_ms},
                 &figures);
    row->rates[i] = figures.per_s;
    row->p50[i] = figures.p50_us;
    row->p99[i] = figures.p99_us;
    row->ratios[i] = rows[0].rates[i] / figures.per_s;
    row->accepted += figures.accepted;
}

static json_t *report(int repeat)
{
    json_t *all = json_array();
    fprintf(stderr, "%-22s %9s %9s %10s  %s\n", "hot item, PostgreSQL", "orders/s", "p50", "p99",
            "lanes are faster");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        double rate = bench_median(row->rates, repeat), p50 = bench_median(row->p50, repeat),
               p99 = bench_median(row->p99, repeat), ratio = bench_median(row->ratios, repeat);
        fprintf(stderr, "%-22s %9.0f %6.1f ms %7.1f ms  %.1f x (%.1f to %.1f", row->name, rate,
                p50 / 1e3, p99 / 1e3, ratio, row->ratios[0], row->ratios[repeat - 1]);
        if (row->goal > 0)
            fprintf(stderr, "; goal %.0f", row->goal);
        fprintf(stderr, ")\n");
        json_array_append_new(all,
                              json_pack("{s:s,s:f,s:f,s:f,s:f}", "name", row->name, "orders_per_s",
                                        rate, "p50_us", p50, "p99_us", p99, "ratio", ratio));
    }
    return all;
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 1500,
        connections = argc > 3 ? atoi(argv[3]) : 64;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || connections < 2)
        bench_die("usage: bench_postgres [REPEAT 1..25] [RUN_MS] [CONNECTIONS]");
    struct sandbox_server *redis = bench_redis(&sandbox),
                          *postgres = sandbox_postgres(
                              sandbox, (const char *const[]){"-c", "fsync=on", NULL});
    struct sandbox_server *services[INSTANCES];
    if (postgres == NULL)
        bench_die("no PostgreSQL");
    for (int i = 0; i < INSTANCES; i++)
        services[i] = bench_service(
            sandbox, postgres->url,
            (const char *const[]){"--redis", redis->url, "--lanes", i < 2 ? "on" : "off", NULL});
    for (size_t i = 0; i < ROWS; i++)
        bench_put_item(services[0]->url, rows[i].item, rows[i].guard, 0);
    for (int run = 0; run < repeat; run++)
        for (size_t i = 0; i < ROWS; i++)
            measure(&rows[i], services, run, connections, run_ms);
    for (size_t i = 0; i < ROWS; i++)
        if (bench_audit(services[0]->url, rows[i].item) != (int64_t)rows[i].accepted)
            bench_die("the database has not sold what was answered with 201");
    fprintf(stderr, "each ledger is whole, and has sold exactly what was answered with 201\n");
    json_t *table = report(repeat);
    json_t *all = json_pack("{s:i,s:o,s:f}", "connections", connections, "rows", table, "noise",
                            bench_noise());
    sandbox_close(sandbox);
    bench_print(all);
    return 0;
}
