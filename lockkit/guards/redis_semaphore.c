/*
 * redis-semaphore: at most `permits` holders of a key at once, each with a lease of its own. One
 * permit (the default) makes it a lock.
 *
 * Algorithm: a sorted set at the key: member = token, score = the instant at which its lease ends,
 *            in milliseconds of the server's clock. An attempt first removes expired members, and
 *            is granted when fewer than `permits` remain. The set itself ends with the longest
 *            lease. A release publishes on lockkit_semaphore__channel:{key}, which wakes one
 *            waiter of each client. The others look again when the next lease ends. Every grant
 *            raises the fence.
 * Guarantee: at most `permits` holders across processes, as long as all name the same number; the
 *            permit of a dead holder frees itself with its lease; each frees only its own; fences
 *            rise.
 * Weakness:  one node, as redis-token. The number of permits is stored nowhere: a caller that
 *            names a larger one gets in. Waiters are served in no order. With several permits a
 *            fence tells which holder came later, not that it is alone: a store that refuses older
 *            fences refuses the other holders.
 * Source:    RedissonPermitExpirableSemaphore.java of Redisson 3 (a sorted set of permits by the
 *            end of their leases). Different here: the server's clock instead of the clients', and
 *            no counter that somebody must initialise. So the keys are not the same.
 */
#include "providers.h"
#include "redis_inspect.h"
#include "redis_wake.h"

/* clang-format off */

/* KEYS[1]: the set. A permit lasts through its last millisecond, as a key does. */
#define HELPERS                                                                                    \
    "local t = redis.call('time') "                                                                \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000) "                                           \
    "local function end_with_the_longest() "                                                       \
    "  local last = redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2] "                       \
    "  if last then redis.call('pexpireat', KEYS[1], last) end "                                   \
    "end "

/* KEYS: lock, fence. ARGV: token, lease, permits. */
static const char acquire_body[] =
    HELPERS
    LK_REDIS_NEXT_FENCE
    "redis.call('zremrangebyscore', KEYS[1], '-inf', '(' .. now) "
    "if redis.call('zcard', KEYS[1]) >= tonumber(ARGV[3]) then "
    "  return -1 - (redis.call('zrange', KEYS[1], 0, 0, 'withscores')[2] - now) "
    "end "
    "redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1]) "
    "end_with_the_longest() "
    "return next_fence(KEYS[2])";

/* KEYS: lock, channel. ARGV: token. */
static const char release_body[] =
    HELPERS
    "local score = redis.call('zscore', KEYS[1], ARGV[1]) "
    "if not score then "
    "  return 0 "
    "end "
    "redis.call('zrem', KEYS[1], ARGV[1]) "
    "end_with_the_longest() "
    "redis.call('publish', KEYS[2], '0') "
    "return tonumber(score) >= now and 1 or 0";

/* KEYS: lock. ARGV: token, lease; "0": only look; channel. */
static const char renew_body[] =
    HELPERS
    "local score = redis.call('zscore', KEYS[1], ARGV[1]) "
    "if not score or tonumber(score) < now then "
    "  return 0 "
    "end "
    "if ARGV[2] ~= '0' then "
    "  redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1]) "
    "  end_with_the_longest() "
    "  if tonumber(score) > now + ARGV[2] then redis.call('publish', ARGV[3], '0') end "
    "end "
    "return 1";

/* KEYS: lock, channel. A message for each permit that comes free. */
static const char force_body[] =
    "if redis.call('type', KEYS[1]).ok == 'zset' then "
    "  for _ = 2, redis.call('zcard', KEYS[1]) do redis.call('publish', KEYS[2], '0') end "
    "end "
    "if redis.call('del', KEYS[1]) == 0 then "
    "  return 0 "
    "end "
    "redis.call('publish', KEYS[2], '0') "
    "return 1";

/* clang-format on */

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    char fence[LK_REDIS_KEY_MAX], lease[LK_REDIS_NUMBER_MAX], permits[LK_REDIS_NUMBER_MAX];
    lk_redis_begin_try(guard, hold);
    lk_status status = lk_redis_eval_try(
        guard->redis, attempt, &guard->acquire, &reply, REDIS_REPLY_INTEGER, 2, hold->key,
        lk_redis_key(fence, hold->key, "fence"), hold->token,
        lk_redis_number(lease, hold->lease_ms), lk_redis_number(permits, hold->permits));
    if (status == LK_OK)
        status = lk_redis_granted(guard, attempt, reply.root.integer);
    if (status == LK_OK || status == LK_BUSY)
        lk_redis_wake_tried(self, attempt);
    return status;
}

static lk_status release(void *self, lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char channel[LK_REDIS_CHANNEL_MAX];
    lk_status status =
        lk_redis_eval(guard->redis, &guard->release, &reply, REDIS_REPLY_INTEGER, 2, hold->key,
                      lk_redis_wake_channel(self, channel, hold->key), hold->token);
    return lk_redis_done(status, &reply);
}

/* A permit that now ends earlier than the waiters were told is published (redis_wake.h). */
static lk_status renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char channel[LK_REDIS_CHANNEL_MAX], lease[LK_REDIS_NUMBER_MAX];
    lk_status status = lk_redis_eval_renew(guard->redis, &guard->renew, &reply, 1, hold->key,
                                           hold->token, lk_redis_number(lease, lease_ms),
                                           lk_redis_wake_channel(self, channel, hold->key));
    return lk_redis_done(status, &reply);
}

static lk_status confirm(void *self, const lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    lk_status status = lk_redis_eval(guard->redis, &guard->renew, &reply, REDIS_REPLY_INTEGER, 1,
                                     hold->key, hold->token, "0");
    return lk_redis_done(status, &reply);
}

static lk_status open_semaphore(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_redis_wake *wake;
    lk_status status = lk_redis_wake_open(context, "lockkit_semaphore__channel", &wake, error);
    if (status != LK_OK)
        return status;
    wake->guard.kind = LK_REDIS_KIND_SEMAPHORE;
    lk_redis_script_init(&wake->guard.acquire, acquire_body);
    lk_redis_script_init(&wake->guard.release, release_body);
    lk_redis_script_init(&wake->guard.renew, renew_body);
    lk_redis_script_init(&wake->force, force_body);
    *ret_self = wake;
    return LK_OK;
}

const lk_provider lk_redis_semaphore = {
    .info = {.name = "redis-semaphore",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_WAKES |
                     LK_CAP_SERVER_CLOCK | LK_CAP_PERMITS,
             .algorithm = "sorted set of holders by the end of their leases, in Lua; publish on "
                          "release",
             .guarantee = "at most as many holders as permits until their leases end; one permit "
                          "is a lock; fences rise",
             .weakness = "one node: failover or restart forgets it; all clients must name the same "
                         "number of permits",
             .source = "Redisson 3: RedissonPermitExpirableSemaphore.java"},
    .replicates = true,
    .open = open_semaphore,
    .close = lk_redis_wake_close,
    .try_acquire = try_acquire,
    .wait = lk_redis_wake_wait,
    .wait_end = lk_redis_wake_wait_end,
    .renew = renew,
    .release = release,
    .raise_fence = lk_redis_guard_raise_fence,
    .ping = lk_redis_guard_ping,
    .last_error = lk_redis_guard_last_error,
    .confirm = confirm,
    .inspect = lk_redis_guard_inspect,
    .list = lk_redis_guard_list,
    .force_release = lk_redis_wake_force_release,
};
