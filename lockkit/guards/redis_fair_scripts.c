#include "redis_fair_scripts.h"

/* clang-format off */

/* KEYS: lock, queue, seen, fence. Takes the first live waiter off the queue; makes it the holder.
 * Numbers in the message go through format(): Lua rounds from fifteen digits on. If a holder claims
 * so late that its counter is gone, a new counter begins higher. */
#define HAND_OVER                                                                                  \
    LK_REDIS_NEXT_FENCE                                                                            \
    "local DEAD_MS, CLAIM_MS = " LK_TEXT(LK_FAIR_DEAD_MS) "," LK_TEXT(LK_FAIR_CLAIM_MS) " "          \
    "local KEEP_MS = " LK_TEXT(LK_FAIR_KEEP_MS) " "                                                \
    "local function now() "                                                                        \
    "  local t = redis.call('time') "                                                              \
    "  return t[1] * 1000 + math.floor(t[2] / 1000) "                                              \
    "end "                                                                                         \
    "local function next_live() "                                                                  \
    "  while true do "                                                                             \
    "    local token = redis.call('lpop', KEYS[2]) "                                               \
    "    if not token then return nil end "                                                        \
    "    local sign = redis.call('hget', KEYS[3], token) or '' "                                   \
    "    redis.call('hdel', KEYS[3], token) "                                                      \
    "    local seen, lease, stamp = string.match(sign, '^(%d+) (%d+) (%d+)$') "                    \
    "    if seen and now() - seen < DEAD_MS then return token, lease, stamp end "                  \
    "  end "                                                                                       \
    "end "                                                                                         \
    "local function hand_over(token, lease, stamp) "                                               \
    "  redis.call('set', KEYS[1], token, 'PX', lease) "                                            \
    "  local fence = next_fence(KEYS[4]) "                                                 \
    "  local listeners = redis.call('publish', "                                                   \
    "    'lockkit_fair__channel:' .. string.sub(token, 1, 32), "                                   \
    "    string.format('%s %.0f %s', token, fence, stamp)) "                                       \
    "  if listeners == 0 then redis.call('pexpire', KEYS[1], CLAIM_MS) end "                       \
    "end "

const char lk_redis_fair_acquire[] =
    HAND_OVER
    "local holder = redis.call('get', KEYS[1]) "
    "if holder == ARGV[1] then "
    "  redis.call('pexpire', KEYS[1], ARGV[2]) "
    "  return tonumber(redis.call('get', KEYS[4])) or next_fence(KEYS[4]) "
    "end "
    "if ARGV[3] ~= '' and (holder or redis.call('exists', KEYS[2]) == 1) then "
    "  local sign = string.format('%.0f %s %s', now(), ARGV[3], ARGV[4]) "
    "  local is_new = redis.call('hset', KEYS[3], ARGV[1], sign) == 1 "
    "  if not is_new or redis.call('rpush', KEYS[2], ARGV[1]) == 1 then "
    "    redis.call('pexpire', KEYS[2], KEEP_MS) "
    "    redis.call('pexpire', KEYS[3], KEEP_MS) "
    "  end "
    "end "
    "if not holder then "
    "  local first, lease, stamp = next_live() "
    "  if not first or first == ARGV[1] then "
    "    redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) "
    "    return next_fence(KEYS[4]) "
    "  end "
    "  hand_over(first, lease, stamp) "
    "end "
    "return -1 - redis.call('pttl', KEYS[1])";

const char lk_redis_fair_release[] =
    HAND_OVER
    "if ARGV[2] == '1' and redis.call('hdel', KEYS[3], ARGV[1]) == 1 then "
    "  redis.call('lrem', KEYS[2], 1, ARGV[1]) "
    "end "
    "local holder = redis.call('get', KEYS[1]) "
    "if not holder or (holder ~= ARGV[1] and ARGV[1] ~= '') then "
    "  return 0 "
    "end "
    "local first, lease, stamp = next_live() "
    "if first then "
    "  hand_over(first, lease, stamp) "
    "else "
    "  redis.call('del', KEYS[1]) "
    "end "
    "return 1";

/* clang-format on */
