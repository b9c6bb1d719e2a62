/*
 * redis-readwrite: many readers or one writer. The read-write lock of Redisson (RReadWriteLock),
 * on the same keys.
 *
 * Algorithm: a hash at the key: mode = "read" or "write", and a field per holder with value 1: its
 *            token for a reader, "token:write" for the writer. Each reader has a key of its own,
 *            {key}:token:rwlock_timeout:1, that ends with its lease. The hash ends with the
 *            longest lease. A reader that leaves shortens the hash's lease to the longest that
 *            remains, and publishes "0": waiters had been told the longer one. The last holder
 *            deletes the hash and publishes on redisson_rwlock:{key}: "1" after a writer (all
 *            threads of a Redisson client try), "0" after readers (one does). Every grant raises
 *            the fence counter, a reader's too.
 * Guarantee: a writer is alone until its lease ends; readers share; the part of a dead holder
 *            frees itself with its lease; each frees only its own; fences rise. By Redisson's
 *            source: excludes and is excluded by its RReadWriteLock on the same key.
 * Weakness:  a stream of readers starves a writer: as in Redisson, a reader enters while others
 *            read, even if a writer waits. Not re-entrant, no upgrade, no downgrade: a holder that
 *            asks again waits for itself, where Redisson lets the same thread in. One node, as
 *            redis-token.
 * Source:    RedissonReadLock.java, RedissonWriteLock.java of Redisson 3
 */
#include "providers.h"
#include "redis_inspect.h"
#include "redis_wake.h"

#include <stdio.h>

enum { FIELD_MAX = LK_TOKEN_MAX + 16, TIMEOUT_MAX = LK_REDIS_KEY_MAX + LK_TOKEN_MAX };

/* One holder, as the scripts name it. */
struct part {
    const char *mode; /* "read", "write" */
    char field[FIELD_MAX];
    char timeout[TIMEOUT_MAX]; /* a writer has no such key */
};

/* clang-format off */

/* KEYS: lock, fence, timeout. ARGV: field, lease, mode. A lock of another kind is WRONGTYPE: its
 * release sends no message here. */
static const char acquire_body[] =
    LK_REDIS_NEXT_FENCE
    "if redis.call('exists', KEYS[1]) == 1 then "
    "  local mode = redis.call('hget', KEYS[1], 'mode') "
    "  if not mode then "
    "    return redis.error_reply('WRONGTYPE no read-write lock') "
    "  end "
    "  if ARGV[3] == 'write' or mode ~= 'read' then "
    "    return -1 - redis.call('pttl', KEYS[1]) "
    "  end "
    "end "
    "redis.call('hset', KEYS[1], 'mode', ARGV[3], ARGV[1], 1) "
    "if ARGV[3] == 'read' then "
    "  redis.call('set', KEYS[3], 1, 'px', ARGV[2]) "
    "end "
    "if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then "
    "  redis.call('pexpire', KEYS[1], ARGV[2]) "
    "end "
    "return next_fence(KEYS[2])";

/* The number in a field. A reader of Redisson has a key for each of its entries. There is a bound,
 * because other kinds of locks have numbers of any size in their hashes. */
#define ENTRIES                                                                                    \
    "local function entries(value) return math.min(tonumber(value) or 0, 1000) end "

/* What is left of the longest lease of the readers. Less than 0: none reads. */
#define LONGEST                                                                                    \
    ENTRIES                                                                                        \
    "local function longest() "                                                                    \
    "  local left, all = -1, redis.call('hgetall', KEYS[1]) "                                      \
    "  for i = 1, #all, 2 do "                                                                     \
    "    for entry = entries(all[i + 1]), 1, -1 do "                                               \
    "      left = math.max(left, redis.call('pttl', "                                              \
    "        '{' .. KEYS[1] .. '}:' .. all[i] .. ':rwlock_timeout:' .. entry)) "                   \
    "    end "                                                                                     \
    "  end "                                                                                       \
    "  return left "                                                                               \
    "end "

/* KEYS: lock, channel, timeout. ARGV: field, mode. */
static const char release_body[] =
    LONGEST
    LK_REDIS_EXPIRE
    "if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then "
    "  return 0 "
    "end "
    "local in_time = redis.call('del', KEYS[3]) "
    "local left = longest() "
    "if left >= 0 then "
    "  expire(KEYS[1], math.max(left, 1), KEYS[2]) "
    "else "
    "  redis.call('del', KEYS[1]) "
    "  redis.call('publish', KEYS[2], ARGV[2] == 'write' and '1' or '0') "
    "end "
    "return ARGV[2] == 'write' and 1 or in_time";

