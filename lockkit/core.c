/*
 * The one acquire loop, and what can be done with a hold.
 *
 * Each turn of the loop sends one command: a try, or the undoing of a try whose outcome is unknown.
 * The rules:
 *   - no turn begins after the deadline but one last try, and that only if nothing is in doubt, so
 *     that a call ends by wait_ms plus one command and one clean-up
 *   - while an attempt is in doubt nothing else is tried: our own orphan would refuse us
 *   - a call that fails after a doubt ends with a clean-up, so that a request which reached the
 *     server late leaves no orphan either
 *   - a grant that arrives after its own lease or session has ended was never had; nor was one that
 *     too few replicas have
 *
 * With lk_options.local_queue a call that may wait stands in line first: see local_queue.h.
 *
 * Random waits between tries after «Exponential Backoff And Jitter» (AWS Architecture Blog, 2015).
 */
#include "client.h"

#include <assert.h>
#include <string.h>

#define WAIT_MS_MAX (INT64_C(1) << 40) /* 34 years: keeps sums of microseconds in range */

struct pursuit {
    lk_client *client;
    lk_attempt attempt;
    int64_t range_us; /* of the next random sleep */
    struct local_waiter waiter;
    bool queued;   /* waiter has joined a line: leaving is due */
    bool waited;   /* wait() was called: wait_end() is due */
    bool in_doubt; /* the server may hold our token without our having been granted it */
    bool doubted;  /* ... at some time in this call */
};

/* Returns true when nothing of this attempt is left on the server. */
static bool undo(lk_client *client, lk_hold *hold)
{
    client_point(client, LK_POINT_CLEANUP, hold->key);
    client_count(&client->stats.cleanups);
    lk_status status = client->provider->release(client->self, hold);
    return status == LK_OK || status == LK_LOST;
}

/* Counted from before the request was sent: the server's own count began later, never earlier. */
static int64_t lease_end_us(const lk_hold *hold, int64_t sent_us)
{
    return hold->lease_ms == 0 ? INT64_MAX
                               : sent_us + client_valid_us(hold->client, hold->lease_ms);
}

static lk_status try_once(struct pursuit *p)
{
    lk_client *client = p->client;
    lk_hold *hold = p->attempt.hold;
    hold->attempts++;
    p->attempt.retry_us = 0;
    p->attempt.replicas = 0;
    client_point(client, LK_POINT_TRY, hold->key);
    client_count(&client->stats.attempts);
    p->attempt.since_us = client_now_us(client);
    lk_status status = client->provider->try_acquire(client->self, &p->attempt);
    if (status == LK_OK) {
        hold_set_valid_until(hold, lease_end_us(hold, p->attempt.since_us));
        hold->acquired_us = client_now_us(client);
        bool in_time = hold->acquired_us < hold_valid_until_us(hold) && hold_alive(hold);
        if (in_time && p->attempt.replicas >= client->options.replicas)
            return LK_OK;
        if (in_time) {
            status = undo(client, hold) ? LK_UNAVAILABLE : LK_UNKNOWN;
        } else {
            /* The server may not think so yet. A guard that cannot tell whose lock it frees had
             * better leave it to the lease. */
            p->in_doubt = (client->provider->info.caps & LK_CAP_OWNER) != 0;
            status = LK_BUSY;
        }
    }
    if (status == LK_UNKNOWN || status == LK_PROTOCOL)
        p->in_doubt = true;
    if (status == LK_BUSY)
        client_count(&client->stats.refusals);
    p->doubted = p->doubted || p->in_doubt;
    return status;
}

/* A random time from retry_min to the current range, which doubles up to retry_max. True: granted
 * meanwhile, by a holder of this client. */
static bool sleep_with_jitter(struct pursuit *p, int64_t until_us)
{
    const lk_env *env = &p->client->env;
    int64_t min_us = p->client->options.retry_min_ms * 1000;
    int64_t max_us = p->client->options.retry_max_ms * 1000;
    p->range_us = p->range_us * 2 < max_us ? p->range_us * 2 : max_us;
    uint64_t span_us = (uint64_t)(p->range_us - min_us) + 1;
    int64_t sleep_us = min_us + (int64_t)(env->random(env->ctx) % span_us);
    int64_t left_us = until_us - env->now_us(env->ctx);
    if (sleep_us > left_us)
        sleep_us = left_us;
    if (p->queued)
        return local_queue_sleep(p->client, &p->waiter, sleep_us);
    if (sleep_us > 0)
        env->sleep_us(env->ctx, sleep_us);
    return false;
}

