/*
 * The fence counter of a lock K in Redis: {K}:fence, shared by all fenced guards.
 *
 * Rule: each grant raises the counter by one. A missing counter begins at the server's clock, in
 * microseconds since 1970. A counter ends LK_REDIS_FENCE_KEEP_MS after its last grant, or after the
 * clock has passed its number, whichever is later. So a lock that is not used leaves nothing
 * behind.
 *
 * Why fences rise all the same: when a counter ends, the server's clock is past each number that
 * the counter has given, by LK_REDIS_FENCE_KEEP_MS. The next counter begins at that clock. A
 * counter that is lost with its server, evicted or deleted is followed by a higher one too, because
 * a counter follows the clock: a server grants one key less often than once per microsecond.
 *
 * Assumptions: while a counter is gone, the clock is not set back by more than
 * LK_REDIS_FENCE_KEEP_MS; and the clock is not behind the last number of a counter that was lost.
 * Otherwise a fence may be lower than an earlier one. A store that compares fences then refuses the
 * holder's write, and lk_raise_fence() with the store's number lifts the counter above it.
 *
 * The clock and the counter as one number: after S. Kulkarni and others, "Logical physical clocks",
 * OPODIS 2014.
 */
#ifndef LOCKKIT_REDIS_FENCE_H
#define LOCKKIT_REDIS_FENCE_H

#include <stdint.h>

#define LK_TEXT(x)    LK_TEXT_OF(x)
#define LK_TEXT_OF(x) #x

#define LK_REDIS_FENCE_KEEP_MS 60000

/* Lua counts in doubles, which are exact up to 2^53. The clock gets there in the year 2255. After
 * any number that lk_raise_fence() accepts, so many grants are left. */
#define LK_REDIS_FENCES_LEFT ((uint64_t)1 << 32)
#define LK_REDIS_FENCE_MAX   (((uint64_t)1 << 53) - LK_REDIS_FENCES_LEFT)

/* Lua: clock_us(), a number; keep(key of the counter, its number, that clock). Numbers are
 * written by format(): Lua itself rounds from fifteen digits on. */
#define LK_REDIS_KEEP_FENCE                                                                        \
    "local function clock_us() "                                                                   \
    "  local t = redis.call('time') "                                                              \
    "  return t[1] * 1000000 + t[2] "                                                              \
    "end "                                                                                         \
    "local function keep(key, fence, now_us) "                                                     \
    "  redis.call('pexpireat', key, string.format('%.0f', "                                        \
    "    math.max(fence, now_us) / 1000 + " LK_TEXT(LK_REDIS_FENCE_KEEP_MS) ")) "                  \
                                                                            "end "

/* Lua: next_fence(key of the counter), a number. */
#define LK_REDIS_NEXT_FENCE                                                                        \
    LK_REDIS_KEEP_FENCE                                                                            \
    "local function next_fence(key) "                                                              \
    "  local fence, now_us = redis.call('incr', key), clock_us() "                                 \
    "  if fence == 1 then "                                                                        \
    "    fence = now_us "                                                                          \
    "    redis.call('set', key, string.format('%.0f', fence)) "                                    \
    "  end "                                                                                       \
    "  keep(key, fence, now_us) "                                                                  \
    "  return fence "                                                                              \
    "end "

#endif
