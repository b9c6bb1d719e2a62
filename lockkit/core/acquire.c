/*
 * The one acquire loop.
 *
 * Each turn of the loop sends one command: a try, or the undoing of a try whose outcome is unknown.
 * The rules:
 *   - After the deadline there is one last try, and only if no outcome was unknown. So a call ends
 *     by wait_ms plus one command and one clean-up.
 *   - While an outcome is unknown, nothing else is tried: our own orphan would refuse us.
 *   - If an undoing got no answer, the next try has another token. Then that undoing, however late
 *     it arrives, does not free a lock that was granted since.
 *   - A call that fails after an unknown outcome, or while the server has it in a queue, ends with
 *     a clean-up. So a request that arrives late leaves no orphan.
 *   - A clean-up that the server does not confirm goes to the janitor.
 *   - A grant that arrives after the end of its own lease or session does not count, nor does one
 *     that too few replicas have.
 *
 * With lk_options.local_queue a call that may wait joins a queue first: see local_queue.h.
 *
 * Source: random waits after "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
#include "backoff.h"
#include "client.h"

#include <string.h>

#define WAIT_MS_MAX (INT64_C(1) << 40) /* 34 years: keeps sums of microseconds in range */

void core_undo_begin(lk_client *client, const lk_hold *hold)
{
    client_point(client, LK_POINT_CLEANUP, hold->key);
    client_count(&client->stats.cleanups);
}

/* True: the server confirmed that nothing of this attempt is left. */
static bool undo(struct acquire_call *call)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    core_undo_begin(client, hold);
    lk_status status = client->provider->release(client->self, hold);
    bool undone = client_is_freed(status);
    call->may_free_late = call->may_free_late || !undone;
    return undone;
}

/* Counted from before the request was sent: the server begins to count later, never earlier. */
static int64_t lease_end_us(const lk_hold *hold, int64_t sent_us)
{
    return hold->lease_ms == 0 ? INT64_MAX
                               : sent_us + client_valid_us(hold->client, hold->lease_ms);
}

void core_try_begin(struct acquire_call *call)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    hold->attempts++;
    call->attempt.retry_us = 0;
    call->attempt.replicas = 0;
    client_point(client, LK_POINT_TRY, hold->key);
    client_count(&client->stats.attempts);
    call->attempt.since_us = client_now_us(client);
}

lk_status core_try_end(struct acquire_call *call, lk_status status)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    if (status == LK_OK) {
        hold_set_valid_until(hold, lease_end_us(hold, call->attempt.since_us));
        hold->acquired_us = client_now_us(client);
        bool in_time = hold->acquired_us < hold_valid_until_us(hold) && hold_alive(hold);
        if (in_time && call->attempt.replicas >= client->options.replicas)
            return LK_OK;
        if (in_time) {
            status = undo(call) ? LK_UNAVAILABLE : LK_UNKNOWN;
        } else {
            /* The server may still hold it for us. A guard without LK_CAP_OWNER could free another
             * holder's lock, so its lease ends this one. */
            call->outcome_unknown = (client->provider->info.caps & LK_CAP_OWNER) != 0;
            status = LK_BUSY;
        }
    }
    if (status == LK_UNKNOWN || status == LK_PROTOCOL)
        call->outcome_unknown = true;
    if (status == LK_BUSY)
        client_count(&client->stats.refusals);
    call->was_unknown = call->was_unknown || call->outcome_unknown;
    return status;
}

static lk_status try_once(struct acquire_call *call)
{
    lk_client *client = call->client;
    core_try_begin(call);
    return core_try_end(call, client->provider->try_acquire(client->self, &call->attempt));
}

/* Sleeps a random time between retry_min and a range that doubles up to retry_max.
 * True: a holder of this client handed its hold over in the meantime. */
static bool sleep_with_jitter(struct acquire_call *call, int64_t until_us)
{
    const lk_env *env = &call->client->env;
    int64_t min_us = call->client->options.retry_min_ms * 1000;
    int64_t max_us = call->client->options.retry_max_ms * 1000;
    int64_t range_us = lk_backoff(min_us, max_us, ++call->pauses);
    uint64_t span_us = (uint64_t)(range_us - min_us) + 1;
    int64_t sleep_us = min_us + (int64_t)(env->random(env->ctx) % span_us);
    int64_t left_us = until_us - env->now_us(env->ctx);
    if (sleep_us > left_us)
        sleep_us = left_us;
    if (call->queued)
        return local_queue_sleep(call->client, &call->waiter, sleep_us);
    if (sleep_us > 0)
        env->sleep_us(env->ctx, sleep_us);
    return false;
}

/* Waits before the next turn. Returns as sleep_with_jitter(). */
static bool pause_after(struct acquire_call *call, lk_status status)
{
    lk_client *client = call->client;
    lk_attempt *attempt = &call->attempt;
    int64_t until_us = attempt->deadline_us;
    if (attempt->retry_us != 0) {
        int64_t now_us = client_now_us(client), retry_us = attempt->retry_us;
        if (retry_us <= now_us) /* should be free and is not: do not wait until the deadline */
            retry_us = now_us + client->options.retry_min_ms * 1000;
        until_us = retry_us < until_us ? retry_us : until_us;
    }
    if (status == LK_BUSY && !call->outcome_unknown) {
        client_point(client, LK_POINT_WAIT, attempt->hold->key);
        if (client->provider->wait) {
            call->waited = true;
            if (client->provider->wait(client->self, attempt, until_us) == LK_OK)
                return false;
        }
    }
    return sleep_with_jitter(call, until_us);
}

/* True if another turn may change the status. A server that is away at the first try ends the call.
 */
