/* Checking, extending and releasing a hold. */
#include "client.h"

#include <assert.h>

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
        watchdog_remove(client, hold); /* one renewal at a time, and the length changes */
    if (hold_state(hold) != HOLD_HELD)
        return LK_LOST;
    int64_t sent_us = client_now_us(client), was_until_us = hold_valid_until_us(hold);
    int64_t until_us = sent_us + client_valid_us(client, lease_ms);
    /* The new lease may be shorter, and its answer may get lost: trust the shorter one. */
    if (until_us < was_until_us)
        hold_set_valid_until(hold, until_us);
    /* It may be longer, and its answer may get lost: a release is repeated until its end. */
    int64_t asked_us = sent_us + lease_ms * 1000;
    if (asked_us > hold->private_.asked_until_us)
        hold->private_.asked_until_us = asked_us;
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
        if (hold->private_.give_up_us != 0) { /* a holder that extends does not hang */
            int64_t give_up_us = watchdog_give_up_us(client, hold, sent_us);
            hold->private_.give_up_us = give_up_us > until_us ? give_up_us : until_us;
        }
    } else if (status == LK_UNAVAILABLE) {
        hold_set_valid_until(hold, was_until_us);
    }
    if (hold->private_.watched)
        watchdog_add(client, hold);
    return status;
}

void client_release(lk_client *client, lk_hold *const *holds, size_t n, lk_status *statuses)
{
    if (n > 1 && client->provider->release_each) {
        client->provider->release_each(client->self, holds, n, statuses);
        return;
    }
    for (size_t i = 0; i < n; i++)
        statuses[i] = client->provider->release(client->self, holds[i]);
}

static bool worth_repeating(const lk_client *client, lk_status status)
{
    return status == LK_UNAVAILABLE ||
           (status == LK_UNKNOWN && (client->provider->info.caps & LK_CAP_OWNER));
}

/* Sends a second release if the first certainly did nothing. If the first was not answered, a
 * second one is sent only where a release can free no lock but our own, and only if the server does
 * not hang: it has restarted, or the connection was cut while idle. */
static void release_on_server(lk_client *client, lk_hold *const *holds, size_t n,
                              lk_status *statuses)
{
    lk_hold *again[LK_EACH_MAX];
    size_t of[LK_EACH_MAX], n_again = 0;
    lk_status second[LK_EACH_MAX];
    int64_t sent_us = client_now_us(client);
    client_release(client, holds, n, statuses);
    bool quick = client_now_us(client) - sent_us < client->options.command_timeout_ms * 1000 / 2;
    for (size_t i = 0; i < n && quick; i++) {
        if (worth_repeating(client, statuses[i])) {
            again[n_again] = holds[i];
            of[n_again++] = i;
        }
    }
    client_release(client, again, n_again, second);
    /* After an unknown first release only LK_OK is sure: LK_LOST may be its effect, and
     * LK_UNAVAILABLE says nothing about it. */
    for (size_t k = 0; k < n_again; k++)
        if (second[k] == LK_OK || statuses[of[k]] != LK_UNKNOWN)
            statuses[of[k]] = second[k];
}

/* One hold's release. */
struct ending {
    lk_hold *hold; /* NULL: it was finished before */
    enum hold_state was;
    bool handed_over;
    lk_status status;
};

/* True: the server is to be asked. */
static bool ending_begin(lk_client *client, struct ending *e, lk_hold *hold)
{
    *e = (struct ending){.status = LK_LOST};
    if (hold_state(hold) == HOLD_NONE)
        return false;
    assert(hold->client == client);
    if (hold->private_.watched)
        watchdog_remove(client, hold);
    e->hold = hold;
    e->was = hold_state(hold);
    hold_set_state(hold, HOLD_NONE);
    client_point(client, LK_POINT_RELEASE, hold->key);
    e->handed_over = e->was == HOLD_HELD && client->queue && local_queue_hand_over(client, hold);
    /* Lost on the server: a release might free a later hold of the same owner. */
    if (e->was == HOLD_GONE)
        return false;
    e->status = LK_OK;
    return !e->handed_over;
}

static lk_status ending_end(lk_client *client, const struct ending *e)
{
    if (!e->hold)
        return LK_LOST;
    if (client->queue && !e->handed_over)
        local_queue_wake(client, e->hold);
    client_count(&client->stats.releases);
    client_point(client, LK_POINT_RELEASED, e->hold->key);
    atomic_fetch_sub_explicit(&client->n_holds, 1, memory_order_release);
    return e->status == LK_OK && e->was != HOLD_HELD ? LK_LOST : e->status;
}

static void release_at_once(lk_client *client, lk_hold *const *holds, size_t n, lk_status *statuses)
{
    struct ending endings[LK_EACH_MAX], *of[LK_EACH_MAX];
    lk_hold *asked[LK_EACH_MAX];
    size_t n_asked = 0;
    for (size_t i = 0; i < n; i++) {
        if (ending_begin(client, &endings[i], holds[i])) {
            of[n_asked] = &endings[i];
            asked[n_asked++] = holds[i];
        }
    }
    release_on_server(client, asked, n_asked, statuses);
    for (size_t k = 0; k < n_asked; k++)
        if (!client_is_freed(statuses[k]))
            janitor_add(client, asked[k]);
    for (size_t k = 0; k < n_asked; k++)
        of[k]->status = statuses[k];
    for (size_t i = 0; i < n; i++)
        statuses[i] = ending_end(client, &endings[i]);
}

lk_status lk_release(lk_hold *hold)
{
    lk_status status = LK_LOST;
    if (hold_state(hold) != HOLD_NONE)
        release_at_once(hold->client, &hold, 1, &status);
    return status;
}

void lk_release_each(lk_hold *const *holds, size_t n, lk_status *statuses)
{
    lk_status unasked[LK_EACH_MAX];
    lk_client *client = NULL;
    assert(n <= LK_EACH_MAX);
    statuses = statuses ? statuses : unasked;
    for (size_t i = 0; i < n && !client; i++)
        client = hold_state(holds[i]) != HOLD_NONE ? holds[i]->client : NULL;
    if (client && client->provider->release_each) {
        release_at_once(client, holds, n, statuses);
        return;
    }
    for (size_t i = 0; i < n; i++)
        statuses[i] = lk_release(holds[i]);
}
