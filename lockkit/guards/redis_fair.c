/*
 * redis-fair: first come, first served. The holder's release hands the lock to the next waiter.
 *
 * Algorithm: the value of the key is the holder's token, as in redis-token.
 *   Queue:   a waiter stands in a list with its token ({key}:queue). When it comes, and then every
 *            REFRESH_MS, it writes a sign of life into the hash {key}:seen: the server's time, the
 *            lease it wants, and its own clock as a stamp.
 *   Release: the script takes the first waiter off the list whose sign of life is younger than
 *            DEAD_MS. It makes the lock that waiter's, with a new fence and the lease it wants,
 *            and publishes "token fence stamp" on lockkit_fair__channel:CLIENT_ID. Only the
 *            waiter's client listens there.
 *   Grant:   the message is the grant; no further command is needed. The stamp is that of the
 *            waiter's last try, sent before the hand-over, so the waiter counts its lease from
 *            there. A try whose answer was lost is undone, and no message for it counts any more.
 *   Claim:   if nobody heard the message (PUBLISH answers with the number of listeners), the lease
 *            is CLAIM_MS. The waiter finds the lock at its next refresh and sets its full lease.
 *            It also claims if its lease is shorter than CLAIM_MS, if its stamp is older than half
 *            its lease, in a cluster (PUBLISH counts the listeners of one node only), and with
 *            replicas.
 *   Releases have a connection of their own. On a shared one, the hand-over would wait for the
 *            answer to the releasing client's next try.
 *   Leaving: a caller that finds the lock free while others queue hands it to the first of them. A
 *            waiter that gives up leaves the queue and passes on what it was handed meanwhile:
 *            that is its release. Until Redis confirms it, the client's janitor repeats it.
 * Guarantee: that of redis-token, and grants in order of arrival at the server. A dead waiter
 *            delays the others by DEAD_MS, or by CLAIM_MS if it was handed the lock: its death
 *            closes the connection on which it listens.
 * Weakness:  one node, as redis-token. A waiter that is stopped or cut off, and is handed the lock
 *            within DEAD_MS of its last sign of life, keeps it for its lease, as a holder would.
 *            If it comes back later, it goes to the end of the queue. All waiters look every
 *            REFRESH_MS.
 * Source:    RedissonFairLock.java of Redisson 3: the queue with timeouts, where the next waiter
 *            is woken to try again; J. Mellor-Crummey, M. Scott: "Algorithms for Scalable
 *            Synchronization", 1991: direct hand-over
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
    lk_redis *releases;        /* a connection of their own: no hand-over waits behind a try */
    lk_redis_waiters *waiters; /* one line per waiting token */
    lk_redis_sub *sub;
    char channel[LK_REDIS_CHANNEL_MAX];
    atomic_bool joined; /* the client listens to the channel, until close */
    bool one_node;      /* its message alone is a grant */
};

/* One lk_acquire() that may wait: from its first try to the first that is not refused. */
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

/* Called before the token is put into the queue. Its message may come at any time after that. */
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

/* True: a hand-over gives this hold its full lease, and no claim is needed. */
static bool can_be_handed(const struct fair *fair, const lk_hold *hold)
{
    return fair->one_node && hold->lease_ms >= LK_FAIR_CLAIM_MS;
}

/* True: it was handed the lock in answer to its last try. A lease in answer to an older try may be
 * over. */
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

/* Runs the script, which also claims what was handed over already. */
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
    lk_redis_begin_try(&fair->guard, attempt->hold);
    struct waiting *waiting = prepare(fair, attempt);
    lk_status status = was_handed(fair, attempt) ? LK_OK : ask(fair, attempt, waiting);
    if (status == LK_OK)
        lk_redis_set_granted(attempt->hold);
    if (waiting != NULL && status == LK_BUSY) {
        attempt->queued = true;
        lk_redis_waiters_use(fair->waiters, waiting->waiter);
    } else if (waiting != NULL) { /* the try is over or will be undone: no message for it counts */
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

/* A hold that was never granted leaves the queue. */
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

/* Waits until the channel is live, for the first time or again. */
static lk_status join(struct fair *fair, int64_t left_us)
{
    if (atomic_load(&fair->joined) && lk_redis_sub_live(fair->sub, fair->channel) != 0)
        return LK_OK;
    lk_status status = lk_redis_sub_join(fair->sub, fair->channel, left_us, NULL);
    if (status == LK_OK && atomic_exchange(&fair->joined, true))
        lk_redis_sub_leave(fair->sub, fair->channel); /* one listener is enough */
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
    if (live != waiting->live) { /* the connection broke: our message may be lost */
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
        return; /* not ours */
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
                 "one node: failover or restart forgets it; a dead waiter delays the others by up "
                 "to " LK_TEXT(LK_FAIR_DEAD_MS) " ms, a hung one by its lease",
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
