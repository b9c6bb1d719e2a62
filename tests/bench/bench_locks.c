/*
 * What a lock costs: pairs of lock + unlock on keys of one's own, and hand-overs between waiters of
 * one key, against private servers over TCP; beside what Redis can do with nothing around it
 * (peers/bare_redis.c) and what other people's clients do (ioredis + redlock, redis-py; as they
 * come and tuned). Medians of REPEAT interleaved runs. "p99/share": the 99th percentile of the
 * waits over the fair share, the time in which each waiter has had one turn; who starves waits
 * seldom and long, and shows in Jain's index. "sent": commands per pair, as the client counts them;
 * "served": as Redis does, those inside scripts as well.
 *
 *     BUILD=build build/bench/bench_locks [REPEAT] [RUN_MS] > build/bench/locks.json
 *
 * rueidis, redsync and Redisson are not packaged in Debian 12 and so are not here.
 */
#include "cmd_measure.h"
#include "sandbox.h"
#include "bench.h"
#include "redis.h"

#include <hiredis/hiredis.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 5, TEXT_MAX = 512 };

enum kind { GUARD, BARE, NODE, PYTHON };

struct row {
    const char *name; /* GUARD: of the guard */
    int threads;
    bool one_key; /* all want the same key: hand-overs */
    enum kind kind;
    bool missing; /* it does not run on this machine */
    bool asleep;  /* GUARD: who waits for an answer sleeps at once */
    int line;     /* GUARD: -1: the client's waiters stand in line; N: and hand on N times */
    int setting;  /* BARE: pairs in flight per connection; NODE, PYTHON: ms between tries */
    double rates[BENCH_REPEAT_MAX], jain[BENCH_REPEAT_MAX], p99_us[BENCH_REPEAT_MAX],
        sent[BENCH_REPEAT_MAX], served[BENCH_REPEAT_MAX];
};

