/*
 * redis-setnx: the first lock that most programs try.
 *
 * What is wrong: 1. There is no lease. A holder that dies keeps the lock for ever.
 *                2. The DEL compares nothing. It frees the lock of any holder.
 *                3. So a DEL without an answer is not repeated. If it is lost, the lock stays for
 *                   ever.
 *
 * Algorithm: SETNX key token; release by DEL key. An attempt without an answer is undone once, by
 *            comparing the value. If that is not confirmed either, its lock stays for ever.
 * Guarantee: one holder at a time, across processes, as long as no holder dies.
 * Weakness:  the three above. The second shows when an operator deletes the key by hand.
 * Source:    https://redis.io/docs/latest/commands/setnx/ ("Design pattern: Locking with SETNX")
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_inspect.h"

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    lk_redis_begin_try(guard, hold);
    lk_status status = lk_redis_try(guard->redis, attempt, &reply, "SETNX", hold->key, hold->token);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    if (status != LK_OK)
        return status;
    if (reply.root.integer == 0)
        return LK_BUSY;
    lk_redis_set_granted(hold);
    return LK_OK;
}

const lk_provider lk_redis_setnx = {
    .info = {.name = "redis-setnx",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED,
             .algorithm = "SETNX key; release by DEL",
             .guarantee = "one holder at a time across processes, while nobody dies",
             .weakness = "no lease: a dead holder or a lost DEL leaves it locked for ever; the "
                         "bare DEL frees any holder's lock",
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
