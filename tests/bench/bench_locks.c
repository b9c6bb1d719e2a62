/*
 * What a lock costs: pairs of lock + unlock, and hand-overs between waiters, against private
 * servers over TCP: a Redis, five of them for redlock, a memcached. Every figure is the median of
 * REPEAT interleaved runs, so that a slow moment of a shared machine hits all rows alike; the
 * spread is printed beside it.
 *
 *     build/bench/bench_locks [REPEAT] [RUN_MS] > build/bench/locks.json     (table on stderr)
 */
#include "../../lockkit/cmd_measure.h"
#include "../../loadgen/sandbox.h"

#include <hiredis/hiredis.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEAT_MAX = 25, NODES = 5 };

struct row {
    const char *guard; /* "hiredis": a bare loop of SET NX PX and a compare-and-delete script */
    int threads;
    bool one_key; /* all threads want the same key: hand-overs */
    double rates[REPEAT_MAX], jain[REPEAT_MAX], wait_p99_us[REPEAT_MAX], commands[REPEAT_MAX];
};

static struct row rows[] = {
    {"hiredis", 1, false, {0}, {0}, {0}, {0}},
    {"redis-token", 1, false, {0}, {0}, {0}, {0}},
    {"redis-reentrant", 1, false, {0}, {0}, {0}, {0}},
    {"redis-fair", 1, false, {0}, {0}, {0}, {0}},
    {"redis-token", 16, false, {0}, {0}, {0}, {0}},
    {"redis-token", 64, false, {0}, {0}, {0}, {0}},
    {"redis-reentrant", 64, false, {0}, {0}, {0}, {0}},
    {"mutex", 8, true, {0}, {0}, {0}, {0}},
    {"redis-token", 8, true, {0}, {0}, {0}, {0}},
    {"redis-reentrant", 8, true, {0}, {0}, {0}, {0}},
    {"redis-fair", 8, true, {0}, {0}, {0}, {0}},
    {"redis-fair", 32, true, {0}, {0}, {0}, {0}},
    {"redis-readwrite", 8, true, {0}, {0}, {0}, {0}},
    {"redis-semaphore", 8, true, {0}, {0}, {0}, {0}},
    {"redlock", 1, false, {0}, {0}, {0}, {0}},
    {"redlock", 64, false, {0}, {0}, {0}, {0}},
    {"redlock", 8, true, {0}, {0}, {0}, {0}},
    {"memcached", 1, false, {0}, {0}, {0}, {0}},
    {"memcached", 64, false, {0}, {0}, {0}, {0}},
    {"memcached", 8, true, {0}, {0}, {0}, {0}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static struct sandbox_server *redis, *memcached;
static char five_nodes[NODES * SANDBOX_TEXT_MAX]; /* the first is redis */

static int64_t now_us(void)
{
    return lk_env_system()->now_us(NULL);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_locks: %s: %s\n", what, why);
    exit(1);
}

static bool start_servers(struct sandbox *sandbox)
{
    int length = 0;
    for (int i = 0; i < NODES; i++) {
        struct sandbox_server *node = sandbox_redis(sandbox, NULL);
        if (!node)
            return false;
        redis = i == 0 ? node : redis;
        length += snprintf(five_nodes + length, sizeof five_nodes - (size_t)length, "%s%s",
                           i > 0 ? "," : "", node->url);
    }
    memcached = sandbox_memcached(sandbox, NULL);
    return memcached != NULL;
}

static const char *endpoints_of(const char *guard)
{
    if (strcmp(guard, "memcached") == 0)
        return memcached->url;
    return strcmp(guard, "redlock") == 0 ? five_nodes : redis->url;
}

static void measure_row(struct row *row, int run, int64_t run_ms)
{
    struct measure_plan plan = {.guard = row->guard,
                                .endpoints = endpoints_of(row->guard),
                                .threads = row->threads,
                                .keys = row->one_key ? 1 : row->threads,
                                .duration_ms = run_ms};
    struct measure_result result;
    lk_error error;
    if (measure(&plan, &result, &error) != LK_OK)
        die(row->guard, error.message);
    if (result.failures != 0 || result.overlaps != 0)
        die(row->guard, "an acquire or release failed, or two had the lock");
    row->rates[run] = result.pairs_per_s;
    row->jain[run] = result.jain;
    row->wait_p99_us[run] = result.wait_p99_us;
    row->commands[run] = result.commands_per_pair;
}

/* The limit for one caller: the same two steps with nothing around them. */
static void measure_bare(struct row *row, int run, int port, int64_t run_ms)
{
    redisContext *context = redisConnect("127.0.0.1", port);
    if (!context || context->err)
        die("hiredis", context ? context->errstr : "no memory");
    redisReply *sha = redisCommand(context, "SCRIPT LOAD %s",
                                   "if redis.call('get',KEYS[1])==ARGV[1] then return "
                                   "redis.call('del',KEYS[1]) else return 0 end");
    if (!sha || sha->type != REDIS_REPLY_STRING)
        die("hiredis", "SCRIPT LOAD failed");
    uint64_t pairs = 0;
    int64_t start_us = now_us(), end_us = start_us + run_ms * 1000;
    while (now_us() < end_us) {
        redisReply *set = redisCommand(context, "SET lock:bench:bare token NX PX 30000");
        redisReply *del = redisCommand(context, "EVALSHA %s 1 lock:bench:bare token", sha->str);
        if (!set || !del || set->type != REDIS_REPLY_STATUS || del->integer != 1)
            die("hiredis", "SET or EVALSHA failed");
        freeReplyObject(set);
        freeReplyObject(del);
        pairs++;
    }
    row->rates[run] = (double)pairs * 1e6 / (double)(now_us() - start_us);
    row->jain[run] = 1;
    row->commands[run] = 2;
    freeReplyObject(sha);
    redisFree(context);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare_double);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5;
    int64_t run_ms = argc > 2 ? atoll(argv[2]) : 1000;
    if (repeat < 1 || repeat > REPEAT_MAX || run_ms < 1) {
        fprintf(stderr, "usage: bench_locks [REPEAT 1..%d] [RUN_MS]\n", REPEAT_MAX);
        return 2;
    }
    struct sandbox *sandbox;
    if (sandbox_open(&sandbox) != 0)
        return 1;
    if (!start_servers(sandbox))
        return 1;
    for (int run = 0; run < repeat; run++)
        for (size_t i = 0; i < ROWS; i++) {
            if (strcmp(rows[i].guard, "hiredis") == 0)
                measure_bare(&rows[i], run, redis->port, run_ms);
            else
                measure_row(&rows[i], run, run_ms);
        }
    sandbox_close(sandbox);

    json_t *all = json_array();
    fprintf(stderr, "%-16s %7s %-9s %10s %10s %10s %9s %6s %9s\n", "guard", "threads", "keys",
            "pairs/s", "min", "max", "p99 wait", "Jain", "commands");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        double rate = median(row->rates, repeat);
        double jain = median(row->jain, repeat), wait_us = median(row->wait_p99_us, repeat);
        double commands = median(row->commands, repeat);
        fprintf(stderr, "%-16s %7d %-9s %10.0f %10.0f %10.0f %6.2f ms %6.3f %9.2f\n", row->guard,
                row->threads, row->one_key ? "one" : "distinct", rate, row->rates[0],
                row->rates[repeat - 1], wait_us / 1000, jain, commands);
        json_array_append_new(
            all, json_pack("{s:s,s:i,s:b,s:f,s:f,s:f,s:f,s:f,s:f}", "guard", row->guard, "threads",
                           row->threads, "one_key", row->one_key, "pairs_per_s", rate, "min",
                           row->rates[0], "max", row->rates[repeat - 1], "wait_p99_us", wait_us,
                           "jain", jain, "commands_per_pair", commands));
    }
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
    return 0;
}
