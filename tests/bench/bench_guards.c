/*
 * What a guard costs a durable order through HTTP: one hot item with stock enough, closed model,
 * one instance, SQLite with synchronous=FULL, private Redis; each guard with lanes off (the
 * textbook: a lock, a read and a commit per order) and on. The guards without a lock stand beside
 * them, so the table answers: do you need the lock? Medians of REPEAT interleaved runs.
 *
 *     BUILD=build build/bench/bench_guards [REPEAT] [RUN_MS] [CONNECTIONS] > guards.json
 */
#include "bench.h"
#include "bench_orders.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = 1024 };

struct row {
    const char *guard;
    bool lanes;
    double rates[BENCH_REPEAT_MAX], p50_us[BENCH_REPEAT_MAX], p99_us[BENCH_REPEAT_MAX];
};

static struct row rows[] = {
    {"none", false, {0}, {0}, {0}},           {"mutex", false, {0}, {0}, {0}},
    {"mutex", true, {0}, {0}, {0}},           {"redis-set", false, {0}, {0}, {0}},
    {"redis-set", true, {0}, {0}, {0}},       {"redis-token", false, {0}, {0}, {0}},
    {"redis-token", true, {0}, {0}, {0}},     {"redis-reentrant", false, {0}, {0}, {0}},
    {"redis-reentrant", true, {0}, {0}, {0}}, {"redis-fair", false, {0}, {0}, {0}},
    {"redis-fair", true, {0}, {0}, {0}},      {"sql-row", false, {0}, {0}, {0}},
    {"sql-row", true, {0}, {0}, {0}},         {"sql-atomic", false, {0}, {0}, {0}},
    {"sql-atomic", true, {0}, {0}, {0}},      {"sql-version", false, {0}, {0}, {0}},
    {"sql-version", true, {0}, {0}, {0}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double number(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        bench_die_of("loadgen's report lacks a number", name);
    return json_number_value(value);
}

static void measure(struct row *row, int run, const char *build, const char *url, int64_t run_ms,
                    int connections)
{
    char command[COMMAND_MAX];
    snprintf(command, sizeof command,
             "%s/loadgen sale --quiet --url %s --guards %s --expect %s=%s --mode closed "
             "--connections %d --duration %lldms --stock 100000000 --json -",
             build, url, row->guard, row->guard,
             strcmp(row->guard, "none") == 0 ? "unsafe" : "safe", connections, (long long)run_ms);
    FILE *pipe = popen(command, "re");
    if (!pipe)
        bench_die_of(command, "cannot be started");
    json_error_t error;
    json_t *report = json_loadf(pipe, JSON_DISABLE_EOF_CHECK, &error);
    int status = pclose(pipe);
    if (!report || status != 0)
        bench_die_of(command, report ? "the guard is not as it claims" : error.text);
    json_t *result = json_array_get(json_object_get(report, "runs"), 0);
    json_t *latency = json_object_get(result, "latency_us");
    row->rates[run] = number(result, "accepted_per_s");
    row->p50_us[run] = number(latency, "p50");
    row->p99_us[run] = number(latency, "p99");
    json_decref(report);
}

static double median_of(const char *guard, bool lanes, int repeat)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].guard, guard) == 0 && rows[i].lanes == lanes)
            return bench_median(rows[i].rates, repeat);
    bench_die_of(guard, "is no row");
    return 0;
}

/* What a service that needs nothing but its own database could do without the lock. */
static void print_need(int repeat)
{
    static const char *const lockless[] = {"sql-atomic", "sql-version", "sql-row"};
    fprintf(stderr, "do you need the lock? beside redis-token (one order at a time; in lanes):");
    for (size_t i = 0; i < sizeof lockless / sizeof lockless[0]; i++) {
        fprintf(stderr, "%s %s %.2f x;", i > 0 ? "," : "", lockless[i],
                median_of(lockless[i], false, repeat) / median_of("redis-token", false, repeat));
        fprintf(stderr, " %.2f x",
                median_of(lockless[i], true, repeat) / median_of("redis-token", true, repeat));
    }
    fputc('\n', stderr);
}

static void print_rows(int repeat)
{
    json_t *all = json_array();
    fprintf(stderr, "%-16s %-5s %10s %10s %10s %10s %10s\n", "guard", "lanes", "orders/s", "min",
            "max", "p50", "p99");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        double rate = bench_median(row->rates, repeat);
        double p50_us = bench_median(row->p50_us, repeat),
               p99_us = bench_median(row->p99_us, repeat);
        fprintf(stderr, "%-16s %-5s %10.0f %10.0f %10.0f %7.1f ms %7.1f ms\n", row->guard,
                row->lanes ? "on" : "off", rate, row->rates[0], row->rates[repeat - 1],
                p50_us / 1000, p99_us / 1000);
        json_array_append_new(all, json_pack("{s:s,s:b,s:f,s:f,s:f,s:f,s:f}", "guard", row->guard,
                                             "lanes", row->lanes, "orders_per_s", rate, "min",
                                             row->rates[0], "max", row->rates[repeat - 1], "p50_us",
                                             p50_us, "p99_us", p99_us));
    }
    print_need(repeat);
    bench_print(json_pack("{s:o,s:f}", "rows", all, "noise", bench_noise()));
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5;
    int64_t run_ms = argc > 2 ? atoll(argv[2]) : 1000;
    int connections = argc > 3 ? atoi(argv[3]) : 64;
    const char *build = bench_build();
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 1 || connections < 1)
        bench_die("usage: bench_guards [REPEAT 1..25] [RUN_MS] [CONNECTIONS]");
    struct sandbox *sandbox;
    struct sandbox_server *redis = bench_redis(&sandbox), *services[2]; /* lanes off, on */
    for (int lanes = 0; lanes < 2; lanes++)
        services[lanes] =
            bench_service(sandbox, lanes ? "lanes-1" : "lanes-0",
                          (const char *const[]){"--redis", redis->url, "--guard", "none", "--lanes",
                                                lanes ? "on" : "off", NULL});
    for (int run = 0; run < repeat; run++)
        for (size_t i = 0; i < ROWS; i++) {
            bench_ruler();
            measure(&rows[i], run, build, services[rows[i].lanes]->url, run_ms, connections);
        }
    sandbox_close(sandbox);
    print_rows(repeat);
    return 0;
}
