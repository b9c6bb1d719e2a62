/* Looking at, and meddling with, the locks in the sandbox's Redis. */
#ifndef TEST_REDIS_H
#define TEST_REDIS_H

#include "sandbox.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* One command, hiredis format; returns its integer, 1 for a status "OK" or a non-empty string, 0
 * for nil, INT64_MIN on failure. */
int64_t redis_do(const struct sandbox_server *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Everything that Redis is told from now on. */
struct redis_watch;
struct redis_watch *redis_watch_open(const struct sandbox_server *redis);
/* Reads on until a command that contains text; false when none came within wait_ms. */
bool redis_watch_sees(struct redis_watch *watch, const char *text, int64_t wait_ms);
void redis_watch_close(struct redis_watch *watch);

#endif
