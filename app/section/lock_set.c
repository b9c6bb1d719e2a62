#include "lock_set.h"
#include "away_log.h"
#include "point.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct guard *guard = arg;
    (void)hold; /* the transaction asks lk_check() before it writes */
    assert((unsigned)cause < (unsigned)GUARD_LOSSES);
    atomic_fetch_add_explicit(&guard->lost[cause], 1, memory_order_relaxed);
}

static enum problem problem_of(lk_status status)
{
    switch (status) {
    case LK_OK:
        return PROBLEM_NONE;
    case LK_TIMEOUT:
    case LK_BUSY:
        return PROBLEM_LOCK_TIMEOUT;
    case LK_UNAVAILABLE:
    case LK_UNKNOWN:
    case LK_PROTOCOL:
    case LK_NO_MEMORY:
        return PROBLEM_UNAVAILABLE;
    case LK_LOST:
    case LK_INVALID:
    case LK_UNSUPPORTED:
        break;
    }
    return PROBLEM_INTERNAL;
}

int lock_set_init(struct lock_set *set)
{
    *set = (struct lock_set){.holds = calloc(LOCK_SET_MAX, sizeof *set->holds)};
    return set->holds ? 0 : -1;
}

void lock_set_free(struct lock_set *set)
{
    free(set->holds);
    set->holds = NULL;
}

void lock_set_clear(struct lock_set *set)
{
    assert(!set->held);
    set->n = 0;
}

void lock_key(char ret[LK_KEY_MAX + 1], const char *resource)
{
    snprintf(ret, LK_KEY_MAX + 1, "lock:%s", resource);
}

const lk_hold *lock_set_add(struct lock_set *set, struct guard *guard, const char *resource)
{
    assert(set->n < LOCK_SET_MAX && guard->kind == GUARD_LOCK && !set->held);
    size_t i = set->n++;
    set->guards[i] = guard;
    lock_key(set->keys[i], resource);
    return &set->holds[i];
}

static bool is_kept(const struct lock_set *set)
{
    int64_t left_ms;
    return set->kept && set->n == 1 && set->guards[0] == set->kept &&
           strcmp(set->keys[0], set->holds[0].key) == 0 &&
           lk_check(&set->holds[0], &left_ms) == LK_OK && left_ms >= set->holds[0].lease_ms / 2;
}

/* NULL: the guard cannot be opened; message says why. */
static lk_client *client_of(struct lock_set *set, struct guard *guard)
{
    lk_error error;
    lk_client *client = guard_client(guard, &error);
    if (!client)
        snprintf(set->message, sizeof set->message, "guard %s: %s", guard->info->name,
                 error.message);
    return client;
}

static lk_request request_for(const struct lock_set *set, size_t i, lk_client *client,
                              int64_t wait_us)
{
    struct guard *guard = set->guards[i];
    const struct guard_lease lease = guard_lease(guard);
    return (lk_request){
        .client = client,
        .key = set->keys[i],
        .lease_ms = lease.lease_ms,
        .renewed = lease.renewed,
        .wait_ms = wait_us > 0 ? wait_us / 1000 : 0,
        .on_lost = count_lost,
        .on_lost_arg = guard,
    };
}

/* NULL: there are several guards. */
static struct guard *guard_of_all(const struct lock_set *set)
{
    for (size_t i = 1; i < set->n; i++)
        if (set->guards[i] != set->guards[0])
            return NULL;
    return set->guards[0];
}

static void log_away(const struct lock_set *set)
{
    char why[LK_MESSAGE_MAX] = "";
    lk_error error;
    struct guard *guard = guard_of_all(set);
    lk_client *client = guard ? guard_client(guard, &error) : NULL;
    if (client)
        lk_last_error(client, why, sizeof why);
    away_log(guard ? guard->info->name : "locks", why[0] ? why : set->message);
}

static lk_status acquire_all(struct lock_set *set, const lk_request *requests)
{
    const struct seams *seams = guard_seams(set->guards[0]);
    return (seams->acquire_many ? seams->acquire_many : lk_acquire_many)(NULL, requests, set->n,
                                                                         set->holds);
}

