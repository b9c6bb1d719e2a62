/*
 * What the load engine costs beside wrk: same server (a child process), same connections, one
 * thread, keep-alive GET; interleaved, medians. Requests per second, and the generator's own CPU
 * time (user + system) per request. Then, without a peer: how well the open model keeps its times,
 * and what an open connection costs in memory and a value in the histogram in time.
 *
 *     build/bench/bench_load [REPEAT] [SECONDS] > build/bench/load.json     (table on stderr)
 */
#include "http_load_run.h"
#include "splitmix.h"
#include "bench.h"
#include "steady.h"

#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS = 2 };

static const char *const peer_names[PEERS] = {"loadgen", "wrk"};
static const int connection_counts[] = {64, 1000};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };

struct figures {
    double rate, cpu_us; /* per second; per request */
};

static double cpu_seconds(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static struct load_options engine_options(const char *url, int connections)
{
    char message[256];
    struct load_options options = {.n_targets = 1,
                                   .mode = LOAD_CLOSED,
                                   .connections = connections,
                                   .threads = 1,
                                   .timeout_ms = 10000};
    if (load_target_parse(url, &options.targets[0], message, sizeof message) != 0)
        bench_die(message);
    return options;
}

static struct figures run_engine(const char *url, int connections, int seconds)
{
    struct load_options options = engine_options(url, connections);
    struct load_result result;
    struct rusage before, after;
    options.duration_ms = seconds * 1000;
    getrusage(RUSAGE_SELF, &before);
    if (http_load_main(&(struct http_load_request){0}, &options, NULL, &result) != 0)
        bench_die("the run failed");
    getrusage(RUSAGE_SELF, &after);
    double answered = (double)result.ends[LOAD_ANSWERED];
    struct figures figures = {.rate = answered / ((double)result.duration_us / 1e6),
                              .cpu_us =
                                  (cpu_seconds(&after) - cpu_seconds(&before)) * 1e6 / answered};
    load_result_free(&result);
    return figures;
}

static struct figures run_wrk(const char *url, int connections, int seconds)
{
    char count[16], duration[16], line[256];
    int ends[2];
    snprintf(count, sizeof count, "-c%d", connections);
    snprintf(duration, sizeof duration, "-d%ds", seconds);
    if (pipe(ends) != 0)
        bench_die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execlp("wrk", "wrk", "-t1", count, duration, url, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    double requests = 0, rate = 0;
    while (fgets(line, sizeof line, out) != NULL) {
        if (strstr(line, " requests in ") != NULL)
            requests = strtod(line, NULL);
        if (strncmp(line, "Requests/sec:", 13) == 0)
            rate = strtod(line + 13, NULL);
    }
    fclose(out);
    struct rusage usage;
    int status;
    if (wait4(pid, &status, 0, &usage) != pid || status != 0 || requests == 0)
        bench_die("wrk failed: is it installed?");
    return (struct figures){.rate = rate, .cpu_us = cpu_seconds(&usage) * 1e6 / requests};
}

static double measure(const char *url, int connections, int repeat, int seconds, json_t *rows)
{
    double rate[PEERS][BENCH_REPEAT_MAX], cpu_us[PEERS][BENCH_REPEAT_MAX];
    for (int i = 0; i < repeat; i++)
        for (int peer = 0; peer < PEERS; peer++) {
            struct figures one = peer == 0 ? run_engine(url, connections, seconds)
                                           : run_wrk(url, connections, seconds);
            rate[peer][i] = one.rate;
            cpu_us[peer][i] = one.cpu_us;
        }
    for (int peer = 0; peer < PEERS; peer++) {
        double rate_median = bench_median(rate[peer], repeat),
               cpu_median = bench_median(cpu_us[peer], repeat);
        fprintf(stderr, "%11d  %-8s %12.0f %14.2f\n", connections, peer_names[peer], rate_median,
                cpu_median);
        json_array_append_new(rows, json_pack("{s:i, s:s, s:f, s:f}", "connections", connections,
                                              "generator", peer_names[peer], "requests_per_s",
                                              rate_median, "cpu_us_per_request", cpu_median));
    }
    return bench_median(rate[0], repeat);
}

/* Plain load that remembers when each request was sent. */
struct stopwatch {
    struct load_workload plain;
    int64_t *sent_us;
};

static size_t pass_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                           size_t size)
{
    struct stopwatch *watch = ctx;
    return watch->plain.request(watch->plain.ctx, seq, target, out, size);
}

static int64_t note_sending(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct stopwatch *watch = ctx;
    watch->sent_us[seq] = answer->sent_us;
    return -1;
}

struct punctuality {
    double kept_per_s, p50_us, p99_us; /* the last two: how late requests were sent */
};

static struct punctuality run_schedule(const char *url, double rate, int seconds)
{
    uint64_t requests = (uint64_t)(rate * seconds);
    struct load_options options = engine_options(url, 64);
    struct stopwatch watch = {.sent_us = calloc(requests, sizeof *watch.sent_us)};
    struct load_workload workload = {
        .request = pass_request, .outcome = note_sending, .ctx = &watch};
    struct load_result result;
    struct http_load *plain;
    struct hist late;
    char message[256];
    options.mode = LOAD_RATE;
    options.rate = rate;
    options.requests = requests;
    if (watch.sent_us == NULL || hist_init(&late) != 0)
        bench_die("out of memory");
    if (http_load_open(&(struct http_load_request){0}, &options, &plain, message, sizeof message) !=
        0)
        bench_die(message);
    watch.plain = http_load_workload(plain);
    if (load_run(&options, &workload, &result, message, sizeof message) != 0)
        bench_die(message);
    for (uint64_t i = 0; i < requests; i++)
        hist_record(&late,
                    watch.sent_us[i] - result.started_us - (int64_t)((double)i * 1e6 / rate));
    struct punctuality ret = {.kept_per_s =
                                  (double)result.completed / ((double)result.duration_us / 1e6),
                              .p50_us = (double)hist_percentile(&late, 50),
                              .p99_us = (double)hist_percentile(&late, 99)};
    hist_free(&late);
    load_result_free(&result);
    http_load_close(plain);
    free(watch.sent_us);
    return ret;
}

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("needs two processors");
}

