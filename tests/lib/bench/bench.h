/* Shared by the benchmarks: servers in child processes, medians, and a check that the machine was
 * quiet. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { BENCH_REPEAT_MAX = 25 };

/* Prints what (and why) on stderr, then exits with 1. */
_Noreturn void bench_die(const char *what);
_Noreturn void bench_die_of(const char *what, const char *why);
double bench_median(double *values, int n); /* sorts them */
const char *bench_build(void);              /* $BUILD, or "build" */
void bench_print(json_t *all);              /* on stdout; frees it */

/* Starts a server that answers every request with a short 200. It is a child process: its CPU time
 * is not counted as ours, and it can be stopped. Its URL ends in a slash. It dies with this
 * process. */
pid_t bench_start_server(char *ret_url, size_t size);

/* Runs a program found along PATH and waits for its first line of output, which goes to ret without
 * its newline. The program dies with this process. Returns -1 if it ends without a line. Exits only
 * if fork() or pipe() fails or memory runs out. */
pid_t bench_start_peer(const char *const *argv, char *ret, size_t size);
void bench_stop(pid_t pid); /* SIGTERM, and waits */
/* Starts a program, takes its first line as the answer, stops it. False if it wrote no line. */
bool bench_ask(const char *const *argv, char *ret, size_t size);

/* Measures the machine's noise: times a fixed computation of about 10 ms. Call it before each
 * measurement, while nothing of ours runs. Longer times mean that other programs used the CPU. */
void bench_ruler(void);
/* Prints the spread of all bench_ruler() times on stderr, as a warning beyond 20 %. Returns it:
 * (90th percentile - least) / least. The least time is taken as the undisturbed one. */
double bench_noise(void);

#endif
