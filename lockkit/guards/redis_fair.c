/*
 * redis-fair: first come, first served; the lock is handed from holder to waiter.
 *
 * Algorithm: the value of the key is the holder's token, as in redis-token. A refused waiter stands
 *            in a list with its token ({key}:queue) and gives a sign of life when it comes and
 *            every REFRESH_MS: in the hash {key}:seen, the server's time, the lease it wants, and
 *            its own clock as a stamp. The release script takes the first waiter off the list
 *            whose sign of life is younger than DEAD_MS, makes the lock that waiter's with a new
 *            fence and that lease, and publishes "token fence stamp" on
 *            lockkit_fair__channel:CLIENT_ID, where only that waiter's client listens. The waiter
 *            has the lock then, without another command: the stamp is that of its last try, which
 *            was sent before the hand-over, so it counts its lease from there. A try whose answer
 *            was lost is undone, and no message for it counts any more.
 *            Claims: where nobody heard the message (PUBLISH answers with the number of listeners)
 *            the lease is CLAIM_MS, until the waiter finds at its next refresh that it has the
 *            lock, and sets its full lease. It claims so in any case when its lease is shorter
 *            than CLAIM_MS, when its stamp is older than half its lease, in a cluster (where
 *            PUBLISH counts the listeners of one node only) and when replicas are to be waited for.
 *            Releases have a connection of their own: the next holder's would else wait for the
 *            answer to the last one's next try.
 *            Whoever finds the lock free while others queue hands it to the first of them; whoever
 *            gives up leaves the queue, and passes on what it was handed meanwhile: that is its
 *            release. While Redis does not confirm it, the client's janitor repeats it.
 * Guarantee: that of redis-token, and grants in order of arrival at the server. A waiter that died
 *            holds the others up for DEAD_MS, or CLAIM_MS if the lock was handed to it, at most,
 *            as its death closes the connection on which it listens.
 * Weakness:  one node, as redis-token; a waiter that stands still, or whose machine was cut off,
 *            and is handed the lock within DEAD_MS of its last sign of life, keeps it for its
 *            lease, as a holder would; later it goes to the end of the queue. All waiters look
 *            again every REFRESH_MS.
 * Source:    the idea of the queue with timeouts: RedissonFairLock.java of Redisson 3, which wakes
 *            the next waiter to try again instead of handing over; J. Mellor-Crummey, M. Scott:
 *            "Algorithms for Scalable Synchronization", 1991 (direct hand-over)
 */
#include "providers.h"
#include "redis_fair_scripts.h"
#include "redis_guard.h"
#include "redis_inspect.h"
#include "redis_waiters.h"
#include "redis_sub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

struct fair {
    lk_redis_guard guard;
    lk_redis *releases;        /* their own connection: a hand-over waits for no answer to a try */
    lk_redis_waiters *waiters; /* one per waiting token */
    lk_redis_sub *sub;
    char channel[LK_REDIS_CHANNEL_MAX];
    atomic_bool joined; /* listening to the channel, until the end */
    bool one_node;      /* whose word suffices for a grant */
};

/* One lk_acquire() that may wait, from a try to the next that is not refused. */
struct waiting {
    lk_redis_waiter *waiter;
    uint64_t live;    /* of the channel, at the last try */
    int64_t asked_us; /* stamp of the last try */
};

struct keys {
    char queue[LK_REDIS_KEY_MAX], seen[LK_REDIS_KEY_MAX], fence[LK_REDIS_KEY_MAX];
};

static void fill_keys(struct keys *keys, const char *key)
{
    lk_redis_key(keys->queue, key, "queue");
    lk_redis_key(keys->seen, key, "seen");
    lk_redis_key(keys->fence, key, "fence");
}

static void forget(struct fair *fair, lk_attempt *attempt)
{
    struct waiting *waiting = attempt->waiter;
    lk_redis_waiters_leave(fair->waiters, waiting->waiter);
    free(waiting);
    attempt->waiter = NULL;
}

/* Before the token is put into the queue: its message may come at any time after. */
static struct waiting *prepare(struct fair *fair, lk_attempt *attempt)
{
    uint64_t live = atomic_load(&fair->joined) ? lk_redis_sub_live(fair->sub, fair->channel) : 0;
    if (attempt->waiter != NULL || attempt->last || live == 0)
        return attempt->waiter;
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (waiting == NULL)
        return NULL;
    waiting->live = live;
    waiting->waiter = lk_redis_waiters_enter(fair->waiters, attempt->hold->token, NULL);
    if (waiting->waiter == NULL) {
        free(waiting);
        return NULL;
    }
    attempt->waiter = waiting;
    return waiting;
}

