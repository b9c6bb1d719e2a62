/*
 * redis-setnx-expire: SETNX with the lease as an afterthought.
 *
 * Algorithm: SETNX key token, then EXPIRE key seconds as a second command; release by DEL key.
 *            EXPIRE counts whole seconds: a lease is rounded up to the next one.
 * Guarantee: one holder at a time across processes, until its lease ends; a holder that dies after
 *            the second command frees it with the lease.
 * Weakness:  killed between the two commands (LK_POINT_EXPIRE), it leaves a lock without a lease,
 *            for ever; so does an EXPIRE that did not arrive, unless its undoing, tried once, is
 *            confirmed; the bare DEL of a holder whose lease has ended frees its successor's lock.
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
    lk_redis_mark(guard, hold);
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
        return LK_UNKNOWN; /* the lock stands, without a lease: it must be undone */
    if (reply.root.integer == 0)
        return LK_BUSY; /* deleted between the two */
    lk_redis_mark_granted(hold);
    return LK_OK;
}

const lk_provider lk_redis_setnx_expire = {
    .info = {.name = "redis-setnx-expire",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_SERVER_CLOCK,
             .algorithm = "SETNX key, then EXPIRE key (whole seconds); release by DEL",
             .guarantee = "one holder at a time across processes, until its lease ends",
             .weakness = "killed or cut off between the two commands it stays locked for ever; the "
                         "bare DEL frees a successor's lock",
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
