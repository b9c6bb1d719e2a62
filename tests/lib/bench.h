/* What the benchmarks share. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include <stddef.h>
#include <sys/types.h>

/* Says what and exits with 1. */
_Noreturn void bench_die(const char *what);
double bench_median(double *values, int n); /* sorts them */

/* A server that answers every request with a short 200, in a process of its own, so that its CPU
 * time is not ours and it can be stopped. Its URL ends in a slash. It dies with us. */
pid_t bench_start_server(char *ret_url, size_t size);

#endif