/* A hand-over may give this hold its lease, and needs no claim. */
static bool can_be_handed(const struct fair *fair, const lk_hold *hold)
{
    return fair->one_node && hold->lease_ms >= LK_FAIR_CLAIM_MS;
}

/* Was it handed the lock? Only in answer to its last try: of an older one, the lease may be over.
 */
static bool was_handed(struct fair *fair, lk_attempt *attempt)
{
    struct waiting *waiting = attempt->waiter;
    lk_redis_handover handover;
    if (waiting == NULL ||
        !lk_redis_waiters_take_handover(fair->waiters, waiting->waiter, &handover) ||
        !can_be_handed(fair, attempt->hold) || handover.asked_us != waiting->asked_us ||
        (attempt->since_us - handover.asked_us) * 2 > attempt->hold->lease_ms * US_PER_MS)
        return false;
    attempt->hold->fence = handover.fence;
    attempt->since_us = handover.asked_us;
    return true;
}

/* The script's try, which claims what was handed over already. */
static lk_status ask(struct fair *fair, lk_attempt *attempt, struct waiting *waiting)
{
    lk_redis_guard *guard = &fair->guard;
    lk_hold *hold = attempt->hold;
    lk_redis_reply reply;
    struct keys keys;
    char lease[LK_REDIS_NUMBER_MAX], handed[LK_REDIS_NUMBER_MAX] = "", stamp[LK_REDIS_NUMBER_MAX];
    fill_keys(&keys, hold->key);
    if (waiting != NULL) {
        waiting->asked_us = attempt->since_us;
        lk_redis_number(handed, can_be_handed(fair, hold) ? hold->lease_ms : LK_FAIR_CLAIM_MS);
    }
    lk_status status = lk_redis_eval_try(
        guard->redis, attempt, &guard->acquire, &reply, REDIS_REPLY_INTEGER, 4, hold->key,
        keys.queue, keys.seen, keys.fence, hold->token, lk_redis_number(lease, hold->lease_ms),
        handed, lk_redis_number(stamp, attempt->since_us));
    return status == LK_OK ? lk_redis_granted(guard, attempt, reply.root.integer) : status;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    struct fair *fair = self;
    lk_redis_mark(&fair->guard, attempt->hold);
    struct waiting *waiting = prepare(fair, attempt);
    lk_status status = was_handed(fair, attempt) ? LK_OK : ask(fair, attempt, waiting);
    if (status == LK_OK)
        lk_redis_mark_granted(attempt->hold);
    if (waiting != NULL && status == LK_BUSY) {
        attempt->queued = true;
        lk_redis_waiters_use(fair->waiters, waiting->waiter);
    } else if (waiting != NULL) { /* no message counts for a try that is over, or will be undone */
        forget(fair, attempt);
    }
    return status;
}

static lk_status release_token(struct fair *fair, const char *key, const char *token,
                               const char *queued)
{
    lk_redis_reply reply;
    struct keys keys;
    fill_keys(&keys, key);
    lk_status status =
        lk_redis_eval(fair->releases, &fair->guard.release, &reply, REDIS_REPLY_INTEGER, 4, key,
                      keys.queue, keys.seen, keys.fence, token, queued);
    return lk_redis_done(status, &reply);
}

/* Also leaves the queue when the hold was never granted. */
static lk_status release(void *self, lk_hold *hold)
{
    return release_token(self, hold->key, hold->token, lk_redis_is_granted(hold) ? "0" : "1");
}

/* The next waiter has it at once. */
static lk_status force_release(void *self, const char *key)
{
    return release_token(self, key, "", "0");
}

