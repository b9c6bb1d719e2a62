/*
 * What becomes of the orders per second when something grows: connections, items, rows of the past,
 * worker threads. SQLite with synchronous=FULL, redis-token, lanes on, closed model. All sizes of a
 * dimension run in turn, medians of REPEAT rounds; the ratio is that to the next smaller size, in
 * the same round. The past is written straight into the store's file (ledger, orders and stored
 * answers) and has to pass the audit. Then: the latency of a cold item while the hot one has so
 * many waiters. Plots: build/bench/growth.html.
 *
 *     BUILD=build build/bench/bench_growth [REPEAT] [RUN_MS] [DIMENSION=SIZE,...]... > growth.json
 *
 * `make bench` takes small sizes. The whole range, some 15 min and 8 GB under $TMPDIR:
 *
 *     build/bench/bench_growth 5 2000 connections=64,1000,10000 items=1,100,10000,1000000 \
 *         rows=0,1000000,10000000 workers=1,4,16,64 waiters=10000
 */
#include "bench.h"
#include "bench_fill.h"
#include "bench_orders.h"
#include "html.h"
#include "redis.h"

#include <hiredis/hiredis.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES_MAX = 8, TEXT = 128, GOAL_PERCENT = 20 };

enum kind { CONNECTIONS, ITEMS, ROWS, WORKERS, KINDS, WAITERS = KINDS };

static struct dimension {
    const char *name, *what;
    long sizes[SIZES_MAX];
    int n;
    struct sandbox_server *services[SIZES_MAX];
    double rates[SIZES_MAX][BENCH_REPEAT_MAX], p99_us[SIZES_MAX][BENCH_REPEAT_MAX];
} dimensions[KINDS] = {
    [CONNECTIONS] = {.name = "connections",
                     .what = "connections, one hot item",
                     .sizes = {64, 1000, 10000},
                     .n = 3},
    [ITEMS] = {.name = "items",
               .what = "items, orders spread over all",
               .sizes = {1, 100, 10000},
               .n = 3},
    [ROWS] = {.name = "rows",
              .what = "orders in the past of the hot item",
              .sizes = {0, 100000},
              .n = 2},
    [WORKERS] = {.name = "workers",
                 .what = "worker threads, orders spread over 100 items",
                 .sizes = {1, 4, 16, 64},
                 .n = 4},
};
static long waiters = 2000;

static struct sandbox *sandbox;
static const char *redis_url;
static int redis_port;

/* A service for one size; those of connections share one. */
static struct sandbox_server *prepare(enum kind kind, const struct dimension *dimension, int i)
{
    char name[TEXT], workers[TEXT];
    long size = dimension->sizes[i];
    if (kind == CONNECTIONS && i > 0)
        return dimension->services[0];
    snprintf(name, sizeof name, "%s-%ld", dimension->name, size);
    snprintf(workers, sizeof workers, "%ld", kind == WORKERS ? size : 16);
    const char *const flags[] = {"--redis",       redis_url, "--workers", workers,
                                 "--connections", "10100",   NULL};
    struct sandbox_server *service = bench_service(sandbox, name, flags);
    bench_put_item(service->url, "1", "redis-token", 0);
    if (kind == CONNECTIONS || size == 0 || (kind == ITEMS && size == 1))
        return service;
    if (kind == ROWS)
        bench_orders(
            &(struct order_run){
                .url = service->url, .item = "1", .connections = 1, .duration_ms = 200},
            &(struct order_figures){0}); /* something to copy */
    sandbox_signal(service, SIGTERM);
    snprintf(name, sizeof name, "%s/%s-%ld.db", sandbox_dir(sandbox), dimension->name, size);
    if (kind == ROWS)
        bench_fill_past(name, size);
    else
        bench_fill_items(name, kind == WORKERS ? 100 : size);
    if (sandbox_restart(service) != 0)
        bench_die("the service does not start again");
    return service;
}

static void run_one(enum kind kind, struct dimension *dimension, int i, int round, int run_ms)
{
    char items[TEXT];
    struct order_figures figures;
    int connections = kind == CONNECTIONS ? (int)dimension->sizes[i] : 64;
    long n_items = kind == ITEMS ? dimension->sizes[i] : kind == WORKERS ? 100 : 1;
    snprintf(items, sizeof items, n_items > 1 ? "{{random 1 %ld}}" : "%ld", n_items);
    bench_ruler();
    bench_orders(&(struct order_run){.url = dimension->services[i]->url,
                                     .item = items,
                                     .connections = connections,
                                     .warmup_ms = 200 + connections / 5, /* until all are there */
                                     .duration_ms = run_ms},
                 &figures);
    dimension->rates[i][round] = figures.per_s;
    dimension->p99_us[i][round] = figures.p99_us;
}

