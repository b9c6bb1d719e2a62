#include "watchdog.h"
#include "client.h"
#include "monotonic.h"
#include "thread.h"

#include <assert.h>

enum {
    RENEWALS_PER_LEASE = 3,
    RETRIES_PER_LEASE = 10,
    LEASES_PER_HOLD = 10,
    RETRY_MS_MIN = 5,
    IDLE_POLL_US = 1000
};

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* -- the list: caller holds the lock ---------------------------------------------------------- */

/* Searches from the back: holds with one lease length are due in the order of their arrival. A hold
 * whose session has ended is due at once. That is tested under the lock, so that no hold slips past
 * lk_session_ended(). */
static void insert(struct watchdog *watchdog, lk_hold *hold)
{
    if (!hold_alive(hold))
        hold->private_.renew_at_us = 0;
    lk_hold *before = watchdog->last;
    while (before && before->private_.renew_at_us > hold->private_.renew_at_us)
        before = before->private_.prev;
    lk_hold *after = before ? before->private_.next : watchdog->first;
    hold->private_.prev = before;
    hold->private_.next = after;
    *(before ? &before->private_.next : &watchdog->first) = hold;
    *(after ? &after->private_.prev : &watchdog->last) = hold;
}

static void unlink_hold(struct watchdog *watchdog, lk_hold *hold)
{
    lk_hold *before = hold->private_.prev, *after = hold->private_.next;
    *(before ? &before->private_.next : &watchdog->first) = after;
    *(after ? &after->private_.prev : &watchdog->last) = before;
    hold->private_.prev = hold->private_.next = NULL;
}

static bool is_listed(const struct watchdog *watchdog, const lk_hold *hold)
{
    return hold->private_.prev || watchdog->first == hold;
}

/* -- one hold: the lock is not held, the hold is busy ----------------------------------------- */

static void lose(lk_client *client, lk_hold *hold, lk_loss cause)
{
    hold_set_state(hold, cause == LK_LOSS_DELETED ? HOLD_GONE : HOLD_LAPSED);
    client_count(&client->stats.lost);
    client_point(client, LK_POINT_LOST, hold->key);
    if (hold->private_.on_lost)
        hold->private_.on_lost(hold->private_.on_lost_arg, hold, cause);
}

/* Sets when the hold is due next: renewal, end of the lease, or maximum hold time. */
static void schedule(lk_hold *hold, int64_t renew_at_us)
{
    int64_t due_us = hold_valid_until_us(hold);
    if (hold->private_.give_up_us != 0)
        due_us = min_i64(due_us, min_i64(renew_at_us, hold->private_.give_up_us));
    hold->private_.renew_at_us = due_us;
}

/* True: still ours, scheduled again. False: lost. */
static bool attend(lk_client *client, lk_hold *hold)
{
    bool renewed = hold->private_.give_up_us != 0;
    if (!hold_alive(hold)) {
        lose(client, hold, LK_LOSS_SESSION);
        return false;
    }
    if (renewed)
        client_point(client, LK_POINT_RENEW, hold->key);
    int64_t sent_us = client_now_us(client);
    if (sent_us >= hold_valid_until_us(hold)) {
        lose(client, hold, client->provider->alive ? LK_LOSS_SESSION : LK_LOSS_EXPIRED);
        return false;
    }
    /* uncovered: a hold that is not renewed is due at its end only */
    if (renewed && sent_us >= hold->private_.give_up_us) {
        lose(client, hold, LK_LOSS_MAX_HOLD);
        return false;
    }
    int64_t lease_us = hold->lease_ms * 1000;
    int64_t again_us = 0;
    /* uncovered: the same */
    if (renewed) {
        lk_status status = client->provider->renew(client->self, hold, hold->lease_ms);
        if (status == LK_LOST) { /* its session may have ended during the question */
            lose(client, hold, hold_alive(hold) ? LK_LOSS_DELETED : LK_LOSS_SESSION);
            return false;
        }
        if (status == LK_OK) {
            client_count(&client->stats.renewals);
            hold_set_valid_until(hold, sent_us + client_valid_us(client, hold->lease_ms));
            again_us = sent_us + lease_us / RENEWALS_PER_LEASE;
        } else {
            int64_t pause_us = lease_us / RETRIES_PER_LEASE;
            if (pause_us < RETRY_MS_MIN * 1000)
                pause_us = RETRY_MS_MIN * 1000;
            again_us = client_now_us(client) + pause_us;
        }
    }
    schedule(hold, again_us);
    return true;
}

/* The lock is held on entry and on return. */
static int64_t step(lk_client *client)
{
    struct watchdog *watchdog = &client->watchdog;
    while (watchdog->first && watchdog->first->private_.renew_at_us <= client_now_us(client)) {
        lk_hold *hold = watchdog->first;
        unlink_hold(watchdog, hold);
        watchdog->busy = hold;
        pthread_mutex_unlock(&watchdog->lock);
        bool keep = attend(client, hold);
        pthread_mutex_lock(&watchdog->lock);
        if (keep)
            insert(watchdog, hold);
        watchdog->busy = NULL;
        pthread_cond_broadcast(&watchdog->idle);
    }
    return watchdog->first ? watchdog->first->private_.renew_at_us : INT64_MAX;
}

