#include "bench.h"
#include "toy_server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void bench_die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
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

/* The server in a process of its own, so that its CPU time is not ours. */
pid_t bench_start_server(char *ret_url, size_t size)
{
    int ends[2];
    if (pipe(ends) != 0)
        bench_die("no pipe");
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
        bench_die("the server does not start");
    ret_url[n] = '\0';
    close(ends[0]);
    close(ends[1]);
    return pid;
}