static char *rate_text(char out[TEXT_MAX], double rate)
{
    snprintf(out, TEXT_MAX, "%.0f/s", rate);
    return out;
}

/* rates are sorted by then. */
static void plot(const struct dimension *dimension, int repeat, FILE *out)
{
    static const struct {
        const char *label;
        double place;
    } curves_of[] = {{"median", 0.5}, {"lowest", 0}, {"highest", 1}};
    static char ticks[SIZES_MAX][24];
    struct html_curves curves = {.title = dimension->what,
                                 .x_label = dimension->name,
                                 .y_text = rate_text,
                                 .n_x_ticks = dimension->n,
                                 .n = 3};
    for (int i = 0; i < dimension->n; i++) {
        long size = dimension->sizes[i];
        snprintf(ticks[i], sizeof ticks[i], size >= 10000 ? "%ldk" : "%ld",
                 size >= 10000 ? size / 1000 : size);
        curves.x_ticks[i] = (struct html_tick){i, ticks[i]};
        for (int c = 0; c < curves.n; c++)
            curves.curve[c].points[i] = (struct html_point){
                i, dimension->rates[i][(int)(curves_of[c].place * (repeat - 1))]};
    }
    for (int c = 0; c < curves.n; c++) {
        curves.curve[c].n = dimension->n;
        snprintf(curves.curve[c].label, sizeof curves.curve[c].label, "%s", curves_of[c].label);
    }
    html_curves(&curves, out);
}

static void report(struct dimension *dimension, int repeat, FILE *page, json_t *all)
{
    double ratios[SIZES_MAX][BENCH_REPEAT_MAX] = {{0}};
    for (int i = 1; i < dimension->n; i++)
        for (int round = 0; round < repeat; round++)
            ratios[i][round] = dimension->rates[i][round] / dimension->rates[i - 1][round];
    fprintf(stderr, "%-10s %12s %12s %10s   to the size before\n", dimension->name, "orders/s",
            "p99", "ratio");
    for (int i = 0; i < dimension->n; i++) {
        double rate = bench_median(dimension->rates[i], repeat),
               p99_us = bench_median(dimension->p99_us[i], repeat),
               ratio = i > 0 ? bench_median(ratios[i], repeat) : 1;
        fprintf(stderr, "%10ld %12.0f %9.1f ms", dimension->sizes[i], rate, p99_us / 1e3);
        if (i > 0)
            fprintf(stderr, " %10.2f   %.2f to %.2f%s", ratio, ratios[i][0], ratios[i][repeat - 1],
                    (1 - ratio) * 100 > GOAL_PERCENT ? ": falls by more than 20 %" : "");
        fputc('\n', stderr);
        json_array_append_new(all,
                              json_pack("{s:s,s:I,s:f,s:f,s:f}", "dimension", dimension->name,
                                        "size", (json_int_t)dimension->sizes[i], "orders_per_s",
                                        rate, "p99_us", p99_us, "ratio", ratio));
    }
    plot(dimension, repeat, page);
}

static void measure(enum kind kind, int repeat, int run_ms, FILE *page, json_t *all)
{
    struct dimension *dimension = &dimensions[kind];
    for (int i = 0; i < dimension->n; i++)
        dimension->services[i] = prepare(kind, dimension, i);
    for (int round = 0; round < repeat; round++)
        for (int i = 0; i < dimension->n; i++)
            run_one(kind, dimension, i, round, run_ms);
    report(dimension, repeat, page, all);
    for (int i = 0; i < dimension->n; i++)
        if (sandbox_alive(dimension->services[i]))
            sandbox_signal(dimension->services[i], SIGTERM);
}

/* -- a cold item ---------------------------------------------------------------------------------
 */

static double cold_p99_us(const char *url, int run_ms)
{
    struct order_figures figures;
    bench_orders(
        &(struct order_run){
            .url = url, .item = "2", .connections = 4, .per_s = 200, .duration_ms = run_ms},
        &figures);
    return figures.p99_us;
}

/* As another client would hold it. */
static void hold_hot_lock(bool held)
{
    redisContext *context = redis_connect(redis_port);
    redisReply *reply = context ? redisCommand(context, held ? "SET lock:item:1 bench NX PX 600000"
                                                             : "DEL lock:item:1")
                                : NULL;
    if (!reply || !(reply->type == REDIS_REPLY_STATUS || reply->integer == 1))
        bench_die("the hot item's lock cannot be held from outside");
    freeReplyObject(reply);
    redisFree(context);
}

/* The cold item's orders come at a fixed rate, alone and then while a child process keeps that many
 * requests waiting at the hot one: for a lock that somebody else holds, or for each other, as fast
 * as they are answered, which takes all of the machine. */
