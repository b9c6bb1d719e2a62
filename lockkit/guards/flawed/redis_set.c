/*
 * redis-set: lock and lease in one command, released without looking.
 *
 * What is wrong: 1. The DEL compares nothing: A's lease ends, B holds, A's DEL frees B's lock, C
 *                   enters.
 *                2. There is no fence. A holder that outlived its lease still writes.
 *                3. A DEL without an answer is not repeated. If it is lost, the lease ends it.
 *
 * Algorithm: SET key token NX PX lease; release by DEL key, whatever the value is by then.
 * Guarantee: one holder at a time across processes, until its lease ends; the lock of a dead
 *            holder frees itself with the lease, at every moment.
 * Weakness:  the three above.
 * Source:    https://redis.io/docs/latest/commands/set/ (Patterns), without its advice on release
 */
#include "providers.h"
#include "redis_guard.h"
#include "redis_inspect.h"

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_redis_guard *guard = self;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    char lease[LK_REDIS_NUMBER_MAX];
    lk_redis_begin_try(guard, hold);
    lk_status status = lk_redis_try(guard->redis, attempt, &reply, "SET", hold->key, hold->token,
                                    "NX", "PX", lk_redis_number(lease, hold->lease_ms));
    status = lk_redis_expect(guard->redis, &reply, 0, status);
    if (status != LK_OK)
        return status;
    if (reply.root.type == REDIS_REPLY_NIL)
        return LK_BUSY;
    if (reply.root.type != REDIS_REPLY_STATUS)
        return LK_PROTOCOL;
    lk_redis_set_granted(hold);
    return LK_OK;
}

const lk_provider lk_redis_set = {
    .info = {.name = "redis-set",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_SERVER_CLOCK,
             .algorithm = "SET key NX PX lease; release by DEL",
             .guarantee = "one holder at a time across processes, until its lease ends",
             .weakness = "the DEL of a holder whose lease has ended frees its successor's lock",
             .source = "https://redis.io/docs/latest/commands/set/"},
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
