/* What the benchmarks share: servers beside us, medians, and whether the machine was quiet. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { BENCH_REPEAT_MAX = 25 };

/* Says what (and why) and exits with 1. */
_Noreturn void bench_die(const char *what);
_Noreturn void bench_die_of(const char *what, const char *why);
double bench_median(double *values, int n); /* sorts them */
const char *bench_build(void);              /* $BUILD, or "build" */
void bench_print(json_t *all);              /* on stdout; frees it */

/* A server that answers every request with a short 200, in a process of its own, so that its CPU
 * time is not ours and it can be stopped. Its URL ends in a slash. It dies with us. */
pid_t bench_start_server(char *ret_url, size_t size);

/* Runs a program (found along PATH) and returns once it has written its first line, which is *ret
 * without the line's end. It dies with us. Returns -1 if it ends before; dies only if nothing can
 * be started. */
pid_t bench_start_peer(const char *const *argv, char *ret, size_t size);
void bench_stop(pid_t pid); /* SIGTERM, and waits */
/* Both, for a program whose first line is its answer. False when it gave none. */
bool bench_ask(const char *const *argv, char *ret, size_t size);

/* The ruler of the machine's noise: a fixed piece of work, about 10 ms, to be done before each
 * measurement while nothing of ours runs. Its times tell what others took from us meanwhile. */
void bench_ruler(void);
/* Says on stderr how the rulers differed so far, as a warning beyond 20 %. Returns the spread,
 * (90th percentile - least) / least: of the same work the least time is the undisturbed one. */
double bench_noise(void);

#endif