static enum problem note_outcome(struct lock_set *set, lk_status status)
{
    enum problem problem = problem_of(status);
    const struct guard *guard = guard_of_all(set);
    set->held = status == LK_OK;
    for (size_t i = 0; set->held && i < set->n; i++)
        metric_observe(&set->guards[i]->wait_us, set->holds[i].wait_us);
    if (!set->held)
        snprintf(set->message, sizeof set->message, "%s%s, %s%s: %s", set->keys[0],
                 set->n > 1 ? " and others" : "", guard ? "guard " : "one of their guards",
                 guard ? guard->info->name : "", lk_status_text(status));
    if (problem == PROBLEM_UNAVAILABLE)
        log_away(set);
    return problem;
}

enum problem lock_set_acquire(struct lock_set *set, int64_t deadline_us)
{
    lk_request requests[LOCK_SET_MAX];
    set->held = is_kept(set);
    if (set->held) {
        set->kept = NULL;
        return PROBLEM_NONE;
    }
    lock_set_release(set);
    if (set->n == 0)
        return PROBLEM_NONE;
    int64_t wait_us = deadline_us - now_us();
    for (size_t i = 0; i < set->n; i++) {
        lk_client *client = client_of(set, set->guards[i]);
        if (!client)
            return PROBLEM_UNAVAILABLE;
        requests[i] = request_for(set, i, client, wait_us);
    }
    return note_outcome(set, acquire_all(set, requests));
}

void lock_sets_try(struct lock_set *const *sets, size_t n, enum problem *ret_problems)
{
    lk_request requests[LOCK_SETS_MAX];
    lk_hold *holds[LOCK_SETS_MAX];
    lk_status statuses[LOCK_SETS_MAX];
    assert(n >= 1 && n <= LOCK_SETS_MAX);
    lk_client *client = NULL;
    for (size_t i = 0; i < n; i++) {
        struct lock_set *set = sets[i];
        assert(set->n == 1 && set->guards[0] == sets[0]->guards[0] && !set->held && !set->kept);
        client = client_of(set, set->guards[0]);
        requests[i] = request_for(set, 0, client, 0);
        holds[i] = &set->holds[0];
        ret_problems[i] = PROBLEM_UNAVAILABLE;
    }
    if (!client)
        return;
    lk_try_each(client, requests, n, holds, statuses);
    for (size_t i = 0; i < n; i++)
        ret_problems[i] = note_outcome(sets[i], statuses[i]);
}

const lk_hold *lock_set_lost(const struct lock_set *set)
{
    for (size_t i = 0; set->held && i < set->n; i++) {
        if (lk_check(&set->holds[i], NULL) != LK_OK)
            return &set->holds[i];
    }
    return NULL;
}

void lock_set_keep(struct lock_set *set)
{
    assert(set->held && set->n == 1);
    set->kept = set->guards[0];
    set->held = false;
}

void lock_set_move(struct lock_set *from, struct lock_set *to)
{
    assert(from->held && !from->kept && !to->held && !to->kept);
    lk_hold *empty = to->holds;
    *to = *from;
    from->holds = empty;
    from->held = false;
    from->n = 0;
}

void lock_set_abandon(struct lock_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        atomic_store(&set->guards[i]->abandoned, true);
    set->holds = NULL; /* its client may still renew them */
    set->held = false;
    set->n = 0;
}

static void note_released(struct guard *guard, const lk_hold *hold)
{
    metric_observe(&guard->hold_us, now_us() - hold->acquired_us);
}

static void release(struct guard *guard, lk_hold *hold)
{
    /* The status does not matter: the write is done or refused. If the lock server did not confirm
     * the release, the client repeats it (away_log_pending()). */
    lk_release(hold);
    note_released(guard, hold);
}

void lock_set_release(struct lock_set *set)
{
    if (set->kept)
        release(set->kept, &set->holds[0]);
    for (size_t i = set->held ? set->n : 0; i-- > 0;)
        release(set->guards[i], &set->holds[i]);
    set->held = false;
    set->kept = NULL;
}

void lock_sets_release(struct lock_set *const *sets, size_t n)
{
    lk_hold *holds[LOCK_SETS_MAX];
    size_t n_holds = 0;
    assert(n <= LOCK_SETS_MAX);
    for (size_t i = 0; i < n; i++)
        if (sets[i]->held)
            holds[n_holds++] = &sets[i]->holds[0];
    if (n_holds > 0)
        lk_release_each(holds, n_holds, NULL);
    for (size_t i = 0; i < n; i++) {
        if (sets[i]->held)
            note_released(sets[i]->guards[0], &sets[i]->holds[0]);
        sets[i]->held = false;
    }
}