/* KEYS: lock, timeout. ARGV: field, lease, mode, channel. */
static const char renew_body[] =
    LONGEST
    LK_REDIS_EXPIRE
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then "
    "  return 0 "
    "end "
    "if ARGV[3] == 'read' and redis.call('pexpire', KEYS[2], ARGV[2]) == 0 then "
    "  return 0 "
    "end "
    "local longer = redis.call('pttl', KEYS[1]) > tonumber(ARGV[2]) "
    "local lease = longer and ARGV[3] == 'read' and longest() or ARGV[2] "
    "return expire(KEYS[1], lease, ARGV[4])";

/* KEYS: lock, timeout. ARGV: field, mode. */
static const char confirm_body[] =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then "
    "  return 0 "
    "end "
    "return ARGV[2] == 'write' and 1 or redis.call('exists', KEYS[2])";

/* KEYS: lock, channel. */
static const char force_body[] =
    ENTRIES
    "local all = redis.pcall('hgetall', KEYS[1]) "
    "for i = 1, #all, 2 do "
    "  for entry = entries(all[i + 1]), 1, -1 do "
    "    redis.call('del', '{' .. KEYS[1] .. '}:' .. all[i] .. ':rwlock_timeout:' .. entry) "
    "  end "
    "end "
    "if redis.call('del', KEYS[1]) == 0 then "
    "  return 0 "
    "end "
    "redis.call('publish', KEYS[2], '1') "
    "return 1";

/* clang-format on */

static const struct part *part_of(struct part *part, const lk_hold *hold)
{
    bool reads = hold->mode == LK_SHARED;
    part->mode = reads ? "read" : "write";
    snprintf(part->field, sizeof part->field, "%s%s", hold->token, reads ? "" : ":write");
    snprintf(part->timeout, sizeof part->timeout, "{%s}:%s:rwlock_timeout:1", hold->key,
             part->field);
    return part;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    struct part part;
    char fence[LK_REDIS_KEY_MAX], lease[LK_REDIS_NUMBER_MAX];
    lk_redis_begin_try(guard, hold);
    part_of(&part, hold);
    lk_status status =
        lk_redis_eval_try(guard->redis, attempt, &guard->acquire, &reply, REDIS_REPLY_INTEGER, 3,
                          hold->key, lk_redis_key(fence, hold->key, "fence"), part.timeout,
                          part.field, lk_redis_number(lease, hold->lease_ms), part.mode);
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
    struct part part;
    char channel[LK_REDIS_CHANNEL_MAX];
    part_of(&part, hold);
    lk_status status = lk_redis_eval(guard->redis, &guard->release, &reply, REDIS_REPLY_INTEGER, 3,
                                     hold->key, lk_redis_wake_channel(self, channel, hold->key),
                                     part.timeout, part.field, part.mode);
    return lk_redis_done(status, &reply);
}

static lk_status renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    struct part part;
    char lease[LK_REDIS_NUMBER_MAX], channel[LK_REDIS_CHANNEL_MAX];
    part_of(&part, hold);
    lk_status status =
        lk_redis_eval_renew(guard->redis, &guard->renew, &reply, 2, hold->key, part.timeout,
                            part.field, lk_redis_number(lease, lease_ms), part.mode,
                            lk_redis_wake_channel(self, channel, hold->key));
    return lk_redis_done(status, &reply);
}

static lk_status confirm(void *self, const lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    struct part part;
    part_of(&part, hold);
    lk_status status = lk_redis_eval(guard->redis, &guard->confirm, &reply, REDIS_REPLY_INTEGER, 2,
                                     hold->key, part.timeout, part.field, part.mode);
    return lk_redis_done(status, &reply);
}

static lk_status open_readwrite(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_redis_wake *wake;
    lk_status status = lk_redis_wake_open(context, "redisson_rwlock", &wake, error);
    if (status != LK_OK)
        return status;
    wake->guard.kind = LK_REDIS_KIND_READWRITE;
    lk_redis_script_init(&wake->guard.acquire, acquire_body);
    lk_redis_script_init(&wake->guard.release, release_body);
    lk_redis_script_init(&wake->guard.renew, renew_body);
    lk_redis_script_init(&wake->guard.confirm, confirm_body);
    lk_redis_script_init(&wake->force, force_body);
    *ret_self = wake;
    return LK_OK;
}

const lk_provider lk_redis_readwrite = {
    .info = {.name = "redis-readwrite",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_WAKES |
                     LK_CAP_SERVER_CLOCK | LK_CAP_SHARED,
             .algorithm = "hash of mode and holders in Lua, a lease per reader, as Redisson",
             .guarantee =
                 "one writer or many readers at a time until their leases end; fences rise",
             .weakness = "one node: failover or restart forgets it; a stream of readers starves a "
                         "writer",
             .source = "Redisson 3: RedissonReadLock.java, RedissonWriteLock.java"},
    .replicates = true,
    .open = open_readwrite,
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
