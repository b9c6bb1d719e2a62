/*
 * How near the service comes to the machine: durable orders per second for one hot item, beside a
 * server that leaves out everything but the lock, the commit and HTTP (peers/bare_limit.c). Same
 * requests, same generator, same Redis, two connection counts, lanes on (a batch of orders shares
 * lock and commit; the ruler: 64 at most) and off (the textbook: one each), each commit flushed or
 * not. A second ruler also writes the rows that the service's books have of an order. "random" is
 * the worst case for the books: keys are UUIDs, and nobody may have more than a few pieces of the
 * item, so an order has its entries on a page of its own in the index of keys (the rulers', too)
 * and in that of what each user has (which they have not). Medians of REPEAT interleaved runs; a
 * ratio is that of two neighbouring runs, so a slow moment hits both. "CPU" is what the process
 * itself takes per order, generator and Redis apart: it suffers least from a busy machine. Then
 * orders that come at 10,000 per second whatever becomes of them, with their latency from the
 * moment they are due.
 *
 *     BUILD=build build/bench/bench_limit [REPEAT] [RUN_MS] > build/bench/limit.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT_MAX = 512, PER_USER_LIMIT = 5, OPEN_PER_S = 10000, OPEN_CONNECTIONS = 256 };

static const int connection_counts[] = {64, 256};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };
static const struct way {
    const char *name, *lanes, *sync, *bare_sync, *batch;
    bool random; /* keys, and users who are counted */
    bool open;   /* orders that come at a fixed rate, too */
} ways[] = {
    {"textbook", "off", "full", "FULL", "1", false, false},
    {"textbook", "off", "normal", "NORMAL", "1", false, false},
    {"random", "on", "full", "FULL", "64", true, false},
    {"lanes", "on", "full", "FULL", "64", false, true},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* Who is measured: the service, and its rulers. */
enum who { SERVICE, BARE, BOOKS, WHO };
static const char *const who_names[WHO] = {"service", "bare", "books"};

struct server {
    pid_t pid;
    char url[SANDBOX_TEXT_MAX];
};

struct figures {
    double per_s, cpu_us; /* orders answered with 201; CPU time per order */
};

/* Its URL is what it prints. */
static void start_ruler(const struct sandbox *sandbox, int redis_port, const struct way *way,
                        const char *kind, struct server *ret)
{
    char binary[TEXT_MAX], file[TEXT_MAX], port[16];
    snprintf(binary, sizeof binary, "%s/bench/peers/bare_limit", bench_build());
    snprintf(file, sizeof file, "%s/%s-%s-%s.db", sandbox_dir(sandbox), kind, way->name, way->sync);
    snprintf(port, sizeof port, "%d", redis_port);
    const char *const argv[] = {binary, file, port, way->batch, way->bare_sync, kind, NULL};
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
    bench_put_item(service->url, "1", "redis-token", way->random ? PER_USER_LIMIT : 0);
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

static struct figures run(const struct server *server, const struct way *way, int connections,
                          int run_ms)
{
    struct order_figures orders;
    bench_ruler();
    double before_us = cpu_us(server->pid);
    bench_orders(&(struct order_run){.url = server->url,
                                     .item = "1",
                                     .connections = connections,
                                     .duration_ms = run_ms,
                                     .random_keys = way->random},
                 &orders);
    return (struct figures){orders.per_s,
                            (cpu_us(server->pid) - before_us) / (double)orders.accepted};
}

static void measure(const struct way *way, const struct server *servers, int connections,
                    int repeat, int run_ms, json_t *rows)
{
    double per_s[WHO][BENCH_REPEAT_MAX], cpu[WHO][BENCH_REPEAT_MAX], ratio[WHO][BENCH_REPEAT_MAX];
    for (int i = 0; i < repeat; i++) {
        for (int who = 0; who < WHO; who++) {
            struct figures figures = run(&servers[who], way, connections, run_ms);
            per_s[who][i] = figures.per_s;
            cpu[who][i] = figures.cpu_us;
            ratio[who][i] = per_s[SERVICE][i] / figures.per_s;
        }
    }
    fprintf(stderr, "%-9s %-6s %11d", way->name, way->sync, connections);
    for (int who = 0; who < WHO; who++) {
        double median = bench_median(per_s[who], repeat), us = bench_median(cpu[who], repeat),
               share = bench_median(ratio[who], repeat);
        if (who == SERVICE)
            fprintf(stderr, " %9.0f %5.1f us", median, us);
        else
            fprintf(stderr, " %9.0f %5.1f us %5.2f (%.2f to %.2f)", median, us, share,
                    ratio[who][0], ratio[who][repeat - 1]);
        json_array_append_new(rows, json_pack("{s:s,s:s,s:i,s:s,s:f,s:f,s:f}", "way", way->name,
                                              "sync", way->sync, "connections", connections, "who",
                                              who_names[who], "orders_per_s", median, "cpu_us", us,
                                              "ratio", share));
    }
    fputc('\n', stderr);
}

/* Open model: orders come at a fixed rate, and wait from the moment they are due. */
static void measure_open(const struct server *servers, int repeat, int run_ms, json_t *rows)
{
    double p99[WHO][BENCH_REPEAT_MAX], p99_9[WHO][BENCH_REPEAT_MAX];
    uint64_t undone[WHO] = {0}; /* refused, or not even sent */
    for (int i = 0; i < repeat; i++)
        for (int who = 0; who < WHO; who++) {
            struct order_figures figures;
            bench_ruler();
            bench_orders(&(struct order_run){.url = servers[who].url,
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
    for (int who = 0; who < WHO; who++) {
        double high = bench_median(p99[who], repeat), highest = bench_median(p99_9[who], repeat);
        fprintf(stderr,
                "open model, %d orders/s, %-7s: p99 %4.1f ms (%.1f to %.1f), p99.9 %4.1f ms "
                "(%.1f to %.1f), %llu refused or not sent%s\n",
                OPEN_PER_S, who_names[who], high / 1e3, p99[who][0] / 1e3,
                p99[who][repeat - 1] / 1e3, highest / 1e3, p99_9[who][0] / 1e3,
                p99_9[who][repeat - 1] / 1e3, (unsigned long long)undone[who],
                who == SERVICE ? " (goals 5 and 20 ms)" : "");
        json_array_append_new(rows,
                              json_pack("{s:s,s:s,s:i,s:f,s:f,s:I}", "way", "open", "who",
                                        who_names[who], "orders_per_s", OPEN_PER_S, "p99_us", high,
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
    fprintf(stderr, "%28s  orders/s   (CPU)  %9s   (CPU) ratio %14s %9s   (CPU) ratio\n",
            "mode      sync   connections", "bare", "", "with books");
    for (int i = 0; i < WAYS; i++) {
        struct server servers[WHO];
        start_service(sandbox, redis->url, &ways[i], &servers[SERVICE]);
        for (int who = BARE; who < WHO; who++)
            start_ruler(sandbox, redis->port, &ways[i], who_names[who], &servers[who]);
        for (int size = 0; size < SIZES; size++)
            measure(&ways[i], servers, connection_counts[size], repeat, run_ms, rows);
        if (ways[i].open)
            measure_open(servers, repeat, run_ms, rows);
        for (int who = BARE; who < WHO; who++)
            bench_stop(servers[who].pid);
    }
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "rows", rows, "noise", bench_noise()));
    return 0;
}
