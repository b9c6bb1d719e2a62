#include "bench_orders.h"
#include "bench.h"
#include "http_load_run.h"
#include "steady.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FLAGS_MAX = 32,
    TEXT_MAX = 512,
    PATIENCE_MS = 120000,
    RUN_PATIENCE_MS = 30000,
    RUN_MIN_MS = 200,
    WAITERS_PATIENCE_MS = 30000
};

/* The path is set separately: it may have placeholders, which a URL may not. */
static void aim(struct load_target *target, const char *url, const char *path)
{
    char message[256];
    if (load_target_parse(url, target, message, sizeof message) != 0)
        bench_die(message);
    snprintf(target->path, sizeof target->path, "%s", path);
}

_Noreturn static void die_of_refusals(const struct load_result *result)
{
    char text[256];
    int length = snprintf(text, sizeof text,
                          "of %llu orders %llu were accepted; not sent %llu, "
                          "broken %llu, timed out %llu",
                          (unsigned long long)result->sent, (unsigned long long)result->status[201],
                          (unsigned long long)result->ends[LOAD_NOT_SENT],
                          (unsigned long long)result->ends[LOAD_BROKEN],
                          (unsigned long long)result->ends[LOAD_TIMED_OUT]);
    for (int status = 0; status < 600 && length < (int)sizeof text - 32; status++)
        if (result->status[status] > 0 && status != 201)
            length += snprintf(text + length, sizeof text - (size_t)length, "; status %d: %llu",
                               status, (unsigned long long)result->status[status]);
    bench_die(text);
}

void bench_orders(const struct order_run *run, struct order_figures *ret)
{
    static int n_runs;
    if (run->duration_ms < RUN_MIN_MS)
        bench_die("a run takes 200 ms at least");
    char key[64], path[128];
    snprintf(key, sizeof key, "Idempotency-Key: bench-%d-%d-{{seq}}", (int)getpid(), n_runs++);
    if (run->random_keys)
        snprintf(key, sizeof key, "Idempotency-Key: {{uuid}}");
    snprintf(path, sizeof path, "/v1/items/%s/orders", run->item);
    const char *const headers[] = {"Content-Type: application/json", key, NULL};
    const struct http_load_request request = {
        .body = "{\"user_id\":\"u{{random 1 1000000000}}\",\"quantity\":1}", .headers = headers};
    struct load_options options = {.n_targets = run->second ? 2 : 1,
                                   .mode = run->per_s > 0 ? LOAD_RATE : LOAD_CLOSED,
                                   .rate = run->per_s,
                                   .connections = run->connections,
                                   .threads = run->threads > 0 ? run->threads : 1,
                                   .warmup_ms = run->warmup_ms,
                                   .duration_ms = run->warmup_ms + run->duration_ms,
                                   .timeout_ms = RUN_PATIENCE_MS,
                                   .seed = (uint64_t)n_runs};
    struct load_result result;
    aim(&options.targets[0], run->url, path);
    if (run->second)
        aim(&options.targets[1], run->second, path);
    http_load_main(&request, &options, NULL, &result); /* not 0: some were not sent, see dropped */
    if (result.sent == 0)
        bench_die("no order was sent: the message above says why");
    /* Only whole intervals within the duration count; a later answer shows in the latency. */
    uint64_t accepted = result.status[201], in_time = 0;
    size_t first = (size_t)(run->warmup_ms * 1000 / result.series.interval_us),
           points = (size_t)(run->duration_ms * 1000 / result.series.interval_us);
    for (size_t i = first; i < first + points && i < result.series.n; i++)
        in_time += result.series.points[i].accepted;
    *ret = (struct order_figures){.per_s = (double)in_time * 1e6 /
                                           ((double)points * (double)result.series.interval_us),
                                  .p50_us = (double)hist_percentile(&result.latency, 50),
                                  .p99_us = (double)hist_percentile(&result.latency, 99),
                                  .p99_9_us = (double)hist_percentile(&result.latency, 99.9),
                                  .accepted = accepted,
                                  .others = result.sent - accepted,
                                  .dropped = result.dropped};
    if (result.latency.count == 0) /* no answers: the latency is the length of the run */
        ret->p50_us = ret->p99_us = ret->p99_9_us = (double)result.duration_us;
    if (ret->others > 0 && !run->may_refuse)
        die_of_refusals(&result);
    load_result_free(&result);
}

pid_t bench_fork_orders(const struct order_run *run)
{
    pid_t child = fork();
    if (child == 0) {
        struct order_figures figures;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bench_orders(run, &figures);
        _exit(0);
    }
    if (child < 0)
        bench_die("no process");
    return child;
}