/* Until the next turn is worth while. True: as sleep_with_jitter(). */
static bool pause_after(struct pursuit *p, lk_status status)
{
    lk_client *client = p->client;
    lk_attempt *attempt = &p->attempt;
    int64_t until_us = attempt->deadline_us;
    if (attempt->retry_us != 0) {
        int64_t now_us = client_now_us(client), retry_us = attempt->retry_us;
        if (retry_us <= now_us) /* should be free, and is not: no reason to wait to the deadline */
            retry_us = now_us + client->options.retry_min_ms * 1000;
        until_us = retry_us < until_us ? retry_us : until_us;
    }
    if (status == LK_BUSY && !p->in_doubt) {
        client_point(client, LK_POINT_WAIT, attempt->hold->key);
        if (client->provider->wait) {
            p->waited = true;
            if (client->provider->wait(client->self, attempt, until_us) == LK_OK)
                return false;
        }
    }
    return sleep_with_jitter(p, until_us);
}

/* Statuses that another turn may change. Away at the first attempt is away. */
static bool worth_another_turn(const struct pursuit *p, lk_status status)
{
    return status == LK_BUSY || status == LK_UNKNOWN ||
           (status == LK_UNAVAILABLE && p->attempt.hold->attempts > 1);
}

/* Until it is our turn to ask the server, or time for the last try. True: granted by a holder of
 * this client. */
static bool stand_in_line(struct pursuit *p)
{
    lk_client *client = p->client;
    lk_hold *hold = p->attempt.hold;
    int64_t deadline_us = p->attempt.deadline_us;
    p->queued = hold->private_.queues && client_now_us(client) < deadline_us;
    return p->queued && local_queue_join(client, &p->waiter, hold, deadline_us);
}

static lk_status pursue(struct pursuit *p)
{
    lk_attempt *attempt = &p->attempt;
    lk_status status = LK_BUSY;
    if (stand_in_line(p))
        return LK_OK;
    for (;;) {
        attempt->last = client_now_us(p->client) >= attempt->deadline_us;
        if (attempt->last && p->doubted)
            return status;
        if (p->in_doubt) {
            p->in_doubt = !undo(p->client, attempt->hold);
            if (!p->in_doubt)
                continue;
        } else {
            status = try_once(p);
            if (p->queued && status != LK_OK && status != LK_BUSY)
                local_queue_break_up(p->client, &p->waiter);
            if (attempt->last || !worth_another_turn(p, status))
                return status;
        }
        if (pause_after(p, status))
            return LK_OK;
    }
}

/* -- checking the request ------------------------------------------------------------------------
 */

static bool owner_valid(const char *owner)
{
    size_t n = 0;
    for (; owner[n]; n++)
        if (n == LK_OWNER_MAX || owner[n] <= ' ' || owner[n] > '~')
            return false;
    return n > 0;
}

lk_status core_check(const lk_client *client, const lk_request *request)
{
    if (!client || !client_key_valid(request->key) || request->wait_ms < 0 ||
        (request->owner && !owner_valid(request->owner)))
        return LK_INVALID;
    if (request->lease_ms != 0 &&
        (request->lease_ms < LK_LEASE_MS_MIN || request->lease_ms > LK_LEASE_MS_MAX))
        return LK_INVALID;
    if (request->permits > 1 && !(client->provider->info.caps & LK_CAP_PERMITS))
        return LK_UNSUPPORTED;
    if (request->mode == LK_SHARED)
        return client->provider->info.caps & LK_CAP_SHARED ? LK_OK : LK_UNSUPPORTED;
    return request->mode == LK_EXCLUSIVE ? LK_OK : LK_INVALID;
}

int64_t core_deadline_us(const lk_client *client, int64_t wait_ms)
{
    return client_now_us(client) + (wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX) * 1000;
}

/* "client_id:owner", or "client_id:random". */
static void make_token(const lk_client *client, const char *owner, char *token)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(client->context.client_id);
    memcpy(token, client->context.client_id, n);
    token[n++] = ':';
    if (owner) {
        memcpy(token + n, owner, strlen(owner) + 1);
        return;
    }
    for (int word = 0; word < 2; word++) {
        uint64_t bits = client->env.random(client->env.ctx);
        for (int i = 0; i < 16; i++, bits >>= 4)
            token[n++] = digits[bits & 15];
    }
    token[n] = '\0';
}

