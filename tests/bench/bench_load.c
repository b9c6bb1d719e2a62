/*
 * What the load engine costs beside wrk: same server (a child process), same connections, one
 * thread, keep-alive GET; interleaved, medians. Requests per second, and the generator's own CPU
 * time (user + system) per request.
 *
 *     build/bench/bench_load [REPEAT] [SECONDS] > build/bench/load.json     (table on stderr)
 */
#include "../../loadgen/plain.h"
#include "../lib/toy_server.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEAT_MAX = 25, PEERS = 2 };

static const char *const peer_names[PEERS] = {"loadgen", "wrk"};
static const int connection_counts[] = {64, 1000};
enum { SIZES = sizeof connection_counts / sizeof connection_counts[0] };

struct figures {
    double rate, cpu_us; /* per second; per request */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_load: %s\n", what);
    exit(1);
}

static double cpu_seconds(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* The server in a process of its own, so that its CPU time is not ours. */
static pid_t start_server(char *ret_url, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0)
        die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct toy_server *server = toy_start(&(struct toy_options){0});
        if (server == NULL || dprintf(ends[1], "%s/", toy_url(server)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    ssize_t n = pid > 0 ? read(ends[0], ret_url, size - 1) : -1;
    if (n <= 0)
        die("the server does not start");
    ret_url[n] = '\0';
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static struct figures run_engine(const char *url, int connections, int seconds)
{
    struct load_options options = {.n_targets = 1,
                                   .mode = LOAD_CLOSED,
                                   .connections = connections,
                                   .threads = 1,
                                   .duration_ms = seconds * 1000,
                                   .timeout_ms = 10000};
    struct load_result result;
    struct rusage before, after;
    char message[256];
    if (load_target_parse(url, &options.targets[0], message, sizeof message) != 0)
        die(message);
    getrusage(RUSAGE_SELF, &before);
    if (plain_main(&(struct plain_request){0}, &options, NULL, &result) != 0)
        die("the run failed");
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
        die("no pipe");
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
        die("wrk failed: is it installed?");
    return (struct figures){.rate = rate, .cpu_us = cpu_seconds(&usage) * 1e6 / requests};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void measure(const char *url, int connections, int repeat, int seconds, json_t *rows)
{
    double rate[PEERS][REPEAT_MAX], cpu_us[PEERS][REPEAT_MAX];
    for (int i = 0; i < repeat; i++)
        for (int peer = 0; peer < PEERS; peer++) {
            struct figures one = peer == 0 ? run_engine(url, connections, seconds)
                                           : run_wrk(url, connections, seconds);
            rate[peer][i] = one.rate;
            cpu_us[peer][i] = one.cpu_us;
        }
    for (int peer = 0; peer < PEERS; peer++) {
        double rate_median = median(rate[peer], repeat), cpu_median = median(cpu_us[peer], repeat);
        fprintf(stderr, "%11d  %-8s %12.0f %14.2f\n", connections, peer_names[peer], rate_median,
                cpu_median);
        json_array_append_new(rows, json_pack("{s:i, s:s, s:f, s:f}", "connections", connections,
                                              "generator", peer_names[peer], "requests_per_s",
                                              rate_median, "cpu_us_per_request", cpu_median));
    }
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, seconds = argc > 2 ? atoi(argv[2]) : 4;
    char url[128];
    if (repeat < 1 || repeat > REPEAT_MAX || seconds < 1)
        die("usage: bench_load [REPEAT] [SECONDS]");
    pid_t server = start_server(url, sizeof url);
    json_t *rows = json_array();
    fprintf(stderr, "connections  generator  requests/s  CPU us/request\n");
    for (int i = 0; i < SIZES; i++)
        measure(url, connection_counts[i], repeat, seconds, rows);
    json_t *all = json_pack("{s:s, s:i, s:i, s:o}", "bench", "load", "repeat", repeat, "seconds",
                            seconds, "rows", rows);
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    return 0;
}