static struct row rows[] = {
    {.name = "bare hiredis", .threads = 1, .kind = BARE, .setting = 1},
    {.name = "redis-token", .threads = 1},
    {.name = "redis-token", .threads = 1, .asleep = true},
    {.name = "redis-reentrant", .threads = 1},
    {.name = "redis-fair", .threads = 1},
    {.name = "redis-token", .threads = 16},
    {.name = "ioredis redlock", .threads = 16, .kind = NODE},
    {.name = "redis-py", .threads = 16, .kind = PYTHON},
    {.name = "bare, pipelined", .threads = 4, .kind = BARE, .setting = 64},
    {.name = "redis-token", .threads = 64},
    {.name = "redis-token", .threads = 64, .asleep = true},
    {.name = "redis-reentrant", .threads = 64},
    {.name = "redis-fair", .threads = 64},
    {.name = "redlock", .threads = 1},
    {.name = "redlock", .threads = 64},
    {.name = "memcached", .threads = 1},
    {.name = "memcached", .threads = 64},
    {.name = "mutex", .threads = 8, .one_key = true},
    {.name = "redis-token", .threads = 8, .one_key = true},
    {.name = "redis-token", .threads = 8, .one_key = true, .line = -1},
    {.name = "redis-token", .threads = 8, .one_key = true, .line = 1000},
    {.name = "redis-token", .threads = 8, .one_key = true, .line = 5000},
    {.name = "redis-reentrant", .threads = 8, .one_key = true},
    {.name = "redis-fair", .threads = 8, .one_key = true},
    {.name = "redis-fair", .threads = 8, .one_key = true, .asleep = true},
    {.name = "redis-readwrite", .threads = 8, .one_key = true},
    {.name = "redis-semaphore", .threads = 8, .one_key = true},
    {.name = "redlock", .threads = 8, .one_key = true},
    {.name = "memcached", .threads = 8, .one_key = true},
    {.name = "ioredis redlock", .threads = 8, .one_key = true, .kind = NODE},
    {.name = "ioredis, 10 ms", .threads = 8, .one_key = true, .kind = NODE, .setting = 10},
    {.name = "redis-py", .threads = 8, .one_key = true, .kind = PYTHON},
    {.name = "redis-py, 5 ms", .threads = 8, .one_key = true, .kind = PYTHON, .setting = 5},
    {.name = "redis-token", .threads = 32, .one_key = true, .line = 5000},
    {.name = "redis-fair", .threads = 32, .one_key = true},
    {.name = "ioredis, 10 ms", .threads = 32, .one_key = true, .kind = NODE, .setting = 10},
    {.name = "redis-py, 10 ms", .threads = 32, .one_key = true, .kind = PYTHON, .setting = 10},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* What was asked for, as ratios of neighbouring runs: row number over row number. */
static const struct goal {
    const char *what;
    struct {
        const char *name;
        int threads;
    } above, below;
    double goal;
} goals[] = {
    {"one caller beside bare hiredis", {"redis-token", 1}, {"bare hiredis", 1}, 0.95},
    {"64 callers beside what Redis can do, pipelined",
     {"redis-token", 64},
     {"bare, pipelined", 4},
     0.5},
    {"64 callers beside ioredis redlock with 16", {"redis-token", 64}, {"ioredis redlock", 16}, 3},
    {"64 callers beside redis-py with 16", {"redis-token", 64}, {"redis-py", 16}, 3},
};

static bool any_missing; /* said in the table, and by the exit status */
static struct sandbox_server *redis, *memcached;
static char five_nodes[NODES * SANDBOX_TEXT_MAX]; /* the first is redis */

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

/* Commands that the (first) Redis has executed since it started. */
static double commands_served(void)
{
    redisContext *context = redis_connect(redis->port);
    redisReply *reply = context ? redisCommand(context, "INFO stats") : NULL;
    const char *line = reply ? strstr(reply->str, "total_commands_processed:") : NULL;
    if (!line)
        bench_die_of("INFO stats", "no answer");
    double n = strtod(strchr(line, ':') + 1, NULL);
    freeReplyObject(reply);
    redisFree(context);
    return n;
}

static void measure_guard(struct row *row, int run, int run_ms)
{
    struct measure_plan plan = {.guard = row->name,
                                .endpoints = endpoints_of(row->name),
                                .threads = row->threads,
                                .keys = row->one_key ? 1 : row->threads,
                                .duration_ms = run_ms,
                                .local_queue = row->line != 0,
                                .local_handovers = row->line > 0 ? row->line : 0,
                                .spin_us = row->asleep ? -1 : 0};
    struct measure_result result;
    lk_error error;
    double before = commands_served();
    if (measure(&plan, &result, &error) != LK_OK)
        bench_die_of(row->name, error.message);
    if (result.failures != 0 || result.overlaps != 0)
        bench_die_of(row->name, "an acquire or release failed, or two had the lock");
    row->rates[run] = result.pairs_per_s;
    row->jain[run] = result.jain;
    row->p99_us[run] = result.wait_p99_us;
    row->sent[run] = result.commands_per_pair;
    row->served[run] = (commands_served() - before) / (double)result.pairs;
}

/* A peer measures itself and prints what it found. */
static void measure_peer(struct row *row, int run, int run_ms)
{
    char program[TEXT_MAX], port[16], threads[16], duration[16], setting[16], line[TEXT_MAX];
    snprintf(program, sizeof program, "%s/bench/peers/%s", bench_build(),
             row->kind == BARE   ? "bare_redis"
             : row->kind == NODE ? "node/lock_load.js"
                                 : "redis_py_lock.py");
    snprintf(port, sizeof port, "%d", redis->port);
    snprintf(threads, sizeof threads, "%d", row->threads);
    snprintf(duration, sizeof duration, "%d", run_ms);
    snprintf(setting, sizeof setting, "%d", row->setting);
    const char *keys = row->one_key ? "one" : "own";
    const char *const bare[] = {program, port, threads, setting, duration, NULL};
    const char *const others[] = {row->kind == NODE ? "node" : "/usr/bin/python3",
                                  program,
                                  port,
                                  threads,
                                  keys,
                                  duration,
                                  setting,
                                  NULL};
    bool runs = bench_ask(row->kind == BARE ? bare : others, line, sizeof line);
    json_t *found = runs ? json_loads(line, 0, NULL) : NULL;
    row->missing = found == NULL;
    row->rates[run] = json_number_value(json_object_get(found, "pairs_per_s"));
    row->jain[run] = json_number_value(json_object_get(found, "jain"));
    row->p99_us[run] = json_number_value(json_object_get(found, "wait_p99_us"));
    json_decref(found);
}

/* Two processes with eight waiters each on one key: what share of the grants the first one got. */
static struct contest {
    const char *guard, *flags;
    double rates[BENCH_REPEAT_MAX], shares[BENCH_REPEAT_MAX];
} contests[] = {
    {.guard = "redis-fair", .flags = ""},
    {.guard = "redis-token", .flags = "--handovers 1000"},
    {.guard = "redis-token", .flags = "--handovers 5000"},
};
enum { CONTESTS = sizeof contests / sizeof contests[0] };

static void measure_contest(struct contest *contest, int run, int run_ms)
{
    char command[TEXT_MAX];
    FILE *pipes[2];
    double pairs[2];
    snprintf(command, sizeof command,
             "%s/lockkit bench -g %s -e %s %s --threads 8 --keys one --duration %.2f --json",
             bench_build(), contest->guard, redis->url, contest->flags, run_ms / 1e3);
    for (int i = 0; i < 2; i++)
        if (!(pipes[i] = popen(command, "re")))
            bench_die_of(command, "cannot be started");
    for (int i = 0; i < 2; i++) {
        json_t *found = json_loadf(pipes[i], JSON_DISABLE_EOF_CHECK, NULL);
        if (pclose(pipes[i]) != 0 || !found)
            bench_die_of(command, "a lock was refused or lost");
        pairs[i] = json_number_value(json_object_get(found, "pairs_per_s"));
        json_decref(found);
    }
    contest->rates[run] = pairs[0] + pairs[1];
    contest->shares[run] = pairs[0] / contest->rates[run];
}

static json_t *report_contests(int repeat)
{
    json_t *all = json_array();
    for (size_t i = 0; i < CONTESTS; i++) {
        struct contest *contest = &contests[i];
        double share = bench_median(contest->shares, repeat),
               rate = bench_median(contest->rates, repeat);
        fprintf(stderr,
                "%s%s%s, 2 processes with 8 waiters each: %.0f pairs/s, share of the first %.2f "
                "(%.2f to %.2f)\n",
                contest->guard, contest->flags[0] ? " " : "", contest->flags, rate, share,
                contest->shares[0], contest->shares[repeat - 1]);
        json_array_append_new(all, json_pack("{s:s,s:s,s:f,s:f}", "guard", contest->guard, "flags",
                                             contest->flags, "pairs_per_s", rate, "share", share));
    }
    return all;
}

static json_t *report_rows(int repeat)
{
    json_t *all = json_array();
    fprintf(stderr, "%-28s %7s %-4s %9s %19s %9s %6s %10s %5s %6s\n", "lock", "callers", "keys",
            "pairs/s", "lowest to highest", "p99 wait", "Jain", "p99/share", "sent", "served");
    for (size_t i = 0; i < ROWS; i++) {
        struct row *row = &rows[i];
        if (row->missing) {
            fprintf(stderr, "%-28s %7d %-4s does not run: was everything installed?\n", row->name,
                    row->threads, row->one_key ? "one" : "own");
            any_missing = true;
            continue;
        }
        double rate = bench_median(row->rates, repeat), jain = bench_median(row->jain, repeat),
               p99_us = bench_median(row->p99_us, repeat), sent = bench_median(row->sent, repeat),
               served = bench_median(row->served, repeat);
        double share_us = row->threads / rate * 1e6;
        char label[64];
        if (row->line > 0)
            snprintf(label, sizeof label, "%s, handed on %d", row->name, row->line);
        else
            snprintf(label, sizeof label, "%s%s", row->name,
                     row->asleep     ? ", asleep"
                     : row->line < 0 ? ", in line"
                                     : "");
        fprintf(stderr, "%-28s %7d %-4s %9.0f %8.0f to %7.0f", label, row->threads,
                row->one_key ? "one" : "own", rate, row->rates[0], row->rates[repeat - 1]);
        if (row->kind != BARE)
            fprintf(stderr, " %6.2f ms %6.3f", p99_us / 1e3, jain);
        if (row->one_key)
            fprintf(stderr, " %10.1f", p99_us / share_us);
        if (row->kind == GUARD)
            fprintf(stderr, "%*s %5.2f %6.2f", row->one_key ? 0 : 11, "", sent, served);
        fputc('\n', stderr);
        json_array_append_new(
            all, json_pack("{s:s,s:i,s:b,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "lock", label,
                           "callers", row->threads, "one_key", row->one_key, "pairs_per_s", rate,
                           "min", row->rates[0], "max", row->rates[repeat - 1], "wait_p99_us",
                           p99_us, "p99_over_share", p99_us / share_us, "jain", jain,
                           "commands_sent", sent, "commands_served", served));
    }
    return all;
}

static const struct row *row_of(const char *name, int threads)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0 && rows[i].threads == threads && !rows[i].one_key)
            return &rows[i];
    bench_die_of(name, "is no row");
    return NULL;
}