static void fill_hold(lk_client *client, const lk_request *request, lk_hold *hold)
{
    *hold = (lk_hold){.client = client,
                      .mode = request->mode,
                      .permits = request->permits ? request->permits : 1};
    memcpy(hold->key, request->key, strlen(request->key) + 1);
    make_token(client, request->owner, hold->token);
    if (client->provider->info.caps & LK_CAP_LEASE)
        hold->lease_ms = request->lease_ms ? request->lease_ms : client->options.lease_ms;
    hold->private_.on_lost = request->on_lost;
    hold->private_.on_lost_arg = request->on_lost_arg;
    hold->private_.watched = watchdog_wants(client, request);
    hold->private_.queues =
        client->queue && !request->owner && request->mode == LK_EXCLUSIVE && hold->permits == 1;
}

/* -- the public functions ------------------------------------------------------------------------
 */

static void grant(lk_client *client, const lk_request *request, lk_hold *hold, int64_t start_us)
{
    hold->wait_us = hold->acquired_us - start_us;
    hold_set_state(hold, HOLD_HELD);
    atomic_fetch_add_explicit(&client->n_holds, 1, memory_order_relaxed);
    client_count(&client->stats.grants);
    if (hold->private_.watched) {
        if (client->provider->alive && client->provider->renew)
            hold->private_.give_up_us = INT64_MAX; /* signs of life keep nobody from the lock */
        else if (watchdog_renews(client, request))
            hold->private_.give_up_us = hold->acquired_us + client->options.max_hold_ms * 1000;
        watchdog_add(client, hold);
    }
    client_point(client, LK_POINT_ACQUIRED, hold->key);
}

lk_status core_acquire(lk_client *client, const lk_request *request, int64_t deadline_us,
                       lk_hold *hold)
{
    int64_t start_us = client_now_us(client);
    fill_hold(client, request, hold);
    if (hold->private_.watched && watchdog_start(client) != LK_OK)
        return LK_NO_MEMORY;
    struct pursuit p = {.client = client,
                        .attempt = {.hold = hold, .deadline_us = deadline_us},
                        .range_us = client->options.retry_min_ms * 1000};
    lk_status status = pursue(&p);
    if (p.queued)
        local_queue_leave(client, &p.waiter, status != LK_OK);
    if (p.waited && client->provider->wait_end)
        client->provider->wait_end(client->self, &p.attempt);
    if (status == LK_OK) {
        grant(client, request, hold, start_us);
        return LK_OK;
    }
    if (p.doubted)
        undo(client, hold);
    if (status != LK_BUSY)
        return status;
    client_count(&client->stats.timeouts);
    return LK_TIMEOUT;
}

lk_status lk_acquire(lk_client *client, const lk_request *request, lk_hold *hold)
{
    hold_set_state(hold, HOLD_NONE); /* releasing it after a failure is harmless */
    lk_status status = core_check(client, request);
    if (status != LK_OK)
        return status;
    return core_acquire(client, request, core_deadline_us(client, request->wait_ms), hold);
}

lk_status lk_try_acquire(lk_client *client, const char *key, lk_hold *hold)
{
    return lk_acquire(client, &(lk_request){.key = key}, hold);
}

lk_status lk_check(const lk_hold *hold, int64_t *ret_left_ms)
{
    if (hold_state(hold) != HOLD_HELD || !hold_alive(hold))
        return LK_LOST;
    int64_t until_us = hold_valid_until_us(hold), left_ms = INT64_MAX;
    if (until_us != INT64_MAX) {
        int64_t left_us = until_us - client_now_us(hold->client);
        if (left_us <= 0)
            return LK_LOST;
        left_ms = left_us / 1000;
    }
    if (ret_left_ms)
        *ret_left_ms = left_ms;
    return LK_OK;
}