static void last_error(void *self, char *ret, size_t size)
{
    struct fair *fair = self;
    lk_redis_guard_last_error(&fair->guard, ret, size);
    if (ret[0] == '\0')
        lk_redis_last_error(fair->releases, ret, size);
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* Until the channel is live: for the first time, or again. */
static lk_status join(struct fair *fair, int64_t left_us)
{
    if (atomic_load(&fair->joined) && lk_redis_sub_live(fair->sub, fair->channel) != 0)
        return LK_OK;
    lk_status status = lk_redis_sub_join(fair->sub, fair->channel, left_us, NULL);
    if (status == LK_OK && atomic_exchange(&fair->joined, true))
        lk_redis_sub_leave(fair->sub, fair->channel); /* one listener will do */
    return status;
}

static lk_status wait_for(void *self, lk_attempt *attempt, int64_t until_us)
{
    struct fair *fair = self;
    const lk_env *env = fair->guard.context->env;
    struct waiting *waiting = attempt->waiter;
    int64_t left_us = until_us - env->now_us(env->ctx);
    if (waiting == NULL) { /* not listening yet, so not queued yet */
        env->point(env->ctx, LK_POINT_SUBSCRIBE, attempt->hold->key);
        return join(fair, left_us);
    }
    uint64_t live = lk_redis_sub_live(fair->sub, fair->channel);
    if (live == 0)
        return LK_UNAVAILABLE;
    if (live != waiting->live) { /* it was broken: our message may be lost */
        waiting->live = live;
        return LK_OK;
    }
    if (left_us > LK_FAIR_REFRESH_MS * US_PER_MS)
        left_us = LK_FAIR_REFRESH_MS * US_PER_MS;
    lk_redis_waiters_sleep(fair->waiters, waiting->waiter, left_us);
    return LK_OK;
}

static void wait_end(void *self, lk_attempt *attempt)
{
    if (attempt->waiter != NULL)
        forget(self, attempt);
}

/* "token fence stamp" */
static void on_message(void *arg, const char *channel, const char *payload)
{
    struct fair *fair = arg;
    char token[LK_TOKEN_MAX + 1], *end;
    if (channel == NULL) {
        lk_redis_waiters_wake_all(fair->waiters);
        return;
    }
    size_t length = strcspn(payload, " ");
    if (length >= sizeof token)
        return; /* none of ours */
    memcpy(token, payload, length);
    token[length] = '\0';
    lk_redis_handover handover = {.fence = strtoull(payload + length, &end, 10)};
    handover.asked_us = strtoll(end, NULL, 10);
    lk_redis_waiters_hand_over(fair->waiters, token, &handover);
}

/* -- opening and closing ---------------------------------------------------------------------- */

static lk_status open_fair(const lk_context *context, void **ret_self, lk_error *error)
{
    struct fair *fair = calloc(1, sizeof *fair);
    if (fair == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
    lk_redis_guard *guard = &fair->guard;
    lk_status status = lk_redis_guard_init(guard, context, error);
    if (status != LK_OK)
        goto no_guard;
    status = lk_redis_open(context, &fair->releases, error);
    if (status != LK_OK)
        goto no_releases;
    lk_redis_script_init(&guard->acquire, lk_redis_fair_acquire);
    lk_redis_script_init(&guard->release, lk_redis_fair_release);
    fair->one_node = !lk_redis_is_cluster(guard->redis) && context->options->replicas == 0;
    snprintf(fair->channel, sizeof fair->channel, "lockkit_fair__channel:%s", context->client_id);
    fair->waiters = lk_redis_waiters_open();
    if (fair->waiters == NULL) {
        status = lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
        goto no_waiters;
    }
    status = lk_redis_sub_open(context, guard->redis, on_message, fair, &fair->sub, error);
    if (status != LK_OK)
        goto no_sub;
    *ret_self = fair;
    return LK_OK;
no_sub:
    lk_redis_waiters_close(fair->waiters);
no_waiters:
    lk_redis_close(fair->releases);
no_releases:
    lk_redis_guard_end(guard);
no_guard:
    free(fair);
    return status;
}

static void close_fair(void *self)
{
    struct fair *fair = self;
    if (atomic_load(&fair->joined))
        lk_redis_sub_leave(fair->sub, fair->channel);
    lk_redis_sub_close(fair->sub);
    lk_redis_waiters_close(fair->waiters);
    lk_redis_close(fair->releases);
    lk_redis_guard_end(&fair->guard);
    free(fair);
}

const lk_provider lk_redis_fair = {
    .info = {.name = "redis-fair",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_FAIR | LK_CAP_WAKES |
                     LK_CAP_SERVER_CLOCK,
             .algorithm = "queue in Redis; release hands the lock to the next live waiter, in Lua",
             .guarantee = "one holder at a time until its lease ends, in order of arrival; fences "
                          "rise",
             .weakness =
                 "one node: failover or restart forgets it; a waiter that dies holds the "
                 "others up for " LK_TEXT(LK_FAIR_DEAD_MS) " ms at most, one that stands still for "
                                                           "its lease",
             .source = "Redisson 3: RedissonFairLock.java; Mellor-Crummey and Scott 1991"},
    .replicates = true,
    .open = open_fair,
    .close = close_fair,
    .try_acquire = try_acquire,
    .wait = wait_for,
    .wait_end = wait_end,
    .renew = lk_redis_guard_renew,
    .release = release,
    .raise_fence = lk_redis_guard_raise_fence,
    .ping = lk_redis_guard_ping,
    .last_error = last_error,
    .confirm = lk_redis_guard_confirm,
    .inspect = lk_redis_guard_inspect,
    .list = lk_redis_guard_list,
    .force_release = force_release,
};
