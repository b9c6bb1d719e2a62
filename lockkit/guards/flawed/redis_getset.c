/*
 * redis-getset: the lease stands in the value, and each client's own clock judges it.
 *
 * What is wrong: 1. A client whose clock is ahead takes a live lock.
 *                2. A loser's GETSET overwrites the winner's stamp: the others see a longer lease.
 *                3. The DEL compares nothing, and two stamps of one microsecond look alike.
 *
 * Algorithm: SETNX key stamp, where stamp = the client's wall clock + lease, in microseconds. If
 *            the key exists, GET it. A stamp in the past has expired: GETSET replaces it, and the
 *            client that gets back the stamp it had seen has the lock. Release: DEL key, unless
 *            the own stamp has passed.
 * Guarantee: one holder at a time across processes, until its lease ends, while all clocks agree;
 *            the lock of a dead holder can be taken over after the lease.
 * Weakness:  the three above. If the answer to GETSET is lost, the key is left to its stamp: it
 *            may be the winner's.
 * Source:    https://redis.io/docs/latest/commands/setnx/ ("Handling deadlocks")
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000, IN_GETSET = 2 }; /* a bit of private_.slot, beside the grant's */

static int64_t wall_us(const lk_redis_guard *guard)
{
    const lk_env *env = guard->context->env;
    return env->wall_us(env->ctx);
}

/* False: the value is no stamp. Another guard has written it. */
static bool parse_stamp(const lk_redis_item *item, int64_t *ret_us)
{
    char *end;
    errno = 0;
    long long us = strtoll(item->text, &end, 10);
    if (errno != 0 || end == item->text || *end != '\0')
        return false;
    *ret_us = us;
    return true;
}

/* The stamp that was seen has expired. Replaces it, and looks whether it was still the same. */
static lk_status take_over(lk_redis_guard *guard, lk_attempt *attempt, const char *seen)
{
    lk_hold *hold = attempt->hold;
    const lk_env *env = guard->context->env;
    lk_redis_reply reply;
    env->point(env->ctx, LK_POINT_GETSET, hold->key);
    hold->private_.slot = IN_GETSET;
    lk_status status =
        lk_redis_try(guard->redis, attempt, &reply, "GETSET", hold->key, hold->token);
    status = lk_redis_expect(guard->redis, &reply, 0, status);
    if (status != LK_OK)
        return status;
    bool vanished = reply.root.type == REDIS_REPLY_NIL; /* so GETSET has made the key */
    if (!vanished && reply.root.type != REDIS_REPLY_STRING)
        return LK_PROTOCOL;
    if (!vanished && strcmp(reply.root.text, seen) != 0)
        return LK_BUSY; /* and the winner's stamp is overwritten */
    lk_redis_set_granted(hold);
    return LK_OK;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    int64_t now_us = wall_us(guard), stamp_us;
    lk_redis_number(hold->token, now_us + hold->lease_ms * US_PER_MS);
    hold->private_.slot = 0;
    lk_status status = lk_redis_try(guard->redis, attempt, &reply, "SETNX", hold->key, hold->token);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    if (status != LK_OK)
        return status;
    if (reply.root.integer == 1) {
        lk_redis_set_granted(hold);
        return LK_OK;
    }

    status = lk_redis_command(guard->redis, &reply, "GET", hold->key);
    status = lk_redis_expect(guard->redis, &reply, 0, status);
    if (status == LK_UNKNOWN)
        return LK_UNAVAILABLE; /* a read changes nothing */
    if (status != LK_OK)
        return status;
    if (reply.root.type == REDIS_REPLY_NIL)
        return LK_BUSY; /* it was freed meanwhile */
    if (reply.root.type != REDIS_REPLY_STRING)
        return LK_PROTOCOL;
    if (!parse_stamp(&reply.root, &stamp_us))
        return LK_BUSY;
    if (stamp_us >= now_us) {
        attempt->retry_us = lk_redis_gone_at_us(guard, (stamp_us - now_us) / US_PER_MS);
        return LK_BUSY;
    }
    return take_over(guard, attempt, reply.root.text);
}

static lk_status release(void *self, lk_hold *hold)
{
    lk_redis_guard *guard = self;
    if (!lk_redis_is_granted(hold) && hold->private_.slot == IN_GETSET)
        return LK_LOST; /* our stamp may stand in the winner's lock: do not delete it */
    if (lk_redis_is_granted(hold) && wall_us(guard) > strtoll(hold->token, NULL, 10))
        return LK_LOST;
    return lk_redis_guard_bare_release(self, hold);
}

/* The server knows no lease. The stamp and this client's clock tell what is left. */
static void refine(const lk_redis_guard *guard, lk_lock_info *info)
{
    lk_redis_item value = {.text = info->token};
    int64_t stamp_us, now_us = wall_us(guard);
    if (!parse_stamp(&value, &stamp_us))
        return;
    info->holders = stamp_us >= now_us;
    info->left_ms = info->holders > 0 ? (stamp_us - now_us) / US_PER_MS : INT64_MAX;
}

static lk_status open_getset(const lk_context *context, void **ret_self, lk_error *error)
{
    void *self;
    lk_status status = lk_redis_guard_open(context, &self, error);
    if (status != LK_OK)
        return status;
    ((lk_redis_guard *)self)->refine = refine;
    *ret_self = self;
    return LK_OK;
}

const lk_provider lk_redis_getset = {
    .info = {.name = "redis-getset",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE,
             .algorithm = "SETNX of an expiry stamp, taken over by GETSET; release by DEL unless "
                          "expired",
             .guarantee = "one holder at a time until its lease ends, while all clocks agree",
             .weakness = "a client whose clock is ahead takes a live lock; a loser overwrites the "
                         "winner's stamp; bare DEL",
             .source = "https://redis.io/docs/latest/commands/setnx/"},
    .replicates = true,
    .open = open_getset,
    .close = lk_redis_guard_close,
    .try_acquire = try_acquire,
    .release = release,
    .ping = lk_redis_guard_ping,
    .last_error = lk_redis_guard_last_error,
    .confirm = lk_redis_guard_confirm,
    .inspect = lk_redis_guard_inspect,
    .list = lk_redis_guard_list,
    .force_release = lk_redis_guard_force_release,
};