int64_t watchdog_step(lk_client *client)
{
    pthread_mutex_lock(&client->watchdog.lock);
    int64_t due_us = step(client);
    pthread_mutex_unlock(&client->watchdog.lock);
    return due_us;
}

/* -- the thread ------------------------------------------------------------------------------- */

static void *run(void *arg)
{
    lk_client *client = arg;
    struct watchdog *watchdog = &client->watchdog;
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->stop) {
        watchdog->wake_at_us = 0;
        int64_t due_us = step(client);
        watchdog->wake_at_us = due_us;
        lk_wait_for(&watchdog->wake, &watchdog->lock, due_us - client_now_us(client));
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

lk_status watchdog_start(lk_client *client)
{
    struct watchdog *watchdog = &client->watchdog;
    if (atomic_load(&watchdog->started) || watchdog->manual)
        return LK_OK;
    pthread_mutex_lock(&watchdog->lock);
    if (!atomic_load(&watchdog->started))
        atomic_store(&watchdog->started, lk_thread_start(&watchdog->thread, run, client));
    pthread_mutex_unlock(&watchdog->lock);
    return atomic_load(&watchdog->started) ? LK_OK : LK_NO_MEMORY;
}

/* -- called by the core ----------------------------------------------------------------------- */

bool watchdog_renews(const lk_client *client, const lk_request *request)
{
    return (client->provider->info.caps & LK_CAP_RENEW) != 0 && !client->options.watchdog_off &&
           (request->lease_ms == 0 || request->renewed);
}

int64_t watchdog_give_up_us(const lk_client *client, const lk_hold *hold, int64_t since_us)
{
    int64_t max_ms = client->options.max_hold_ms;
    if (max_ms == 0)
        max_ms = LEASES_PER_HOLD * max_i64(client->options.lease_ms, hold->lease_ms);
    return since_us + 1000 * max_ms;
}

bool watchdog_wants(const lk_client *client, const lk_request *request)
{
    const lk_provider *provider = client->provider;
    if (provider->alive)
        return provider->renew || request->on_lost;
    return (provider->info.caps & LK_CAP_LEASE) != 0 &&
           (watchdog_renews(client, request) || request->on_lost);
}

/* Most holds end before the thread wakes. It never sees them. */
static void wake_for_first(struct watchdog *watchdog)
{
    if (!watchdog->first || watchdog->first->private_.renew_at_us >= watchdog->wake_at_us)
        return;
    watchdog->wake_at_us = watchdog->first->private_.renew_at_us;
    pthread_cond_signal(&watchdog->wake);
}

void watchdog_add(lk_client *client, lk_hold *hold)
{
    struct watchdog *watchdog = &client->watchdog;
    int64_t lease_us = hold->lease_ms * 1000;
    schedule(hold, hold_valid_until_us(hold) - lease_us + lease_us / RENEWALS_PER_LEASE);
    pthread_mutex_lock(&watchdog->lock);
    insert(watchdog, hold);
    wake_for_first(watchdog);
    pthread_mutex_unlock(&watchdog->lock);
}

void lk_session_ended(const lk_context *context)
{
    struct watchdog *watchdog = &context->client->watchdog;
    pthread_mutex_lock(&watchdog->lock);
    for (lk_hold *hold = watchdog->first, *next; hold; hold = next) {
        next = hold->private_.next;
        if (hold->private_.renew_at_us == 0 || hold_alive(hold)) /* moved already, or still alive */
            continue;
        unlink_hold(watchdog, hold);
        insert(watchdog, hold);
    }
    wake_for_first(watchdog);
    pthread_mutex_unlock(&watchdog->lock);
}

void watchdog_remove(lk_client *client, lk_hold *hold)
{
    struct watchdog *watchdog = &client->watchdog;
    pthread_mutex_lock(&watchdog->lock);
    assert(watchdog->busy != hold || watchdog->manual ||
           !pthread_equal(pthread_self(), watchdog->thread)); /* from its own on_lost */
    while (watchdog->busy == hold) {
        if (!watchdog->manual) {
            pthread_cond_wait(&watchdog->idle, &watchdog->lock);
        } else { /* the step that is busy with it runs on this thread */
            pthread_mutex_unlock(&watchdog->lock);
            client->env.sleep_us(client->env.ctx, IDLE_POLL_US);
            pthread_mutex_lock(&watchdog->lock);
        }
    }
    if (is_listed(watchdog, hold))
        unlink_hold(watchdog, hold);
    pthread_mutex_unlock(&watchdog->lock);
}

void watchdog_open(struct watchdog *watchdog)
{
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_cond_init(&watchdog->wake, NULL);
    pthread_cond_init(&watchdog->idle, NULL);
}

void watchdog_close(struct watchdog *watchdog)
{
    assert(!watchdog->first && !watchdog->busy);
    if (atomic_load(&watchdog->started)) {
        pthread_mutex_lock(&watchdog->lock);
        watchdog->stop = true;
        pthread_cond_signal(&watchdog->wake);
        pthread_mutex_unlock(&watchdog->lock);
        pthread_join(watchdog->thread, NULL);
    }
    pthread_cond_destroy(&watchdog->idle);
    pthread_cond_destroy(&watchdog->wake);
    pthread_mutex_destroy(&watchdog->lock);
}