lk_status lk_extend(lk_hold *hold, int64_t lease_ms)
{
    lk_client *client = hold->client;
    if (lease_ms < LK_LEASE_MS_MIN || lease_ms > LK_LEASE_MS_MAX)
        return LK_INVALID;
    if (hold_state(hold) == HOLD_NONE)
        return LK_LOST;
    if (!(client->provider->info.caps & LK_CAP_RENEW))
        return LK_UNSUPPORTED;
    if (hold->private_.watched)
        watchdog_remove(client, hold); /* one renewal at a time, and the length is now another */
    if (hold_state(hold) != HOLD_HELD)
        return LK_LOST;
    int64_t sent_us = client_now_us(client), was_until_us = hold_valid_until_us(hold);
    int64_t until_us = sent_us + client_valid_us(client, lease_ms);
    /* It may shorten the lease, and the answer may be lost: trust the shorter one from now on. */
    if (until_us < was_until_us)
        hold_set_valid_until(hold, until_us);
    lk_status status = client->provider->renew(client->self, hold, lease_ms);
    if (status == LK_LOST) {
        client_count(&client->stats.lost);
        hold_set_state(hold, HOLD_GONE);
        client_point(client, LK_POINT_LOST, hold->key);
        return LK_LOST;
    }
    if (status == LK_OK) {
        client_count(&client->stats.renewals);
        hold->lease_ms = lease_ms;
        hold_set_valid_until(hold, until_us);
    } else if (status == LK_UNAVAILABLE) {
        hold_set_valid_until(hold, was_until_us);
    }
    if (hold->private_.watched)
        watchdog_add(client, hold);
    return status;
}

/* Once more if the first command certainly did nothing; or, where a release can free none but our
 * own lock, if its answer was lost though the server does not hang (it restarted, the connection
 * was cut while idle): better than leaving the lock to its lease. */
static lk_status release_on_server(lk_client *client, lk_hold *hold)
{
    int64_t sent_us = client_now_us(client);
    lk_status status = client->provider->release(client->self, hold);
    bool quick = client_now_us(client) - sent_us < client->options.command_timeout_ms * 1000 / 2;
    bool again = status == LK_UNAVAILABLE ||
                 (status == LK_UNKNOWN && (client->provider->info.caps & LK_CAP_OWNER));
    if (!again || !quick)
        return status;
    lk_status second = client->provider->release(client->self, hold);
    /* After an unknown one only success is sure: LOST may be its doing, and away says nothing of
     * it.
     */
    return second != LK_OK && status == LK_UNKNOWN ? LK_UNKNOWN : second;
}

bool lk_release_answered(const lk_context *context, lk_hold *hold, lk_status status)
{
    lk_client *client = context->client;
    bool unknown = status != LK_OK && status != LK_LOST, sent = status != LK_UNAVAILABLE;
    if (unknown) {
        client_point(client, LK_POINT_CLEANUP, hold->key);
        client_count(&client->stats.cleanups);
        status = client->provider->release(client->self, hold);
        if (status == LK_LOST && sent)
            status = LK_OK; /* may be the first one's doing */
    }
    if (status == LK_LOST)
        client_count(&client->stats.lost);
    return status == LK_OK || status == LK_LOST;
}

/* True: on its way. */
static bool post_release(lk_client *client, const lk_hold *hold)
{
    return client->options.release_unconfirmed && client->provider->post_release &&
           client->provider->post_release(client->self, hold);
}

lk_status lk_release(lk_hold *hold)
{
    if (hold_state(hold) == HOLD_NONE)
        return LK_LOST;
    lk_client *client = hold->client;
    if (hold->private_.watched)
        watchdog_remove(client, hold);
    enum hold_state was = hold_state(hold);
    hold_set_state(hold, HOLD_NONE);
    client_point(client, LK_POINT_RELEASE, hold->key);
    lk_status status = LK_OK;
    bool handed_over = was == HOLD_HELD && client->queue && local_queue_hand_over(client, hold);
    if (!handed_over) {
        /* Gone: asking again might take the lock from a later hold of the same owner. */
        if (was == HOLD_GONE)
            status = LK_LOST;
        else if (was != HOLD_HELD || !post_release(client, hold))
            status = release_on_server(client, hold);
        if (client->queue)
            local_queue_knock(client, hold);
    }
    client_count(&client->stats.releases);
    client_point(client, LK_POINT_RELEASED, hold->key);
    atomic_fetch_sub_explicit(&client->n_holds, 1, memory_order_release);
    return status == LK_OK && was != HOLD_HELD ? LK_LOST : status;
}
