/*
 * redis-reentrant: the lock of Redisson (RedissonLock), on the same keys.
 *
 * Algorithm: a hash at the key, with PEXPIRE: field = token, value = how often its owner holds it.
 *            The first entry raises the fence counter and keeps its number in the hash; an inner
 *            entry gets the same number. Each entry also has a field of its own ("token n"; no
 *            owner's name has a space, so no entry is anybody's token). So
 *            undoing an attempt of unknown outcome, or releasing twice, removes that entry and no
 *            other. The last release deletes the key and publishes "0" on
 *            redisson_lock__channel:{key}. A waiter subscribes, tries once more, then sleeps until
 *            a message, at most to the end of the holder's lease: expiry publishes nothing. One
 *            message wakes one waiter per client.
 * Guarantee: one owner at a time across processes, until its lease ends; the lock frees itself
 *            with the lease; only the owner can free it; the server counts re-entries; fences
 *            rise. By Redisson's source: excludes and is excluded by its RLock on the same key.
 * Weakness:  one node, as redis-token. The watchdog sleeps when the process does: use the fence. A
 *            hung owner is renewed up to the maximum hold time. Waiters are served in no order. A
 *            lost message costs a wait up to the end of the lease.
 * Source:    RedissonLock.java, LockPubSub.java of Redisson 3 (lock, unlock, channel)
 */
#include "digits.h"
#include "providers.h"
#include "redis_inspect.h"
#include "redis_wake.h"

#include <string.h>

enum { ENTRY_MAX = LK_TOKEN_MAX + 1 + LK_DIGITS_MAX + 1 };

/* KEYS: lock, fence. ARGV: token, entry, lease. An inner entry never shortens the lease. A
 * read-write lock is WRONGTYPE: its release sends no message here. */
static const char acquire_body[] =
    LK_REDIS_NEXT_FENCE "if redis.call('exists', KEYS[1]) == 0 then "
                        "  local fence = next_fence(KEYS[2]) "
                        "  redis.call('hset', KEYS[1], ARGV[1], 1, ARGV[2], 1, '#fence', fence) "
                        "  redis.call('pexpire', KEYS[1], ARGV[3]) "
                        "  return fence "
                        "end "
                        "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then "
                        "  if redis.call('hexists', KEYS[1], 'mode') == 1 then "
                        "    return redis.error_reply('WRONGTYPE a read-write lock') "
                        "  end "
                        "  return -1 - redis.call('pttl', KEYS[1]) "
                        "end "
                        "if redis.call('hset', KEYS[1], ARGV[2], 1) == 1 then "
                        "  redis.call('hincrby', KEYS[1], ARGV[1], 1) "
                        "end "
                        "if redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then "
                        "  redis.call('pexpire', KEYS[1], ARGV[3]) "
                        "end "
                        "return tonumber(redis.call('hget', KEYS[1], '#fence'))";

/* KEYS: lock, channel. ARGV: token, entry. */
static const char release_body[] = "if redis.call('hdel', KEYS[1], ARGV[2]) == 0 then "
                                   "  return 0 "
                                   "end "
                                   "if redis.call('hincrby', KEYS[1], ARGV[1], -1) <= 0 then "
                                   "  redis.call('del', KEYS[1]) "
                                   "  redis.call('publish', KEYS[2], '0') "
                                   "end "
                                   "return 1";

/* KEYS: lock. ARGV: token, entry, lease, channel. Only a single entry may shorten the lease. */
static const char renew_body[] =
    LK_REDIS_EXPIRE "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then "
                    "  return 0 "
                    "end "
                    "if redis.call('hget', KEYS[1], ARGV[1]) == '1' or "
                    "   redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then "
                    "  expire(KEYS[1], ARGV[3], ARGV[4]) "
                    "end "
                    "return 1";

static const char *entry_of(char buffer[ENTRY_MAX], const lk_hold *hold)
{
    char *end = stpcpy(stpcpy(buffer, hold->token), " ");
    *lk_put_digits(end, hold->private_.slot, 16) = '\0';
    return buffer;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    char fence[LK_REDIS_KEY_MAX], entry[ENTRY_MAX], lease[LK_REDIS_NUMBER_MAX];
    if (hold->private_.slot == 0)
        hold->private_.slot =
            atomic_fetch_add_explicit(&guard->n_tokens, 1, memory_order_relaxed) + 1;
    lk_status status =
        lk_redis_eval_try(guard->redis, attempt, &guard->acquire, &reply, REDIS_REPLY_INTEGER, 2,
                          hold->key, lk_redis_key(fence, hold->key, "fence"), hold->token,
                          entry_of(entry, hold), lk_redis_number(lease, hold->lease_ms));
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
    char channel[LK_REDIS_CHANNEL_MAX], entry[ENTRY_MAX];
    lk_status status = lk_redis_eval(guard->redis, &guard->release, &reply, REDIS_REPLY_INTEGER, 2,
                                     hold->key, lk_redis_wake_channel(self, channel, hold->key),
                                     hold->token, entry_of(entry, hold));
    return lk_redis_done(status, &reply);
}

static lk_status renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char channel[LK_REDIS_CHANNEL_MAX], entry[ENTRY_MAX], lease[LK_REDIS_NUMBER_MAX];
    lk_status status = lk_redis_eval_renew(
        guard->redis, &guard->renew, &reply, 1, hold->key, hold->token, entry_of(entry, hold),
        lk_redis_number(lease, lease_ms), lk_redis_wake_channel(self, channel, hold->key));
    return lk_redis_done(status, &reply);
}

static lk_status confirm(void *self, const lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char entry[ENTRY_MAX];
    lk_status status =
        lk_redis_command(guard->redis, &reply, "HEXISTS", hold->key, entry_of(entry, hold));
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    return lk_redis_done(status, &reply);
}

/* -- the provider ---------------------------------------------------------------------------- */

static lk_status open_reentrant(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_redis_wake *wake;
    lk_status status = lk_redis_wake_open(context, "redisson_lock__channel", &wake, error);
    if (status != LK_OK)
        return status;
    wake->guard.kind = LK_REDIS_KIND_REENTRANT;
    lk_redis_script_init(&wake->guard.acquire, acquire_body);
    lk_redis_script_init(&wake->guard.release, release_body);
    lk_redis_script_init(&wake->guard.renew, renew_body);
    *ret_self = wake;
    return LK_OK;
}

const lk_provider lk_redis_reentrant = {
    .info = {.name = "redis-reentrant",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_REENTRANT | LK_CAP_WAKES |
                     LK_CAP_SERVER_CLOCK,
             .algorithm = "hash of owner and count in Lua, as Redisson; publish on release",
             .guarantee = "one owner at a time until its lease ends, re-entry counted by the "
                          "server; fences rise",
             .weakness = "one node: failover or restart forgets it; waiters are served in no order",
             .source = "Redisson 3: RedissonLock.java, LockPubSub.java"},
    .replicates = true,
    .open = open_reentrant,
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