/* Before the rows are sorted: neighbours in time belong together. */
static json_t *report_goals(int repeat)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        const struct row *above = row_of(goals[i].above.name, goals[i].above.threads),
                         *below = row_of(goals[i].below.name, goals[i].below.threads);
        double ratios[BENCH_REPEAT_MAX];
        if (above->missing || below->missing)
            continue;
        for (int run = 0; run < repeat; run++)
            ratios[run] = above->rates[run] / below->rates[run];
        double ratio = bench_median(ratios, repeat);
        fprintf(stderr, "%-48s %.2f (%.2f to %.2f; goal %.2f)\n", goals[i].what, ratio, ratios[0],
                ratios[repeat - 1], goals[i].goal);
        json_object_set_new(all, goals[i].what, json_real(ratio));
    }
    return all;
}

static void print_versions(void)
{
    char script[TEXT_MAX], node[TEXT_MAX] = "no node", python[TEXT_MAX] = "no redis-py";
    snprintf(script, sizeof script, "%s/bench/peers/node/lock_load.js", bench_build());
    bench_ask((const char *const[]){"node", script, "versions", NULL}, node, sizeof node);
    snprintf(script, sizeof script, "%s/bench/peers/redis_py_lock.py", bench_build());
    bench_ask((const char *const[]){"/usr/bin/python3", script, "versions", NULL}, python,
              sizeof python);
    fprintf(stderr, "beside %s; %s\n", node, python);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 500;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 10)
        bench_die("usage: bench_locks [REPEAT 1..25] [RUN_MS]");
    if (sandbox_open(&sandbox) != 0 || !start_servers(sandbox))
        return 1;
    print_versions();
    for (int run = 0; run < repeat; run++) {
        for (size_t i = 0; i < ROWS; i++) {
            if (rows[i].missing)
                continue;
            bench_ruler();
            (rows[i].kind == GUARD ? measure_guard : measure_peer)(&rows[i], run, run_ms);
        }
        for (size_t i = 0; i < CONTESTS; i++)
            measure_contest(&contests[i], run, run_ms);
    }
    sandbox_close(sandbox);
    json_t *ratios = report_goals(repeat);
    json_t *shared = report_contests(repeat);
    json_t *table = report_rows(repeat);
    bench_print(json_pack("{s:o,s:o,s:o,s:f}", "rows", table, "ratios", ratios, "two_processes",
                          shared, "noise", bench_noise()));
    return any_missing;
}
