#include "bench.h"
#include "toy_server.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RULERS_MAX = 4096, RULER_STEPS = 10000000, NOISY_PERCENT = 20 };

static double rulers_s[RULERS_MAX];
static int n_rulers;

void bench_die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

void bench_die_of(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

const char *bench_build(void)
{
    return getenv("BUILD") ? getenv("BUILD") : "build";
}

void bench_print(json_t *all)
{
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

/* -- servers ------------------------------------------------------------------------------------
 */

/* Forks a process that dies with this one, connected by a pipe. *ret_end is the write end in the
 * child and the read end in the parent. */
static pid_t fork_beside(int *ret_end)
{
    int ends[2];
    if (pipe(ends) != 0)
        bench_die("no pipe");
    pid_t pid = fork();
    if (pid < 0)
        bench_die("no process");
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    *ret_end = ends[pid == 0];
    close(ends[pid != 0]);
    return pid;
}

pid_t bench_start_server(char *ret_url, size_t size)
{
    int end;
    pid_t pid = fork_beside(&end);
    if (pid == 0) {
        struct toy_server *server = toy_start(&(struct toy_options){0});
        if (server == NULL || dprintf(end, "%s/", toy_url(server)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    ssize_t n = read(end, ret_url, size - 1);
    if (n <= 0)
        bench_die("the server does not start");
    ret_url[n] = '\0';
    close(end);
    return pid;
}

pid_t bench_start_peer(const char *const *argv, char *ret, size_t size)
{
    int end;
    pid_t pid = fork_beside(&end);
    if (pid == 0) {
        dup2(end, STDOUT_FILENO);
        close(end);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    FILE *out = fdopen(end, "r");
    if (out == NULL)
        bench_die("no memory");
    bool wrote = fgets(ret, (int)size, out) != NULL;
    fclose(out);
    if (!wrote) {
        waitpid(pid, NULL, 0);
        return -1;
    }
    ret[strcspn(ret, "\n")] = '\0';
    return pid;
}

void bench_stop(pid_t pid)
{
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

bool bench_ask(const char *const *argv, char *ret, size_t size)
{
    pid_t pid = bench_start_peer(argv, ret, size);
    if (pid > 0)
        bench_stop(pid);
    return pid > 0;
}

/* -- noise --------------------------------------------------------------------------------------
 */

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_ruler(void)
{
    volatile uint64_t sink;
    uint64_t value = 1;
    double start_s = clock_s();
    for (int i = 0; i < RULER_STEPS; i++) /* each step needs the one before */
        value = value * 6364136223846793005U + 1442695040888963407U;
    sink = value;
    (void)sink;
    if (n_rulers < RULERS_MAX)
        rulers_s[n_rulers++] = clock_s() - start_s;
}

double bench_noise(void)
{
    if (n_rulers == 0)
        bench_die("no ruler was laid");
    qsort(rulers_s, (size_t)n_rulers, sizeof *rulers_s, compare);
    double least = rulers_s[0], high = rulers_s[n_rulers * 9 / 10];
    double spread = (high - least) / least;
    fprintf(stderr,
            "%snoise: one computation took %.1f ms at best, %.1f ms or more in the slowest tenth "
            "of %d times: %.0f %% more%s\n",
            spread * 100 > NOISY_PERCENT ? "WARNING: " : "", least * 1e3, high * 1e3, n_rulers,
            spread * 100,
            spread * 100 > NOISY_PERCENT ? ": the machine was too noisy for these figures" : "");
    return spread;
}