static void measure_cold_beside(const char *url, bool held, int repeat, int run_ms, json_t *all)
{
    double quiet[BENCH_REPEAT_MAX], beside[BENCH_REPEAT_MAX], ratios[BENCH_REPEAT_MAX];
    for (int round = 0; round < repeat; round++) {
        bench_wait_until_quiet(url, 0);
        bench_ruler();
        quiet[round] = cold_p99_us(url, run_ms);
        struct order_run hot = {.url = url,
                                .item = "1",
                                .connections = (int)waiters,
                                .duration_ms = run_ms + 1500,
                                .may_refuse = held};
        if (held)
            hold_hot_lock(true);
        pid_t child = bench_fork_orders(&hot);
        bench_wait_for_waiters(url, held ? waiters * 999 / 1000 : waiters / 10);
        if (held)
            bench_wait_until_quiet(url, waiters);
        beside[round] = cold_p99_us(url, run_ms);
        if (held)
            hold_hot_lock(false);
        bench_join_orders(child);
        ratios[round] = beside[round] / quiet[round];
    }
    double ratio = bench_median(ratios, repeat);
    fprintf(stderr,
            "cold item, 200 orders/s: p99 %.1f ms quiet, %.1f ms beside %ld who %s: %.1f x (%.1f "
            "to %.1f; goal 2)\n",
            bench_median(quiet, repeat) / 1e3, bench_median(beside, repeat) / 1e3, waiters,
            held ? "wait for a held lock" : "buy another item", ratio, ratios[0],
            ratios[repeat - 1]);
    json_array_append_new(all, json_pack("{s:s,s:I,s:b,s:f,s:f,s:f}", "dimension", "waiters",
                                         "size", (json_int_t)waiters, "held", held, "quiet_p99_us",
                                         bench_median(quiet, repeat), "p99_us",
                                         bench_median(beside, repeat), "ratio", ratio));
}

static void measure_cold(int repeat, int run_ms, json_t *all)
{
    const char *const flags[] = {"--redis", redis_url, "--connections", "10100", NULL};
    struct sandbox_server *service = bench_service(sandbox, "cold", flags);
    bench_put_item(service->url, "1", "redis-token", 0);
    bench_put_item(service->url, "2", "redis-token", 0);
    measure_cold_beside(service->url, true, repeat, run_ms, all);
    measure_cold_beside(service->url, false, repeat, run_ms, all);
}

/* -- command line --------------------------------------------------------------------------------
 */

/* "items=1,100": the sizes of a dimension. */
static bool take_sizes(const char *arg, bool chosen[KINDS + 1])
{
    const char *equals = strchr(arg, '=');
    for (int kind = 0; equals != NULL && kind < KINDS; kind++) {
        struct dimension *dimension = &dimensions[kind];
        if (strncmp(arg, dimension->name, (size_t)(equals - arg)) != 0 ||
            dimension->name[equals - arg] != '\0')
            continue;
        dimension->n = 0;
        for (char *at = (char *)equals; *at != '\0' && dimension->n < SIZES_MAX;)
            dimension->sizes[dimension->n++] = strtol(at + 1, &at, 10);
        chosen[kind] = true;
        return true;
    }
    if (strncmp(arg, "waiters=", 8) != 0)
        return false;
    waiters = atol(arg + 8);
    chosen[WAITERS] = true;
    return waiters > 0;
}

static FILE *open_page(void)
{
    char path[TEXT * 2];
    snprintf(path, sizeof path, "%s/bench/growth.html", bench_build());
    FILE *page = fopen(path, "w");
    if (page == NULL)
        bench_die(path);
    fprintf(page,
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>Growth</title>"
            "<style>%s</style></head><body><main><h1>Orders per second as something grows</h1>\n",
            html_style);
    return page;
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 3, run_ms = argc > 2 ? atoi(argv[2]) : 1000;
    bool chosen[KINDS + 1] = {false};
    for (int i = 3; i < argc; i++)
        if (!take_sizes(argv[i], chosen))
            bench_die("sizes are given as connections=, items=, rows=, workers= or waiters=");
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX)
        bench_die("usage: bench_growth [REPEAT 1..25] [RUN_MS] [DIMENSION=SIZE,SIZE...]...");
    struct sandbox_server *redis = bench_redis(&sandbox);
    redis_url = redis->url;
    redis_port = redis->port;
    FILE *page = open_page();
    json_t *rows = json_array();
    for (int kind = 0; kind < KINDS; kind++)
        if (argc <= 3 || chosen[kind])
            measure((enum kind)kind, repeat, run_ms, page, rows);
    if (argc <= 3 || chosen[WAITERS])
        measure_cold(repeat, run_ms, rows);
    fprintf(page, "</main></body></html>\n");
    fclose(page);
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise()));
    return 0;
}