void bench_join_orders(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        bench_die("the run beside it failed");
}

struct sandbox_server *bench_redis(struct sandbox **ret)
{
    struct sandbox_server *redis = sandbox_open(ret) == 0 ? sandbox_redis(*ret, NULL) : NULL;
    if (redis == NULL)
        bench_die("no Redis");
    return redis;
}

struct sandbox_server *bench_service(struct sandbox *sandbox, const char *store,
                                     const char *const *flags)
{
    char binary[TEXT_MAX], file[TEXT_MAX];
    const char *args[FLAGS_MAX] = {"--db", file};
    int n = 2;
    snprintf(binary, sizeof binary, "%s/seckilld", bench_build());
    if (strncmp(store, "postgres:", 9) == 0)
        snprintf(file, sizeof file, "%s", store);
    else
        snprintf(file, sizeof file, "sqlite:%s/%s.db", sandbox_dir(sandbox), store);
    for (; *flags; flags++) {
        if (n >= FLAGS_MAX - 1)
            bench_die("too many flags");
        args[n++] = *flags;
    }
    struct sandbox_server *service = sandbox_seckilld(sandbox, binary, args);
    if (service == NULL)
        bench_die("the service does not start");
    return service;
}

void bench_put_item(const char *url, const char *id, const char *guard, int per_user_limit)
{
    struct load_target target;
    char path[128], body[256], *answer;
    snprintf(path, sizeof path, "/v1/items/%s", id);
    snprintf(body, sizeof body,
             "{\"stock\":1000000000,\"price\":1,\"guard\":\"%s\",\"per_user_limit\":%d}", guard,
             per_user_limit);
    aim(&target, url, path);
    int status = load_put(NULL, &target, path, "", body, PATIENCE_MS, &answer);
    free(answer);
    if (status != 200 && status != 201)
        bench_die("an item cannot be put up for sale");
}

char *bench_get(const char *url, const char *path)
{
    struct load_target target;
    char *answer;
    aim(&target, url, path);
    if (load_fetch(&target, "GET", path, "", NULL, PATIENCE_MS, &answer) != 200)
        bench_die(answer != NULL ? answer : "no memory");
    return answer;
}

int64_t bench_audit(const char *url, const char *id)
{
    char path[128] = "/v1/audit";
    if (id != NULL)
        snprintf(path, sizeof path, "/v1/audit?resource=item:%s", id);
    char *text = bench_get(url, path);
    json_t *audit = json_loads(text, 0, NULL), *resource;
    size_t i;
    int64_t sold = 0;
    if (!json_is_true(json_object_get(audit, "ok")))
        bench_die(text);
    json_array_foreach(json_object_get(audit, "resources"), i, resource) sold +=
        json_integer_value(json_object_get(resource, "sold"));
    json_decref(audit);
    free(text);
    return sold;
}

double bench_metric_of(const char *text, const char *name)
{
    const char *line = text;
    const size_t length = strlen(name);
    while (line && (strncmp(line, name, length) != 0 || line[length] != ' ')) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        bench_die(name);
    return strtod(line + length, NULL);
}

double bench_metric(const char *url, const char *name)
{
    char *text = bench_get(url, "/metrics");
    double value = bench_metric_of(text, name);
    free(text);
    return value;
}

/* Ticks since boot, summed over all cores. */
static void read_ticks(long long *ret_idle, long long *ret_all)
{
    long long ticks[8] = {0};
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL ||
        fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &ticks[0], &ticks[1], &ticks[2],
               &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != 8)
        bench_die("no /proc/stat");
    fclose(file);
    *ret_idle = ticks[3];
    *ret_all = 0;
    for (int i = 0; i < 8; i++)
        *ret_all += ticks[i];
}

void bench_wait_until_quiet(const char *url, long connections)
{
    long long idle[2], all[2];
    int64_t start_us = steady_us();
    do {
        if (steady_us() - start_us > WAITERS_PATIENCE_MS * 1000LL)
            bench_die("the machine does not come to rest");
        read_ticks(&idle[0], &all[0]);
        usleep(100000);
        read_ticks(&idle[1], &all[1]);
    } while (bench_metric(url, "seckill_http_connections_open") > (double)connections + 1 ||
             (idle[1] - idle[0]) * 10 < (all[1] - all[0]) * 9);
}

void bench_wait_for_waiters(const char *url, long n)
{
    int64_t start_us = steady_us();
    while (bench_metric(url, "seckill_http_in_flight") < (double)n) {
        if (steady_us() - start_us > WAITERS_PATIENCE_MS * 1000LL)
            bench_die("so many requests never waited at once");
        usleep(1000);
    }
}
