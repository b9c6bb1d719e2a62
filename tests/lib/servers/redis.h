/* Reads and changes the locks in the sandbox's Redis. */
#ifndef TEST_REDIS_H
#define TEST_REDIS_H

#include "sandbox.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* A fence that no server's clock reaches before the year 2096. Grants above the clock raise the
 * counter by one each (redis_fence.h), so a test that needs to know how many there were, or needs
 * fences that the clock has not passed, begins here. */
#define REDIS_FENCE_AHEAD UINT64_C(4000000000000000)

/* A connection to the port of a Redis or Sentinel of the sandbox, logged in. NULL: it failed. Free
 * it with redisFree(). */
struct redisContext *redis_connect(int port);

/* One command in hiredis format. Returns its integer; 1 for a status "OK" or a non-empty string; 0
 * for nil; INT64_MIN on failure. */
int64_t redis_do(const struct sandbox_server *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads every command that Redis receives after redis_watch_open(). */
struct redis_watch;
struct redis_watch *redis_watch_open(const struct sandbox_server *redis);
/* Reads until a command contains text; false if none came within wait_ms. */
bool redis_watch_sees(struct redis_watch *watch, const char *text, int64_t wait_ms);
void redis_watch_close(struct redis_watch *watch);

#endif
