/*
 * Several locks of one client at once, each on its own. Each is treated as lk_acquire() treats its
 * single attempt when it does not wait. The commands go together.
 */
#include "client.h"

/* Cleans up attempts whose outcome is unknown. */
static void undo_each(lk_client *client, const struct acquire_call *calls, const lk_status *answers,
                      size_t n)
{
    lk_hold *was_unknown[LK_EACH_MAX];
    lk_status undone[LK_EACH_MAX];
    size_t n_unknown = 0;
    for (size_t i = 0; i < n; i++)
        if (answers[i] != LK_OK && calls[i].was_unknown)
            was_unknown[n_unknown++] = calls[i].attempt.hold;
    for (size_t i = 0; i < n_unknown; i++)
        core_undo_begin(client, was_unknown[i]);
    client_release(client, was_unknown, n_unknown, undone);
    for (size_t i = 0; i < n_unknown; i++)
        if (!client_is_freed(undone[i]))
            janitor_add(client, was_unknown[i]);
}

/* Tries those whose statuses[i] is LK_OK. */
static void try_at_once(lk_client *client, const lk_request *requests, size_t n,
                        lk_hold *const *holds, lk_status *statuses)
{
    struct acquire_call calls[LK_EACH_MAX];
    lk_attempt *attempts[LK_EACH_MAX];
    lk_status answers[LK_EACH_MAX];
    size_t of[LK_EACH_MAX], n_tries = 0;
    int64_t deadline_us = core_deadline_us(client, 0);
    for (size_t i = 0; i < n; i++) {
        struct acquire_call *call = &calls[n_tries];
        if (statuses[i] == LK_OK)
            statuses[i] = core_begin(call, client, &requests[i], deadline_us, holds[i]);
        if (statuses[i] != LK_OK)
            continue;
        call->attempt.last = true;
        attempts[n_tries] = &call->attempt;
        of[n_tries++] = i;
    }
    for (size_t k = 0; k < n_tries; k++)
        core_try_begin(&calls[k]);
    if (n_tries == 0)
        return;
    if (n_tries > 1)
        client->provider->try_each(client->self, attempts, n_tries, answers);
    else
        answers[0] = client->provider->try_acquire(client->self, attempts[0]);
    for (size_t k = 0; k < n_tries; k++) {
        answers[k] = core_try_end(&calls[k], answers[k]);
        statuses[of[k]] = core_end(&calls[k], answers[k]);
    }
    undo_each(client, calls, answers, n_tries);
}

void lk_try_each(lk_client *client, const lk_request *requests, size_t n, lk_hold *const *holds,
                 lk_status *statuses)
{
    bool fits = n <= LK_EACH_MAX, at_once = fits && client && client->provider->try_each;
    for (size_t i = 0; i < n; i++) {
        hold_set_state(holds[i], HOLD_NONE); /* releasing it after a failure is harmless */
        statuses[i] =
            fits && requests[i].wait_ms == 0 ? core_check(client, &requests[i]) : LK_INVALID;
        if (!at_once && statuses[i] == LK_OK)
            statuses[i] = lk_acquire(client, &requests[i], holds[i]);
    }
    if (at_once)
        try_at_once(client, requests, n, holds, statuses);
}

bool lk_tries_at_once(const lk_client *client)
{
    const lk_provider *provider = client->provider;
    return provider->try_each || !(provider->info.caps & LK_CAP_DISTRIBUTED);
}
