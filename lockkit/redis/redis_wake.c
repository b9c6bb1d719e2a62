#include "redis_wake.h"

#include <stdio.h>
#include <stdlib.h>

/* One lk_acquire() that waits. */
struct waiting {
    lk_redis_waiter *waiter;
    bool joined;   /* the channel */
    uint64_t live; /* of the channel, at the last try */
};

/* Waiters that would share a lock stand in a line of their own, because all of them wake at once.
 */
static const char *line_of_sharers(char buffer[LK_REDIS_LINE_NAME_MAX], const char *channel)
{
    snprintf(buffer, LK_REDIS_LINE_NAME_MAX, "%s shared", channel);
    return buffer;
}

/* KEYS: lock, channel. */
static const char force_body[] = LK_REDIS_ONLY_LOCKS "redis.call('del', KEYS[1]) "
                                                     "redis.call('publish', KEYS[2], '0') "
                                                     "return 1";

const char *lk_redis_wake_channel(const lk_redis_wake *wake, char buffer[LK_REDIS_CHANNEL_MAX],
                                  const char *key)
{
    snprintf(buffer, LK_REDIS_CHANNEL_MAX, "%s:{%s}", wake->prefix, key);
    return buffer;
}

void lk_redis_wake_tried(lk_redis_wake *wake, lk_attempt *attempt)
{
    struct waiting *waiting = attempt->waiter;
    if (waiting != NULL)
        lk_redis_waiters_use(wake->waiters, waiting->waiter);
}

lk_status lk_redis_wake_force_release(void *self, const char *key)
{
    lk_redis_wake *wake = self;
    lk_redis_reply reply;
    char channel[LK_REDIS_CHANNEL_MAX];
    lk_status status = lk_redis_eval(wake->guard.redis, &wake->force, &reply, REDIS_REPLY_INTEGER,
                                     2, key, lk_redis_wake_channel(wake, channel, key));
    return lk_redis_done(status, &reply);
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* Enters the line first, so that no message is missed, then subscribes.
 *
 * *ret_no_race_left: the waiter may sleep without a second try. If a release freed the lock since
 * the last try, the channel was live, so a message came and woke another waiter of the line. That
 * waiter tries, so the lock does not stay free unnoticed. True only for an exclusive lock. A waiter
 * that would share may be the only one left asleep. Of several free permits, the other waiters may
 * need fewer than there are. */
static lk_status begin(lk_redis_wake *wake, lk_attempt *attempt, const char *channel,
                       int64_t left_us, bool *ret_no_race_left)
{
    struct waiting *waiting = attempt->waiter;
    const lk_hold *hold = attempt->hold;
    bool is_first = false, was_live = false, shares = hold->mode == LK_SHARED;
    char line[LK_REDIS_LINE_NAME_MAX];
    if (waiting == NULL) {
        waiting = calloc(1, sizeof *waiting);
        if (waiting == NULL)
            return LK_NO_MEMORY;
        waiting->waiter = lk_redis_waiters_enter(
            wake->waiters, shares ? line_of_sharers(line, channel) : channel, &is_first);
        if (waiting->waiter == NULL) {
            free(waiting);
            return LK_NO_MEMORY;
        }
        attempt->waiter = waiting;
    }
    lk_status status = lk_redis_sub_join(wake->sub, channel, left_us, &was_live);
    if (status != LK_OK)
        return status;
    waiting->joined = true;
    *ret_no_race_left = was_live && !is_first && !shares && hold->permits == 1;
    if (*ret_no_race_left)
        waiting->live = lk_redis_sub_live(wake->sub, channel);
    return LK_OK;
}

lk_status lk_redis_wake_wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    lk_redis_wake *wake = self;
    const lk_env *env = wake->guard.context->env;
    struct waiting *waiting = attempt->waiter;
    char channel[LK_REDIS_CHANNEL_MAX];
    lk_redis_wake_channel(wake, channel, attempt->hold->key);
    if (waiting == NULL || !waiting->joined) {
        bool no_race_left = false;
        env->point(env->ctx, LK_POINT_SUBSCRIBE, attempt->hold->key);
        lk_status status =
            begin(wake, attempt, channel, until_us - env->now_us(env->ctx), &no_race_left);
        if (status != LK_OK)
            return status;
        waiting = attempt->waiter;
    }
    uint64_t live = lk_redis_sub_live(wake->sub, channel);
    if (live == 0)
        return LK_UNAVAILABLE;
    if (live != waiting->live) { /* not subscribed at the last try: a release may be missed */
        waiting->live = live;
        return LK_OK;
    }
    lk_redis_waiters_sleep(wake->waiters, waiting->waiter, until_us - env->now_us(env->ctx));
    return LK_OK;
}

void lk_redis_wake_wait_end(void *self, lk_attempt *attempt)
{
    lk_redis_wake *wake = self;
    struct waiting *waiting = attempt->waiter;
    char channel[LK_REDIS_CHANNEL_MAX];
    if (waiting == NULL)
        return;
    lk_redis_wake_channel(wake, channel, attempt->hold->key);
    if (waiting->joined) {
        /* A release may have been missed since the last try, and another waiter may have slept
         * without a second try because this one stood in the line. */
        if (lk_redis_sub_live(wake->sub, channel) != waiting->live)
            lk_redis_waiters_wake_one(wake->waiters, channel);
        lk_redis_sub_leave(wake->sub, channel);
    }
    lk_redis_waiters_leave(wake->waiters, waiting->waiter);
    free(waiting);
}

/* The payload does not matter: Redisson's says whether to wake one waiter or all, which the lines
 * know. */
static void on_message(void *arg, const char *channel, const char *payload)
{
    lk_redis_wake *wake = arg;
    char line[LK_REDIS_LINE_NAME_MAX];
    (void)payload;
    if (channel == NULL) {
        lk_redis_waiters_wake_all(wake->waiters);
        return;
    }
    lk_redis_waiters_wake_one(wake->waiters, channel);
    lk_redis_waiters_wake_all_of(wake->waiters, line_of_sharers(line, channel));
}

/* -- opening and closing ---------------------------------------------------------------------- */

lk_status lk_redis_wake_open(const lk_context *context, const char *prefix, lk_redis_wake **ret,
                             lk_error *error)
{
    lk_redis_wake *wake = calloc(1, sizeof *wake);
    if (wake == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
    lk_redis_guard *guard = &wake->guard;
    lk_status status = lk_redis_guard_init(guard, context, error);
    if (status != LK_OK)
        goto no_guard;
    wake->prefix = prefix;
    lk_redis_script_init(&wake->force, force_body);
    wake->waiters = lk_redis_waiters_open();
    if (wake->waiters == NULL) {
        status = lk_fail(error, LK_NO_MEMORY, "out of memory for a Redis guard");
        goto no_waiters;
    }
    status = lk_redis_sub_open(context, guard->redis, on_message, wake, &wake->sub, error);
    if (status != LK_OK)
        goto no_sub;
    *ret = wake;
    return LK_OK;
no_sub:
    lk_redis_waiters_close(wake->waiters);
no_waiters:
    lk_redis_guard_end(guard);
no_guard:
    free(wake);
    return status;
}

void lk_redis_wake_close(void *self)
{
    lk_redis_wake *wake = self;
    lk_redis_sub_close(wake->sub);
    lk_redis_waiters_close(wake->waiters);
    lk_redis_guard_end(&wake->guard);
    free(wake);
}
