/*
 * redis-token: the lock of the Redis documentation for one node, plus a fence.
 *
 * Algorithm: one script does SET key token NX PX lease and raises the fence (redis_fence.h).
 *            Release and renewal are one script each, and compare the value with the own token
 *            first. The value of the key is the token, so every other client of this protocol
 *            excludes this one and is excluded by it.
 * Guarantee: one holder at a time across processes, until its lease ends; the lock frees itself
 *            with the lease; only the holder can free it; fences rise with every grant of the key.
 * Weakness:  one node: a failover or a restart without persistence forgets locks. Leases follow
 *            the server's wall clock: if it leaps an hour ahead and back, a lock that was granted
 *            meanwhile and not released stands for an hour. Waiters poll, in no order.
 * Source:    https://redis.io/docs/latest/commands/set/ (Patterns); M. Kleppmann, "How to do
 *            distributed locking", 2016 (fencing)
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_inspect.h"

static const char acquire_body[] =
    LK_REDIS_NEXT_FENCE "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                        "  return next_fence(KEYS[2]) "
                        "end "
                        "return -1 - redis.call('pttl', KEYS[1])";

static lk_status open_token(const lk_context *context, void **ret_self, lk_error *error)
{
    void *self;
    lk_status status = lk_redis_guard_open(context, &self, error);
    if (status != LK_OK)
        return status;
    lk_redis_guard *guard = self;
    lk_redis_script_init(&guard->acquire, acquire_body);
    *ret_self = self;
    return LK_OK;
}

/* Keys and arguments of the script for one hold, where they are not texts of the hold. */
enum { N_KEYS = 2, N_WORDS = 4 };
struct arguments {
    char fence[LK_REDIS_KEY_MAX], lease[LK_REDIS_NUMBER_MAX];
};

static void fill_words(lk_redis_guard *guard, lk_hold *hold, struct arguments *arguments,
                       const char **words)
{
    lk_redis_begin_try(guard, hold);
    words[0] = hold->key;
    words[1] = lk_redis_key(arguments->fence, hold->key, "fence");
    words[2] = hold->token;
    words[3] = lk_redis_number(arguments->lease, hold->lease_ms);
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    struct arguments arguments;
    const char *words[N_WORDS];
    fill_words(guard, attempt->hold, &arguments, words);
    lk_status status = lk_redis_script_run(guard->redis, attempt, 0, &guard->acquire, &reply,
                                           REDIS_REPLY_INTEGER, N_KEYS, N_WORDS, words);
    return status == LK_OK ? lk_redis_granted(guard, attempt, reply.root.integer) : status;
}

static void try_each(void *self, lk_attempt *const *attempts, size_t n, lk_status *statuses)
{
    lk_redis_guard *guard = self;
    lk_redis_reply replies[LK_EACH_MAX];
    struct arguments arguments[LK_EACH_MAX];
    lk_redis_query queries[LK_EACH_MAX];
    for (size_t i = 0; i < n; i++) {
        queries[i] = (lk_redis_query){
            .n = LK_REDIS_SCRIPT_HEAD + N_WORDS, .reply = &replies[i], .attempt = attempts[i]};
        fill_words(guard, attempts[i]->hold, &arguments[i],
                   queries[i].words + LK_REDIS_SCRIPT_HEAD);
    }
    lk_redis_script_each(guard->redis, &guard->acquire, REDIS_REPLY_INTEGER, N_KEYS, queries, n);
    for (size_t i = 0; i < n; i++)
        statuses[i] = queries[i].status == LK_OK
                          ? lk_redis_granted(guard, attempts[i], replies[i].root.integer)
                          : queries[i].status;
}

const lk_provider lk_redis_token = {
    .info = {.name = "redis-token",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_SERVER_CLOCK,
             .algorithm = "SET key token NX PX lease; release by compare-and-delete in Lua",
             .guarantee = "one holder at a time until its lease ends; only the holder frees it; "
                          "fences rise",
             .weakness = "one node: failover or restart forgets it; leases follow its wall clock; "
                         "waiters poll, in no order",
             .source = "https://redis.io/docs/latest/commands/set/"},
    .replicates = true,
    .open = open_token,
    .close = lk_redis_guard_close,
    .try_acquire = try_acquire,
    .try_each = try_each,
    .renew = lk_redis_guard_renew,
    .release = lk_redis_guard_release,
    .release_each = lk_redis_guard_release_each,
    .raise_fence = lk_redis_guard_raise_fence,
    .ping = lk_redis_guard_ping,
    .last_error = lk_redis_guard_last_error,
    .confirm = lk_redis_guard_confirm,
    .inspect = lk_redis_guard_inspect,
    .list = lk_redis_guard_list,
    .force_release = lk_redis_guard_force_release,
};
