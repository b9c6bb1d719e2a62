/*
 * The fence counter of a lock K in Redis: {K}:fence, shared by all fenced guards.
 *
 * Rule: a grant's fence is the counter plus one, or the server's clock in microseconds since 1970,
 * whichever is larger; the counter becomes that number. A counter ends LK_REDIS_FENCE_KEEP_MS after
 * its last grant, or after the clock has passed its number, whichever is later. So a lock that is
 * not used leaves nothing behind.
 *
 * Invariant: the fences of one key rise, whatever becomes of the counter: it ends, is evicted or
 * deleted, is lost with its server, or comes back older than it was (a snapshot, a cut log, a
 * replica that is promoted).
 *
 * Why: while the counter is the newest one, its number plus one is above all earlier fences. When
 * it is not, the clock is: it has passed the last fence. For that fence was the clock at its grant,
 * unless the counter ran ahead of the clock. It does so if it was raised (lk_raise_fence()), if the
 * clock was set back, or if one key is granted more often than once per microsecond.
 *
 * Assumptions: the clocks of the servers agree within the outage: a server that goes on with a
 * lost or an older counter has a clock that is past the last fence. And while a counter that had
 * ended is gone, the clock is not set back by more than LK_REDIS_FENCE_KEEP_MS. Otherwise a fence
 * may be lower than an earlier one. A store that compares fences then refuses the holder's write,
 * and lk_raise_fence() with the store's number lifts the counter above it.
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

/* Lua: clock_us(), a number; set_fence(key of the counter, its number, that clock). Fences are
 * written by format(): Lua itself rounds from fifteen digits on. */
#define LK_REDIS_SET_FENCE                                                                         \
    "local function clock_us() "                                                                   \
    "  local t = redis.call('time') "                                                              \
    "  return t[1] * 1000000 + t[2] "                                                              \
    "end "                                                                                         \
    "local function set_fence(key, fence, now_us) "                                                \
    "  redis.call('set', key, string.format('%.0f', fence), 'PX', "                                \
    "    math.ceil(math.max(fence - now_us, 0) / 1000) + " LK_TEXT(LK_REDIS_FENCE_KEEP_MS) ") "    \
                                                                                           "end "

/* Lua: next_fence(key of the counter), a number. */
#define LK_REDIS_NEXT_FENCE                                                                        \
    LK_REDIS_SET_FENCE                                                                             \
    "local function next_fence(key) "                                                              \
    "  local now_us, last = clock_us(), tonumber(redis.call('get', key) or 0) "                    \
    "  local fence = math.max(last + 1, now_us) "                                                  \
    "  set_fence(key, fence, now_us) "                                                             \
    "  return fence "                                                                              \
    "end "

#endif
