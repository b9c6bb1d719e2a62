#include "keeper.h"
#include "away_log.h"
#include "point.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    FIND_OUT_MS = 300,    /* how long a worker asks */
    PAUSE_US_MIN = 20000, /* between two rounds of the thread; it doubles */
    PAUSE_US_MAX = 250000,
    CLOSE_US = 3000000
};

/* One set of locks and its undecided transaction. */
struct kept {
    struct lock_set set;
    db_commit_id commit_id;
    int64_t since_us;
    bool lost; /* and logged */
};

struct keeper {
    db *store;
    const struct seams *seams;
    struct counters *counters;
    pthread_t thread;
    bool started;
    struct kept *all;
    pthread_mutex_t mutex; /* for all that follows */
    pthread_cond_t changed;
    struct kept *used[KEEPER_LOCK_SETS_MAX], *unused[KEEPER_LOCK_SETS_MAX];
    size_t n_used, n_unused;
    bool waits_no_more, stop;
    int64_t end_us;
};

bool keeper_find_out(struct keeper *keeper, const db_commit_id *commit_id)
{
    counter_add(&keeper->counters->undecided, 1);
    return !keeper->seams->forgets_unknown &&
           db_settle(keeper->store, commit_id, FIND_OUT_MS, NULL) == DB_OK;
}

/* -- one set ---------------------------------------------------------------------------------- */

static void tell(const struct kept *kept, enum away_kept what)
{
    away_log_kept(what, kept->set.keys[0], (now_us() - kept->since_us) / 1000);
}

/* Whether the set still keeps other requests out. */
static bool holds_any(const struct lock_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        if (lk_check(&set->holds[i], NULL) == LK_OK)
            return true;
    return false;
}

static void note_lost(struct keeper *keeper, struct kept *kept)
{
    if (kept->lost || !lock_set_lost(&kept->set))
        return;
    kept->lost = true;
    counter_add(&keeper->counters->kept_lost, 1);
    tell(kept, AWAY_KEPT_LOST);
}

/* True: there is nothing more to keep. If *askable is false, the store is not asked. It becomes
 * false when the store does not answer. */
static bool is_over(struct keeper *keeper, struct kept *kept, bool *askable)
{
    db_error error = {.message = ""};
    note_lost(keeper, kept);
    db_status status =
        *askable ? db_settle(keeper->store, &kept->commit_id, 0, &error) : DB_UNAVAILABLE;
    if (status == DB_OK) {
        tell(kept, AWAY_KEPT_DECIDED);
        return true;
    }
    if (*askable && status != DB_BUSY) {
        away_log("store", error.message);
        *askable = false;
    }
    return !holds_any(&kept->set);
}

/* -- the thread ------------------------------------------------------------------------------- */

/* With the mutex. */
static void put_away(struct keeper *keeper, size_t i)
{
    struct kept *kept = keeper->used[i];
    keeper->used[i] = keeper->used[--keeper->n_used];
    keeper->unused[keeper->n_unused++] = kept;
    atomic_fetch_sub(&keeper->counters->kept, 1);
    pthread_cond_broadcast(&keeper->changed);
}

/* With the mutex. Asks about each set; returns whether any is over. When the store does not answer,
 * the rest is only looked at: their locks may have ended. */
static bool look_at_all(struct keeper *keeper)
{
    bool any = false, askable = true;
    for (size_t i = 0; i < keeper->n_used;) {
        struct kept *kept = keeper->used[i];
        pthread_mutex_unlock(&keeper->mutex);
        bool over = is_over(keeper, kept, &askable);
        if (over)
            lock_set_release(&kept->set);
        pthread_mutex_lock(&keeper->mutex);
        if (over)
            put_away(keeper, i);
        else
            i++;
        any = any || over;
    }
    return any;
}

static void *run(void *arg)
{
    struct keeper *keeper = arg;
    int in_vain = 0; /* rounds */
    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->stop || (keeper->n_used > 0 && now_us() < keeper->end_us)) {
        if (keeper->n_used == 0) {
            pthread_cond_wait(&keeper->changed, &keeper->mutex);
            in_vain = 0;
            continue;
        }
        bool any = look_at_all(keeper);
        in_vain = any || keeper->stop ? 0 : in_vain + 1;
        if (keeper->n_used > 0)
            cond_wait_until(&keeper->changed, &keeper->mutex,
                            now_us() + backoff_us(PAUSE_US_MIN, PAUSE_US_MAX, in_vain));
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

/* -- taking ----------------------------------------------------------------------------------- */

/* With the mutex. NULL: no place is free, and no caller may wait: the service closes. */
static struct kept *wait_for_place(struct keeper *keeper)
{
    while (keeper->n_unused == 0 && !keeper->waits_no_more)
        pthread_cond_wait(&keeper->changed, &keeper->mutex);
    return keeper->n_unused > 0 ? keeper->unused[--keeper->n_unused] : NULL;
}

void keeper_take(struct keeper *keeper, struct lock_set *set, const db_commit_id *commit_id)
{
    if (keeper->seams->forgets_unknown || !set->held || set->n == 0) {
        lock_set_release(set);
        return;
    }
    pthread_mutex_lock(&keeper->mutex);
    struct kept *kept = wait_for_place(keeper);
    if (kept) {
        kept->commit_id = *commit_id;
        kept->since_us = now_us();
        kept->lost = false;
        lock_set_move(set, &kept->set);
        keeper->used[keeper->n_used++] = kept;
        atomic_fetch_add(&keeper->counters->kept, 1);
        tell(kept, AWAY_KEPT);
        pthread_cond_broadcast(&keeper->changed);
    } else {
        lock_set_abandon(set);
    }
    pthread_mutex_unlock(&keeper->mutex);
}

/* -- life ------------------------------------------------------------------------------------- */

static bool make_places(struct keeper *keeper)
{
    keeper->all = calloc(KEEPER_LOCK_SETS_MAX, sizeof *keeper->all);
    for (size_t i = 0; keeper->all && i < KEEPER_LOCK_SETS_MAX; i++) {
        if (lock_set_init(&keeper->all[i].set) != 0)
            return false;
        keeper->unused[keeper->n_unused++] = &keeper->all[i];
    }
    return keeper->all != NULL;
}

struct keeper *keeper_open(db *store, const struct seams *seams, struct counters *counters)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return NULL;
    keeper->store = store;
    keeper->seams = seams;
    keeper->counters = counters;
    pthread_mutex_init(&keeper->mutex, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    if (make_places(keeper))
        keeper->started = pthread_create(&keeper->thread, NULL, run, keeper) == 0;
    if (keeper->started)
        return keeper;
    keeper_close(keeper);
    return NULL;
}

void keeper_stop_waiting(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    keeper->waits_no_more = true;
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
}

void keeper_close(struct keeper *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->mutex);
    keeper->stop = true;
    keeper->end_us = now_us() + CLOSE_US;
    pthread_cond_broadcast(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
    if (keeper->started)
        pthread_join(keeper->thread, NULL);
    for (size_t i = 0; i < keeper->n_used; i++) {
        tell(keeper->used[i], AWAY_KEPT_LEFT);
        lock_set_abandon(&keeper->used[i]->set);
    }
    for (size_t i = 0; keeper->all && i < KEEPER_LOCK_SETS_MAX; i++)
        lock_set_free(&keeper->all[i].set);
    free(keeper->all);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}