/* At half of what the generator can do: how late requests go out, and whether all of them do. The
 * server has a processor of its own, so that the generator's is free. */
static void measure_schedule(double rate, int repeat, int seconds, json_t *all)
{
    double kept[BENCH_REPEAT_MAX], p50[BENCH_REPEAT_MAX], p99[BENCH_REPEAT_MAX];
    char url[128];
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    run_on(1);
    pid_t server = bench_start_server(url, sizeof url);
    run_on(0);
    for (int i = 0; i < repeat; i++) {
        struct punctuality run = run_schedule(url, rate, seconds);
        kept[i] = run.kept_per_s;
        p50[i] = run.p50_us;
        p99[i] = run.p99_us;
    }
    sched_setaffinity(0, sizeof before, &before);
    bench_stop(server);
    double median = bench_median(kept, repeat), late = bench_median(p99, repeat);
    fprintf(stderr,
            "open model: %.0f/s wanted, %.0f/s kept; sent late: p50 %.0f us, p99 %.0f us "
            "(%.0f to %.0f)\n",
            rate, median, bench_median(p50, repeat), late, p99[0], p99[repeat - 1]);
    json_object_set_new(all, "open_model",
                        json_pack("{s:f, s:f, s:f, s:f}", "wanted_per_s", rate, "kept_per_s",
                                  median, "late_p50_us", bench_median(p50, repeat), "late_p99_us",
                                  late));
}

static long resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        bench_die("no /proc/self/statm");
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

struct memory {
    long highest;
};

static bool note_memory(void *ctx, const struct load_progress *now)
{
    struct memory *memory = ctx;
    long bytes = resident_bytes();
    (void)now;
    if (bytes > memory->highest)
        memory->highest = bytes;
    return true;
}

static long run_memory(const char *url, int connections)
{
    struct memory memory = {0};
    struct load_options options = engine_options(url, connections);
    struct load_result result;
    options.duration_ms = 3000;
    options.timeout_ms = 60000;
    options.progress = note_memory;
    options.progress_ctx = &memory;
    if (http_load_main(&(struct http_load_request){0}, &options, NULL, &result) != 0)
        bench_die("the run failed");
    if (result.ends[LOAD_ANSWERED] != result.sent || result.connects != (uint64_t)connections)
        bench_die("not every connection opened, or not every request was answered");
    load_result_free(&result);
    return memory.highest;
}

/* Few connections and many, so that what a run needs anyway cancels out. */
static void measure_memory(const char *url, json_t *all)
{
    enum { FEW = 10, MANY = 10000 };
    long few = run_memory(url, FEW), many = run_memory(url, MANY);
    double each = (double)(many - few) / (MANY - FEW);
    fprintf(stderr, "memory: %.0f bytes per connection (%d connections)\n", each, MANY);
    json_object_set_new(all, "bytes_per_connection", json_real(each));
}

/* One value into the histogram. */
static void measure_recording(int repeat, json_t *all)
{
    enum { VALUES = 1 << 16, ROUNDS = 200 };
    static int64_t values[VALUES];
    double ns[BENCH_REPEAT_MAX];
    struct hist hist;
    uint64_t dice = 1;
    if (hist_init(&hist) != 0)
        bench_die("out of memory");
    for (int i = 0; i < VALUES; i++)
        values[i] = (int64_t)((dice = splitmix(dice)) % 1000000);
    for (int run = 0; run < repeat; run++) {
        int64_t start_us = steady_us();
        for (int i = 0; i < ROUNDS * VALUES; i++)
            hist_record(&hist, values[i % VALUES]);
        ns[run] = (double)(steady_us() - start_us) * 1e3 / (ROUNDS * VALUES);
    }
    hist_free(&hist);
    double median = bench_median(ns, repeat);
    fprintf(stderr, "histogram: %.1f ns per value\n", median);
    json_object_set_new(all, "record_ns", json_real(median));
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, seconds = argc > 2 ? atoi(argv[2]) : 4;
    char url[128];
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || seconds < 1)
        bench_die("usage: bench_load [REPEAT] [SECONDS]");
    pid_t server = bench_start_server(url, sizeof url);
    json_t *rows = json_array();
    fprintf(stderr, "connections  generator  requests/s  CPU us/request\n");
    double capacity = 0;
    for (int i = 0; i < SIZES; i++) {
        double rate = measure(url, connection_counts[i], repeat, seconds, rows);
        if (i == 0)
            capacity = rate;
    }
    json_t *all = json_pack("{s:s, s:i, s:i, s:o}", "bench", "load", "repeat", repeat, "seconds",
                            seconds, "rows", rows);
    measure_schedule(capacity / 2, repeat, seconds, all);
    measure_memory(url, all);
    measure_recording(repeat, all);
    bench_print(all);
    bench_stop(server);
    return 0;
}
