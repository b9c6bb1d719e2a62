/*
 * redis-setnx-expire: SETNX, with the lease as a second command.
 *
 * What is wrong: 1. A process that dies between the two commands leaves a lock without a lease.
 *                2. So does an EXPIRE that is lost, unless undoing the attempt is confirmed.
 *                3. The DEL compares nothing: after its lease a holder frees its successor's lock.
 *
 * Algorithm: SETNX key token, then EXPIRE key seconds; release by DEL key. EXPIRE counts whole
 *            seconds, so a lease is rounded up. LK_POINT_EXPIRE is between the two commands.
 * Guarantee: one holder at a time across processes, until its lease ends; a holder that dies after
 *            the second command frees the lock with its lease.
 * Weakness:  the three above. Undoing is tried once.
 * Source:    countless tutorials before SET had NX and EX (Redis 2.6.12);
 *            https://redis.io/docs/latest/commands/setnx/
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_inspect.h"

enum { MS_PER_S = 1000 };

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    const lk_env *env = guard->context->env;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    lk_redis_begin_try(guard, hold);
    lk_status status = lk_redis_try(guard->redis, attempt, &reply, "SETNX", hold->key, hold->token);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    if (status != LK_OK)
        return status;
    if (reply.root.integer == 0)
        return LK_BUSY;

    env->point(env->ctx, LK_POINT_EXPIRE, hold->key);
    char seconds[LK_REDIS_NUMBER_MAX];
    lk_redis_number(seconds, (hold->lease_ms + MS_PER_S - 1) / MS_PER_S);
    status = lk_redis_try(guard->redis, attempt, &reply, "EXPIRE", hold->key, seconds);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    if (status != LK_OK)
        return LK_UNKNOWN; /* the lock stands without a lease and must be undone */
    if (reply.root.integer == 0)
        return LK_BUSY; /* deleted between the two commands */
    lk_redis_set_granted(hold);
    return LK_OK;
}

const lk_provider lk_redis_setnx_expire = {
    .info = {.name = "redis-setnx-expire",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_SERVER_CLOCK,
             .algorithm = "SETNX key, then EXPIRE key (whole seconds); release by DEL",
             .guarantee = "one holder at a time across processes, until its lease ends",
             .weakness = "a holder that dies between the two commands leaves it locked for ever; "
                         "the bare DEL frees a successor's lock",
             .source = "https://redis.io/docs/latest/commands/setnx/"},
    .replicates = true,
    .open = lk_redis_guard_open,
    .close = lk_redis_guard_close,
    .try_acquire = try_acquire,
    .release = lk_redis_guard_bare_release,
    .ping = lk_redis_guard_ping,
    .last_error = lk_redis_guard_last_error,
    .confirm = lk_redis_guard_confirm,
    .inspect = lk_redis_guard_inspect,
    .list = lk_redis_guard_list,
    .force_release = lk_redis_guard_force_release,
};
