#include "redis_waiters.h"
#include "event.h"
#include "monotonic.h"
#include "table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct line {
    char name[LK_REDIS_LINE_NAME_MAX];
    lk_redis_waiter *asleep;    /* in order of arrival */
    int64_t n_waiters;          /* asleep or awake */
    int64_t n_kept;             /* wake-ups that found none asleep; at most n_waiters */
    lk_redis_handover handover; /* not yet taken; fence 0: none */
    UT_hash_handle hh;
};

struct lk_redis_waiter {
    struct line *line;
    bool woken; /* and not yet used */
    lk_event event;
    lk_redis_waiter *prev, *next; /* of those asleep */
};

struct lk_redis_waiters {
    pthread_mutex_t mutex;
    struct line *by_name;
};

/* Gives one wake-up to the line. Returns the waiter to be woken once the mutex is free, or NULL. */
static lk_redis_waiter *wake_one(struct line *line)
{
    lk_redis_waiter *waiter = line->asleep;
    if (waiter != NULL) {
        DL_DELETE(line->asleep, waiter);
        waiter->woken = true;
        return lk_event_signal(&waiter->event) ? waiter : NULL;
    }
    if (line->n_kept < line->n_waiters)
        line->n_kept++;
    return NULL;
}

static void wake(const lk_redis_waiter *waiter)
{
    if (waiter != NULL)
        lk_event_wake(&waiter->event);
}

void lk_redis_waiters_wake_one(lk_redis_waiters *waiters, const char *name)
{
    struct line *line;
    pthread_mutex_lock(&waiters->mutex);
    HASH_FIND_STR(waiters->by_name, name, line);
    const lk_redis_waiter *sleeper = line != NULL ? wake_one(line) : NULL;
    pthread_mutex_unlock(&waiters->mutex);
    wake(sleeper);
}

void lk_redis_waiters_hand_over(lk_redis_waiters *waiters, const char *name,
                                const lk_redis_handover *handover)
{
    const lk_redis_waiter *sleeper = NULL;
    struct line *line;
    pthread_mutex_lock(&waiters->mutex);
    HASH_FIND_STR(waiters->by_name, name, line);
    if (line != NULL) {
        line->handover = *handover;
        sleeper = wake_one(line);
    }
    pthread_mutex_unlock(&waiters->mutex);
    wake(sleeper);
}

bool lk_redis_waiters_take_handover(lk_redis_waiters *waiters, lk_redis_waiter *waiter,
                                    lk_redis_handover *ret)
{
    pthread_mutex_lock(&waiters->mutex);
    *ret = waiter->line->handover;
    waiter->line->handover.fence = 0;
    pthread_mutex_unlock(&waiters->mutex);
    return ret->fence != 0;
}

static void wake_each(struct line *line)
{
    for (int64_t i = 0; i < line->n_waiters; i++)
        wake(wake_one(line)); /* with the mutex held, as there may be more */
}

void lk_redis_waiters_wake_all_of(lk_redis_waiters *waiters, const char *name)
{
    struct line *line;
    pthread_mutex_lock(&waiters->mutex);
    HASH_FIND_STR(waiters->by_name, name, line);
    if (line != NULL)
        wake_each(line);
    pthread_mutex_unlock(&waiters->mutex);
}

void lk_redis_waiters_wake_all(lk_redis_waiters *waiters)
{
    pthread_mutex_lock(&waiters->mutex);
    for (struct line *line = waiters->by_name; line != NULL; line = line->hh.next)
        wake_each(line);
    pthread_mutex_unlock(&waiters->mutex);
}

static struct line *find_or_add(lk_redis_waiters *waiters, const char *name)
{
    struct line *line;
    HASH_FIND_STR(waiters->by_name, name, line);
    if (line == NULL && (line = calloc(1, sizeof *line)) != NULL) {
        assert(strlen(name) < sizeof line->name);
        strcpy(line->name, name);
        HASH_ADD_STR(waiters->by_name, name, line);
        if (line->hh.tbl == NULL) { /* no memory for the table */
            free(line);
            return NULL;
        }
    }
    return line;
}

lk_redis_waiter *lk_redis_waiters_enter(lk_redis_waiters *waiters, const char *name,
                                        bool *ret_is_first)
{
    lk_redis_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL)
        return NULL;
    pthread_mutex_lock(&waiters->mutex);
    struct line *line = waiter->line = find_or_add(waiters, name);
    if (line != NULL && ret_is_first != NULL)
        *ret_is_first = line->n_waiters == 0;
    if (line != NULL)
        line->n_waiters++;
    pthread_mutex_unlock(&waiters->mutex);
    if (line == NULL) {
        free(waiter);
        return NULL;
    }
    return waiter;
}

void lk_redis_waiters_sleep(lk_redis_waiters *waiters, lk_redis_waiter *waiter, int64_t wait_us)
{
    struct line *line = waiter->line;
    int64_t until_us = lk_monotonic_us() + wait_us;
    pthread_mutex_lock(&waiters->mutex);
    if (!waiter->woken && line->n_kept > 0) {
        line->n_kept--;
        waiter->woken = true;
    }
    if (!waiter->woken)
        DL_APPEND(line->asleep, waiter);
    while (!waiter->woken && wait_us > 0) {
        pthread_mutex_unlock(&waiters->mutex);
        lk_event_wait(&waiter->event, NULL, wait_us);
        wait_us = until_us - lk_monotonic_us();
        pthread_mutex_lock(&waiters->mutex);
    }
    if (!waiter->woken)
        DL_DELETE(line->asleep, waiter);
    pthread_mutex_unlock(&waiters->mutex);
}

void lk_redis_waiters_use(lk_redis_waiters *waiters, lk_redis_waiter *waiter)
{
    pthread_mutex_lock(&waiters->mutex);
    waiter->woken = false;
    pthread_mutex_unlock(&waiters->mutex);
}

void lk_redis_waiters_leave(lk_redis_waiters *waiters, lk_redis_waiter *waiter)
{
    struct line *line = waiter->line;
    pthread_mutex_lock(&waiters->mutex);
    line->n_waiters--;
    const lk_redis_waiter *next = waiter->woken ? wake_one(line) : NULL;
    if (line->n_waiters == 0) {
        HASH_DEL(waiters->by_name, line);
        free(line);
    } else if (line->n_kept > line->n_waiters) {
        line->n_kept = line->n_waiters;
    }
    pthread_mutex_unlock(&waiters->mutex);
    wake(next);
    free(waiter);
}

lk_redis_waiters *lk_redis_waiters_open(void)
{
    lk_redis_waiters *waiters = calloc(1, sizeof *waiters);
    if (waiters == NULL)
        return NULL;
    pthread_mutex_init(&waiters->mutex, NULL);
    return waiters;
}

void lk_redis_waiters_close(lk_redis_waiters *waiters)
{
    assert(waiters->by_name == NULL);
    pthread_mutex_destroy(&waiters->mutex);
    free(waiters);
}
