/*
 * redis-reentrant: the lock of Redisson (RedissonLock), on the same keys.
 *
 * Algorithm: a hash at the key: field = token, value = how often its owner holds it; PEXPIRE. The
 *            first entry raises the fence counter and keeps its number in the hash; an inner entry
 *            gets the same one. Each entry also has a field of its own (token#n), so that undoing
 *            an attempt of unknown outcome, or releasing twice, takes away that entry and no other.
 *            The last release deletes the key and publishes "0" on
 *            redisson_lock__channel:{key}. A waiter subscribes, tries once more, then sleeps until
 *            a message, at most to the end of the holder's lease: expiry publishes nothing. One
 *            message wakes one waiter of each client.
 * Guarantee: one owner at a time across processes, until its lease ends; frees itself with the
 *            lease; only the owner can free it; the server counts re-entries; fences rise.
 *            Excludes and is excluded by Redisson's RLock on the same key.
 * Weakness:  one node, as redis-token; the watchdog sleeps when the process does (fence!); a
 *            hung owner is renewed up to the maximum hold time; waiters are served in no order; a
 *            lost message costs the wait up to the lease's end.
 * Source:    RedissonLock.java, LockPubSub.java of Redisson 3 (lock, unlock, channel)
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_rooms.h"
#include "redis_sub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRY_MAX = LK_TOKEN_MAX + 20 };

struct reentrant {
    lk_redis_guard guard;
    lk_redis_rooms *rooms; /* one per channel */
    lk_redis_sub *sub;
};

/* One lk_acquire() that waits. */
struct waiting {
    lk_redis_waiter *waiter;
    bool joined;   /* the channel */
    uint64_t live; /* of the channel, at the last try */
};

/* KEYS: lock, fence. ARGV: token, entry, lease. The lease is never cut short by an inner entry. */
static const char acquire_body[] =
    "if redis.call('exists', KEYS[1]) == 0 then "
    "  local fence = redis.call('incr', KEYS[2]) "
    "  redis.call('hset', KEYS[1], ARGV[1], 1, ARGV[2], 1, '#fence', fence) "
    "  redis.call('pexpire', KEYS[1], ARGV[3]) "
    "  return fence "
    "end "
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then "
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

/* KEYS: lock. ARGV: token, entry, lease. Shortens the lease only for the sole entry. */
static const char renew_body[] = "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then "
                                 "  return 0 "
                                 "end "
                                 "if redis.call('hget', KEYS[1], ARGV[1]) == '1' or "
                                 "   redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then "
                                 "  redis.call('pexpire', KEYS[1], ARGV[3]) "
                                 "end "
                                 "return 1";

static const char *channel_of(char buffer[LK_REDIS_CHANNEL_MAX], const char *key)
{
    snprintf(buffer, LK_REDIS_CHANNEL_MAX, "redisson_lock__channel:{%s}", key);
    return buffer;
}

static const char *entry_of(char buffer[ENTRY_MAX], const lk_hold *hold)
{
    snprintf(buffer, ENTRY_MAX, "%s#%" PRIx64, hold->token, hold->private_.slot);
    return buffer;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    struct reentrant *reentrant = self;
    lk_redis_guard *guard = &reentrant->guard;
    struct waiting *waiting = attempt->waiter;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    char fence[LK_REDIS_KEY_MAX], entry[ENTRY_MAX], lease[LK_REDIS_NUMBER_MAX];
    if (hold->private_.slot == 0)
        hold->private_.slot =
            atomic_fetch_add_explicit(&guard->n_marks, 1, memory_order_relaxed) + 1;
    lk_status status =
        lk_redis_eval(guard->redis, &guard->acquire, &reply, REDIS_REPLY_INTEGER, 2, hold->key,
                      lk_redis_key(fence, hold->key, "fence"), hold->token, entry_of(entry, hold),
                      lk_redis_number(lease, hold->lease_ms));
    if (status == LK_OK)
        status = lk_redis_granted(guard, attempt, reply.root.integer);
    if (waiting != NULL && (status == LK_OK || status == LK_BUSY))
        lk_redis_rooms_use(reentrant->rooms, waiting->waiter);
    return status;
}

static lk_status release(void *self, lk_hold *hold)
{
    struct reentrant *reentrant = self;
    lk_redis_guard *guard = &reentrant->guard;
    lk_redis_reply reply;
    char channel[LK_REDIS_CHANNEL_MAX], entry[ENTRY_MAX];
    lk_status status =
        lk_redis_eval(guard->redis, &guard->release, &reply, REDIS_REPLY_INTEGER, 2, hold->key,
                      channel_of(channel, hold->key), hold->token, entry_of(entry, hold));
    return lk_redis_done(status, &reply);
}

