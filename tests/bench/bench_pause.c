/*
 * Who tells the truth about a pause? A server stands still for one second of a ten-second run at
 * 1,000 requests per second. By construction 1,000 of the 10,000 requests that were due had to
 * wait, for between 0 and 1 s, so that the true p99 is 0.9 s and the true p99.9 0.99 s. loadgen's
 * open model, wrk (closed model) and hey (rate limit per worker) report what they saw.
 *
 *     build/bench/bench_pause [REPEAT] > build/bench/pause.json     (table on stderr)
 */
#include "http_load_run.h"
#include "bench.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RATE = 1000,
    SECONDS = 10,
    PAUSE_AT_MS = 4000,
    PAUSE_MS = 1000,
    CONNECTIONS = 50,
    HEY_SAMPLES_MAX = 100000
};

struct answer {
    double p99_ms, p999_ms;
};

static void sleep_ms(int ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&left, NULL);
}

/* A child that stops the server at its time. */
static pid_t start_pauser(pid_t server)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    sleep_ms(PAUSE_AT_MS);
    kill(server, SIGSTOP);
    sleep_ms(PAUSE_MS);
    kill(server, SIGCONT);
    _exit(0);
}

static struct answer ask_loadgen(const char *url)
{
    char message[256];
    struct load_options options = {.n_targets = 1,
                                   .mode = LOAD_RATE,
                                   .rate = RATE,
                                   .connections = CONNECTIONS,
                                   .threads = 1,
                                   .duration_ms = SECONDS * 1000,
                                   .timeout_ms = 10000};
    struct load_result result;
    if (load_target_parse(url, &options.targets[0], message, sizeof message) != 0)
        bench_die(message);
    if (http_load_main(&(struct http_load_request){0}, &options, NULL, &result) != 0)
        bench_die("the run failed");
    if (result.latency.count + result.dropped != RATE * SECONDS)
        bench_die("not every request that was due is accounted for");
    struct answer answer = {(double)hist_percentile(&result.latency, 99) / 1000,
                            (double)hist_percentile(&result.latency, 99.9) / 1000};
    load_result_free(&result);
    return answer;
}

/* The output of a program, line by line. */
static FILE *start_program(const char *const *args, pid_t *ret_pid)
{
    int ends[2];
    if (pipe(ends) != 0)
        bench_die("no pipe");
    *ret_pid = fork();
    if (*ret_pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execvp(args[0], (char *const *)args);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

static void end_program(FILE *out, pid_t pid)
{
    int status;
    fclose(out);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("wrk or hey failed: are they installed?");
}

static struct answer ask_wrk(const char *url)
{
    static const char script[] = "function done(s, l, r) print(string.format('truth %f %f', "
                                 "l:percentile(99), l:percentile(99.9))) end\n";
    char path[] = "/tmp/bench-pause-XXXXXX", line[256], duration[16], connections[16];
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, script, sizeof script - 1) != sizeof script - 1)
        bench_die("no temporary file");
    close(fd);
    snprintf(duration, sizeof duration, "-d%ds", SECONDS);
    snprintf(connections, sizeof connections, "-c%d", CONNECTIONS);
    const char *args[] = {"wrk", "-t1", connections, duration, "-s", path, url, NULL};
    pid_t pid;
    FILE *out = start_program(args, &pid);
    struct answer answer = {NAN, NAN};
    while (fgets(line, sizeof line, out) != NULL)
        sscanf(line, "truth %lf %lf", &answer.p99_ms, &answer.p999_ms);
    end_program(out, pid);
    unlink(path);
    return (struct answer){answer.p99_ms / 1000, answer.p999_ms / 1000};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each request's response time, from its CSV. */
static struct answer ask_hey(const char *url)
{
    static double samples[HEY_SAMPLES_MAX];
    char line[512], duration[16], workers[16], each[16];
    snprintf(duration, sizeof duration, "%ds", SECONDS);
    snprintf(workers, sizeof workers, "%d", CONNECTIONS);
    snprintf(each, sizeof each, "%d", RATE / CONNECTIONS);
    const char *args[] = {"hey", "-z", duration, "-c", workers, "-q", each, "-o", "csv", url, NULL};
    pid_t pid;
    size_t n = 0;
    FILE *out = start_program(args, &pid);
    while (fgets(line, sizeof line, out) != NULL) {
        double seconds;
        if (n < HEY_SAMPLES_MAX && sscanf(line, "%lf,", &seconds) == 1)
            samples[n++] = seconds * 1000;
    }
    end_program(out, pid);
    if (n < 1000)
        bench_die("hey gave no response times");
    qsort(samples, n, sizeof *samples, compare);
    return (struct answer){samples[n * 99 / 100], samples[n * 999 / 1000]};
}

static const struct {
    const char *name;
    struct answer (*ask)(const char *url);
} generators[] = {{"loadgen", ask_loadgen}, {"wrk", ask_wrk}, {"hey", ask_hey}};
enum { GENERATORS = sizeof generators / sizeof *generators };

int main(int argc, char **argv)
{
    static double p99[GENERATORS][BENCH_REPEAT_MAX], p999[GENERATORS][BENCH_REPEAT_MAX];
    const double true_p99 = PAUSE_MS * 0.9, true_p999 = PAUSE_MS * 0.99;
    int repeat = argc > 1 ? atoi(argv[1]) : 5;
    char url[128];
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX)
        bench_die("usage: bench_pause [REPEAT]");
    pid_t server = bench_start_server(url, sizeof url);
    for (int i = 0; i < repeat; i++)
        for (int g = 0; g < GENERATORS; g++) {
            pid_t pauser = start_pauser(server);
            struct answer answer = generators[g].ask(url);
            p99[g][i] = answer.p99_ms;
            p999[g][i] = answer.p999_ms;
            waitpid(pauser, NULL, 0);
        }
    json_t *rows = json_array();
    fprintf(stderr, "%-10s %10s %10s %16s\n", "generator", "p99", "p99.9", "p99.9 off by");
    fprintf(stderr, "%-10s %7.0f ms %7.0f ms\n", "(true)", true_p99, true_p999);
    for (int g = 0; g < GENERATORS; g++) {
        double a = bench_median(p99[g], repeat), b = bench_median(p999[g], repeat);
        fprintf(stderr, "%-10s %7.0f ms %7.0f ms %14.1f %%\n", generators[g].name, a, b,
                100 * (b - true_p999) / true_p999);
        json_array_append_new(rows, json_pack("{s:s, s:f, s:f}", "generator", generators[g].name,
                                              "p99_ms", a, "p99_9_ms", b));
    }
    json_t *all = json_pack("{s:s, s:i, s:f, s:f, s:o}", "bench", "pause", "repeat", repeat,
                            "true_p99_ms", true_p99, "true_p99_9_ms", true_p999, "rows", rows);
    bench_print(all);
    bench_stop(server);
    return 0;
}
