/* Whose allocations liballocs.so counts: the order of the counters in its file. */
#ifndef BENCH_ALLOCS_H
#define BENCH_ALLOCS_H

#include <stdint.h>

enum { ALLOCS_OWNERS = 7 };

/* By a part of the object's file name. */
static const char *const allocs_owners[ALLOCS_OWNERS] = {
    "the service", "libmicrohttpd", "libsqlite3", "libhiredis", "libjansson", "libc.so", "others"};

#endif
