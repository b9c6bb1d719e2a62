#include "digits.h"
#include "number.h"
#include "redis_inspect.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_GRANTED = 1, US_PER_MS = 1000 };

const char lk_redis_delete_if_mine[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                       "  return redis.call('del', KEYS[1]) "
                                       "end "
                                       "return 0";

const char lk_redis_expire_if_mine[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                       "  return redis.call('pexpire', KEYS[1], ARGV[2]) "
                                       "end "
                                       "return 0";

static const char raise_fence_body[] =
    LK_REDIS_SET_FENCE "local now_us, last = clock_us(), redis.call('get', KEYS[1]) "
                       "local fence = math.max(tonumber(last or 0), now_us, tonumber(ARGV[1])) "
                       "set_fence(KEYS[1], fence, now_us) "
                       "return 1";

/* -- opening ---------------------------------------------------------------------------------- */

lk_status lk_redis_guard_init(lk_redis_guard *guard, const lk_context *context, lk_error *error)
{
    *guard = (lk_redis_guard){.context = context};
    lk_redis_script_init(&guard->release, lk_redis_delete_if_mine);
    lk_redis_script_init(&guard->renew, lk_redis_expire_if_mine);
    lk_redis_script_init(&guard->raise_fence, raise_fence_body);
    lk_redis_inspect_init(guard);
    return lk_redis_open(context, &guard->redis, error);
}

void lk_redis_guard_end(lk_redis_guard *guard)
{
    lk_redis_close(guard->redis);
}

lk_status lk_redis_guard_open(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_redis_guard *guard = malloc(sizeof *guard);
    if (guard == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
    lk_status status = lk_redis_guard_init(guard, context, error);
    if (status != LK_OK)
        free(guard);
    else
        *ret_self = guard;
    return status;
}

void lk_redis_guard_close(void *self)
{
    lk_redis_guard_end(self);
    free(self);
}

lk_status lk_redis_guard_ping(void *self)
{
    lk_redis_guard *guard = self;
    return lk_redis_ping(guard->redis);
}

void lk_redis_guard_last_error(void *self, char *ret, size_t size)
{
    lk_redis_guard *guard = self;
    lk_redis_last_error(guard->redis, ret, size);
}

/* -- fences ----------------------------------------------------------------------------------- */

lk_status lk_redis_guard_raise_fence(void *self, const char *key, uint64_t seen)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char fence[LK_REDIS_KEY_MAX], number[LK_REDIS_NUMBER_MAX];
    if (seen > LK_REDIS_FENCE_MAX)
        return LK_INVALID;
    lk_status status =
        lk_redis_eval(guard->redis, &guard->raise_fence, &reply, REDIS_REPLY_INTEGER, 1,
                      lk_redis_key(fence, key, "fence"), lk_redis_number(number, (int64_t)seen));
    return status == LK_BUSY ? LK_PROTOCOL : status;
}

/* -- a lock whose value is the token ---------------------------------------------------------- */

lk_status lk_redis_guard_release(void *self, lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    lk_status status = lk_redis_eval(guard->redis, &guard->release, &reply, REDIS_REPLY_INTEGER, 1,
                                     hold->key, hold->token);
    return lk_redis_done(status, &reply);
}

void lk_redis_guard_release_each(void *self, lk_hold *const *holds, size_t n, lk_status *statuses)
{
    lk_redis_guard *guard = self;
    lk_redis_query queries[LK_EACH_MAX];
    lk_redis_reply replies[LK_EACH_MAX];
    for (size_t i = 0; i < n; i++) {
        queries[i] = (lk_redis_query){.n = LK_REDIS_SCRIPT_HEAD + 2, .reply = &replies[i]};
        queries[i].words[LK_REDIS_SCRIPT_HEAD] = holds[i]->key;
        queries[i].words[LK_REDIS_SCRIPT_HEAD + 1] = holds[i]->token;
    }
    lk_redis_script_each(guard->redis, &guard->release, REDIS_REPLY_INTEGER, 1, queries, n);
    for (size_t i = 0; i < n; i++)
        statuses[i] = lk_redis_done(queries[i].status, &replies[i]);
}

lk_status lk_redis_guard_renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    char number[LK_REDIS_NUMBER_MAX];
    lk_status status = lk_redis_eval_renew(guard->redis, &guard->renew, &reply, 1, hold->key,
                                           hold->token, lk_redis_number(number, lease_ms));
    return lk_redis_done(status, &reply);
}

lk_status lk_redis_guard_bare_release(void *self, lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    if (!lk_redis_is_granted(hold))
        return lk_redis_guard_release(self, hold);
    lk_status status = lk_redis_command(guard->redis, &reply, "DEL", hold->key);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    return lk_redis_done(status, &reply);
}

lk_status lk_redis_done(lk_status status, const lk_redis_reply *reply)
{
    if (status == LK_BUSY)
        return LK_LOST;
    if (status == LK_OK && reply->root.integer == 0)
        return LK_LOST;
    return status;
}

/* -- tokens, numbers, keys, answers ----------------------------------------------------------- */

void lk_redis_begin_try(lk_redis_guard *guard, lk_hold *hold)
{
    hold->private_.slot &= ~(uint64_t)SLOT_GRANTED;
    lk_make_token_unique(&guard->n_tokens, hold);
}

void lk_redis_set_granted(lk_hold *hold)
{
    hold->private_.slot |= SLOT_GRANTED;
}

bool lk_redis_is_granted(const lk_hold *hold)
{
    return (hold->private_.slot & SLOT_GRANTED) != 0;
}

const char *lk_redis_number(char buffer[LK_REDIS_NUMBER_MAX], int64_t number)
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *to = buffer;
    if (number < 0)
        *to++ = '-';
    *lk_put_digits(to, size, 10) = '\0';
    return buffer;
}

const char *lk_redis_key(char buffer[LK_REDIS_KEY_MAX], const char *key, const char *suffix)
{
    assert(strlen(key) + strlen(suffix) + sizeof "{}:" <= LK_REDIS_KEY_MAX);
    buffer[0] = '{';
    stpcpy(stpcpy(stpcpy(buffer + 1, key), "}:"), suffix);
    return buffer;
}

int64_t lk_redis_gone_at_us(const lk_redis_guard *guard, int64_t pttl_ms)
{
    const lk_env *env = guard->context->env;
    /* A key lives through its last millisecond. */
    return pttl_ms < 0 ? 0
                       : lk_sum(env->now_us(env->ctx), lk_product(lk_sum(pttl_ms, 1), US_PER_MS));
}

lk_status lk_redis_granted(const lk_redis_guard *guard, lk_attempt *attempt, int64_t answer)
{
    if (answer > 0) {
        attempt->hold->fence = (uint64_t)answer;
        return LK_OK;
    }
    attempt->retry_us = lk_redis_gone_at_us(guard, -1 - answer);
    return LK_BUSY;
}