static bool worth_another_turn(const struct acquire_call *call, lk_status status)
{
    return status == LK_BUSY || status == LK_UNKNOWN ||
           (status == LK_UNAVAILABLE && call->attempt.hold->attempts > 1);
}

/* An undoing without an answer may still arrive, so the next try gets another token. For a token of
 * an owner the provider does that, because slot is 0. */
static void rename_attempt(struct acquire_call *call)
{
    lk_hold *hold = call->attempt.hold;
    if (!call->may_free_late)
        return;
    client_make_token(call->client, call->request->owner, hold->token);
    hold->private_.slot = 0;
    call->may_free_late = false;
}

/* Waits in the queue until this call should ask the server, or until the deadline. True: a holder
 * of this client handed its hold over. */
static bool wait_in_queue(struct acquire_call *call)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    int64_t deadline_us = call->attempt.deadline_us;
    call->queued = hold->private_.queues && client_now_us(client) < deadline_us;
    return call->queued && local_queue_join(client, &call->waiter, hold, deadline_us);
}

static lk_status acquire_loop(struct acquire_call *call)
{
    lk_attempt *attempt = &call->attempt;
    lk_status status = LK_BUSY;
    if (wait_in_queue(call))
        return LK_OK;
    for (;;) {
        attempt->last = client_now_us(call->client) >= attempt->deadline_us;
        if (attempt->last && call->was_unknown)
            return status;
        if (call->outcome_unknown) {
            call->outcome_unknown = !undo(call);
            if (!call->outcome_unknown) {
                rename_attempt(call);
                continue;
            }
        } else {
            status = try_once(call);
            if (call->queued && status != LK_OK && status != LK_BUSY)
                local_queue_break_up(call->client, &call->waiter);
            if (attempt->last || !worth_another_turn(call, status))
                return status;
        }
        if (pause_after(call, status))
            return LK_OK;
    }
}

/* -- checking the request --------------------------------------------------------------------- */

lk_status core_check(const lk_client *client, const lk_request *request)
{
    if (!client || !lk_key_valid(request->key) || request->wait_ms < 0 ||
        (request->owner && !client_owner_valid(request->owner)))
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

static void fill_hold(lk_client *client, const lk_request *request, lk_hold *hold)
{
    *hold = (lk_hold){.client = client,
                      .mode = request->mode,
                      .permits = request->permits ? request->permits : 1};
    memcpy(hold->key, request->key, strlen(request->key) + 1);
    client_make_token(client, request->owner, hold->token);
    if (client->provider->info.caps & LK_CAP_LEASE)
        hold->lease_ms = request->lease_ms ? request->lease_ms : client->options.lease_ms;
    hold->private_.on_lost = request->on_lost;
    hold->private_.on_lost_arg = request->on_lost_arg;
    hold->private_.watched = watchdog_wants(client, request);
    hold->private_.queues =
        client->queue && !request->owner && request->mode == LK_EXCLUSIVE && hold->permits == 1;
}

/* Cleans up after a call that failed. */
static void leave_nothing(const struct acquire_call *call)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    if (call->was_unknown)
        core_undo_begin(client, hold);
    if (!client_is_freed(client->provider->release(client->self, hold)))
        janitor_add(client, hold);
}

/* -- the public functions --------------------------------------------------------------------- */

static void grant(const struct acquire_call *call)
{
    lk_client *client = call->client;
    lk_hold *hold = call->attempt.hold;
    hold->wait_us = hold->acquired_us - call->start_us;
    hold_set_state(hold, HOLD_HELD);
    client_count(&client->stats.grants);
    if (hold->private_.watched) {
        if (client->provider->alive && client->provider->renew)
            hold->private_.give_up_us = INT64_MAX; /* a session has no maximum hold time */
        else if (watchdog_renews(client, call->request))
            hold->private_.give_up_us = watchdog_give_up_us(client, hold, hold->acquired_us);
        watchdog_add(client, hold);
    }
    client_point(client, LK_POINT_ACQUIRED, hold->key);
}

lk_status core_begin(struct acquire_call *call, lk_client *client, const lk_request *request,
                     int64_t deadline_us, lk_hold *hold)
{
    *call = (struct acquire_call){.client = client,
                                  .request = request,
                                  .attempt = {.hold = hold, .deadline_us = deadline_us},
                                  .start_us = client_now_us(client)};
    fill_hold(client, request, hold);
    lk_status status = hold->private_.watched ? watchdog_start(client) : LK_OK;
    if (status == LK_OK)
        atomic_fetch_add_explicit(&client->n_holds, 1, memory_order_relaxed);
    return status;
}

lk_status core_end(const struct acquire_call *call, lk_status status)
{
    if (status == LK_OK) {
        grant(call);
        return status;
    }
    atomic_fetch_sub_explicit(&call->client->n_holds, 1, memory_order_release);
    if (status != LK_BUSY)
        return status;
    client_count(&call->client->stats.timeouts);
    return LK_TIMEOUT;
}

lk_status core_acquire(lk_client *client, const lk_request *request, int64_t deadline_us,
                       lk_hold *hold)
{
    struct acquire_call call;
    lk_status status = core_begin(&call, client, request, deadline_us, hold);
    if (status != LK_OK)
        return status;
    status = acquire_loop(&call);
    if (call.queued)
        local_queue_leave(client, &call.waiter, status != LK_OK);
    if (call.waited && client->provider->wait_end)
        client->provider->wait_end(client->self, &call.attempt);
    if (status != LK_OK && (call.was_unknown || call.attempt.queued))
        leave_nothing(&call);
    return core_end(&call, status);
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