static lk_status renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    struct reentrant *reentrant = self;
    lk_redis_guard *guard = &reentrant->guard;
    lk_redis_reply reply;
    char entry[ENTRY_MAX], lease[LK_REDIS_NUMBER_MAX];
    lk_status status =
        lk_redis_eval(guard->redis, &guard->renew, &reply, REDIS_REPLY_INTEGER, 1, hold->key,
                      hold->token, entry_of(entry, hold), lk_redis_number(lease, lease_ms));
    return lk_redis_done(status, &reply);
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* Enters the room first, so that no message passes unseen, then sees to the subscription.
 * *ret_calm: no release since the last try can have been missed, because others wait here already.
 */
static lk_status begin(struct reentrant *reentrant, lk_attempt *attempt, const char *channel,
                       int64_t left_us, bool *ret_calm)
{
    struct waiting *waiting = attempt->waiter;
    bool is_first = false, was_live = false;
    if (waiting == NULL) {
        waiting = calloc(1, sizeof *waiting);
        if (waiting == NULL)
            return LK_NO_MEMORY;
        waiting->waiter = lk_redis_rooms_enter(reentrant->rooms, channel, &is_first);
        if (waiting->waiter == NULL) {
            free(waiting);
            return LK_NO_MEMORY;
        }
        attempt->waiter = waiting;
    }
    lk_status status = lk_redis_sub_join(reentrant->sub, channel, left_us, &was_live);
    if (status != LK_OK)
        return status;
    waiting->joined = true;
    *ret_calm = was_live && !is_first;
    if (*ret_calm)
        waiting->live = lk_redis_sub_live(reentrant->sub, channel);
    return LK_OK;
}

static lk_status wait_for(void *self, lk_attempt *attempt, int64_t until_us)
{
    struct reentrant *reentrant = self;
    const lk_env *env = reentrant->guard.context->env;
    struct waiting *waiting = attempt->waiter;
    char channel[LK_REDIS_CHANNEL_MAX];
    channel_of(channel, attempt->hold->key);
    if (waiting == NULL || !waiting->joined) {
        bool calm = false;
        env->point(env->ctx, LK_POINT_SUBSCRIBE, attempt->hold->key);
        lk_status status =
            begin(reentrant, attempt, channel, until_us - env->now_us(env->ctx), &calm);
        if (status != LK_OK)
            return status;
        waiting = attempt->waiter;
    }
    uint64_t live = lk_redis_sub_live(reentrant->sub, channel);
    if (live == 0)
        return LK_UNAVAILABLE;
    if (live != waiting->live) { /* subscribed since the last try: a release may have been missed */
        waiting->live = live;
        return LK_OK;
    }
    lk_redis_rooms_sleep(reentrant->rooms, waiting->waiter, until_us - env->now_us(env->ctx));
    return LK_OK;
}

static void wait_end(void *self, lk_attempt *attempt)
{
    struct reentrant *reentrant = self;
    struct waiting *waiting = attempt->waiter;
    char channel[LK_REDIS_CHANNEL_MAX];
    if (waiting == NULL)
        return;
    if (waiting->joined)
        lk_redis_sub_leave(reentrant->sub, channel_of(channel, attempt->hold->key));
    lk_redis_rooms_leave(reentrant->rooms, waiting->waiter);
    free(waiting);
}

static void on_message(void *arg, const char *channel, const char *payload)
{
    struct reentrant *reentrant = arg;
    (void)payload;
    if (channel == NULL)
        lk_redis_rooms_post_all(reentrant->rooms);
    else
        lk_redis_rooms_post(reentrant->rooms, channel);
}

/* -- opening and closing ---------------------------------------------------------------------- */

static lk_status open_reentrant(const lk_context *context, void **ret_self, lk_error *error)
{
    struct reentrant *reentrant = calloc(1, sizeof *reentrant);
    if (reentrant == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
    lk_redis_guard *guard = &reentrant->guard;
    lk_status status = lk_redis_guard_init(guard, context, error);
    if (status != LK_OK)
        goto no_guard;
    lk_redis_script_init(&guard->acquire, acquire_body);
    lk_redis_script_init(&guard->release, release_body);
    lk_redis_script_init(&guard->renew, renew_body);
    reentrant->rooms = lk_redis_rooms_open();
    if (reentrant->rooms == NULL) {
        status = lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
        goto no_rooms;
    }
    status = lk_redis_sub_open(context, lk_redis_endpoint(guard->redis), on_message, reentrant,
                               &reentrant->sub, error);
    if (status != LK_OK)
        goto no_sub;
    *ret_self = reentrant;
    return LK_OK;
no_sub:
    lk_redis_rooms_close(reentrant->rooms);
no_rooms:
    lk_redis_guard_end(guard);
no_guard:
    free(reentrant);
    return status;
}

static void close_reentrant(void *self)
{
    struct reentrant *reentrant = self;
    lk_redis_sub_close(reentrant->sub);
    lk_redis_rooms_close(reentrant->rooms);
    lk_redis_guard_end(&reentrant->guard);
    free(reentrant);
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
    .open = open_reentrant,
    .close = close_reentrant,
    .try_acquire = try_acquire,
    .wait = wait_for,
    .wait_end = wait_end,
    .renew = renew,
    .release = release,
    .raise_fence = lk_redis_guard_raise_fence,
    .ping = lk_redis_guard_ping,
};
