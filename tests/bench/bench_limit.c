/*
 * How near the service comes to the machine: durable orders per second for one hot item, beside a
 * server that leaves out everything but the lock, the commit and HTTP (peers/bare_limit.c). Same
 * requests, same generator, same Redis, two connections counts, lanes on (a batch of orders shares
 * lock and commit; the ruler: 64 at most) and off (the textbook: one each). Medians of REPEAT
 * interleaved runs; the ratio is that of two neighbouring runs, so a slow moment hits both.
 *
 *     BUILD=build build/bench/bench_limit [REPEAT] [SECONDS] > build/bench/limit.json
 */
#include "../../loadgen/plain.h"
#include "../../loadgen/sandbox.h"
#include "../lib/bench.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEAT_MAX = 25, WAYS = 2, TEXT_MAX = SANDBOX_TEXT_MAX + 64 };

static const int connection_counts[] = {64, 256};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };
static const char *const way_names[WAYS] = {"textbook", "lanes"};

static const char *build_folder(void)
{
    return getenv("BUILD") ? getenv("BUILD") : "build";
}

/* Its URL is what it prints. It dies with us. */
static pid_t start_bare(const struct sandbox *sandbox, int redis_port, const char *batch,
                        char *ret_url, size_t size)
{
    char binary[TEXT_MAX], file[TEXT_MAX], port[16];
    int ends[2];
    snprintf(binary, sizeof binary, "%s/bench/peers/bare_limit", build_folder());
    snprintf(file, sizeof file, "%s/bare-%s.db", sandbox_dir(sandbox), batch);
    snprintf(port, sizeof port, "%d", redis_port);
    if (pipe(ends) != 0)
        bench_die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execl(binary, binary, file, port, batch, "FULL", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    if (pid < 0 || out == NULL || fgets(ret_url, (int)size, out) == NULL)
        bench_die("bare_limit does not start: was it built?");
    fclose(out);
    ret_url[strcspn(ret_url, "\n")] = '\0';
    return pid;
}

static struct sandbox_server *start_service(struct sandbox *sandbox, const char *redis, int way)
{
    char binary[TEXT_MAX], file[TEXT_MAX];
    snprintf(binary, sizeof binary, "%s/seckilld", build_folder());
    snprintf(file, sizeof file, "sqlite:%s/lanes-%d.db", sandbox_dir(sandbox), way);
    struct sandbox_server *service = sandbox_seckilld(
        sandbox, binary,
        (const char *const[]){"--db", file, "--redis", redis, "--guard", "redis-token", "--lanes",
                              way == 1 ? "on" : "off", NULL});
    struct load_target target;
    char *answer, message[256];
    if (service == NULL || load_target_parse(service->url, &target, message, sizeof message) != 0 ||
        load_fetch(&target, "PUT", "/v1/items/1", "",
                   "{\"stock\":1000000000,\"price\":1,\"guard\":\"redis-token\"}", 5000,
                   &answer) >= 300)
        bench_die("the service does not start");
    free(answer);
    return service;
}

/* Orders answered with 201 per second. */
static double run(const char *base, int connections, int seconds)
{
    static int n_runs;
    char key[64];
    snprintf(key, sizeof key, "Idempotency-Key: run-%d-{{seq}}", n_runs++);
    const char *const headers[] = {"Content-Type: application/json", key, NULL};
    const struct plain_request request = {.body = "{\"user_id\":\"u{{seq}}\",\"quantity\":1}",
                                          .headers = headers};
    struct load_options options = {.n_targets = 1,
                                   .mode = LOAD_CLOSED,
                                   .connections = connections,
                                   .threads = 1,
                                   .duration_ms = seconds * 1000,
                                   .timeout_ms = 10000};
    struct load_result result;
    char url[TEXT_MAX], message[256];
    snprintf(url, sizeof url, "%s%sv1/items/1/orders", base,
             base[strlen(base) - 1] == '/' ? "" : "/");
    if (load_target_parse(url, &options.targets[0], message, sizeof message) != 0)
        bench_die(message);
    if (plain_main(&request, &options, NULL, &result) != 0)
        bench_die("the run failed");
    uint64_t accepted = 0;
    for (size_t i = 0; i < result.series.n; i++)
        accepted += result.series.points[i].accepted;
    if (accepted != result.sent)
        bench_die("not every order was accepted");
    double per_s = (double)accepted / ((double)result.duration_us / 1e6);
    load_result_free(&result);
    return per_s;
}

static void measure(int way, const char *service, const char *bare, int connections, int repeat,
                    int seconds, json_t *rows)
{
    double ours[REPEAT_MAX], limit[REPEAT_MAX], ratio[REPEAT_MAX];
    for (int i = 0; i < repeat; i++) {
        limit[i] = run(bare, connections, seconds);
        ours[i] = run(service, connections, seconds);
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

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, seconds = argc > 2 ? atoi(argv[2]) : 2;
    struct sandbox *sandbox;
    if (repeat < 1 || repeat > REPEAT_MAX || seconds < 1)
        bench_die("usage: bench_limit [REPEAT] [SECONDS]");
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
            measure(way, service->url, bare, connection_counts[i], repeat, seconds, rows);
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    sandbox_close(sandbox);
    json_dumpf(rows, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(rows);
    return 0;
}
