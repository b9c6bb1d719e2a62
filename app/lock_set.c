#include "lock_set.h"
#include "point.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static lock_set_acquire_many *acquire_many = lk_acquire_many;

void lock_set_use(lock_set_acquire_many *other)
{
    acquire_many = other;
}

static void count_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    struct guard *guard = arg;
    (void)hold; /* whoever uses it asks lk_check() before the write */
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

enum problem lock_set_acquire(struct lock_set *set, int64_t deadline_us)
{
    lk_request requests[LOCK_SET_MAX];
    lk_error error;
    set->held = is_kept(set);
    if (set->held) {
        set->kept = NULL;
        return PROBLEM_NONE;
    }
    lock_set_release(set);
    if (set->n == 0)
        return PROBLEM_NONE;
    int64_t left_us = deadline_us - now_us();
    for (size_t i = 0; i < set->n; i++) {
        struct guard *guard = set->guards[i];
        lk_client *client = guard_client(guard, &error);
        if (!client) {
            snprintf(set->message, sizeof set->message, "guard %s: %s", guard->info->name,
                     error.message);
            return PROBLEM_UNAVAILABLE;
        }
        const struct guard_lease lease = guard_lease(guard);
        requests[i] = (lk_request){
            .client = client,
            .key = set->keys[i],
            .lease_ms = lease.lease_ms,
            .renewed = lease.renewed,
            .wait_ms = left_us > 0 ? left_us / 1000 : 0,
            .on_lost = count_lost,
            .on_lost_arg = guard,
        };
    }
    lk_status status = acquire_many(NULL, requests, set->n, set->holds);
    set->held = status == LK_OK;
    for (size_t i = 0; set->held && i < set->n; i++)
        metric_observe(&set->guards[i]->wait_us, set->holds[i].wait_us);
    if (!set->held)
        snprintf(set->message, sizeof set->message, "%s%s, guard %s: %s", set->keys[0],
                 set->n > 1 ? " and others" : "", set->guards[0]->info->name,
                 lk_status_text(status));
    return problem_of(status);
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

static void release(struct guard *guard, lk_hold *hold)
{
    /* The status changes nothing any more: what was to be written is written or refused, and a
     * lock that could not be released ends with its lease. */
    lk_release(hold);
    metric_observe(&guard->hold_us, now_us() - hold->acquired_us);
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
