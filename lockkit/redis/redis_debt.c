#include "redis_debt.h"
#include "monotonic.h"
#include "thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000 };

/* A release on its way. */
struct debt {
    lk_redis_call call; /* first: what answered() is given */
    lk_redis_reply reply;
    lk_hold hold; /* a copy: key, token and slot count */
    lk_redis_debts *debts;
    struct debt *next;
};

struct lk_redis_debts {
    const lk_context *context;
    lk_redis *redis;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct debt *free, *failed;
    size_t n_owed; /* not answered */
    bool posted;   /* one since the collector looked */
    bool dozing;   /* the collector sleeps until it is woken */
    bool closing;
    pthread_t collector;
    struct debt slot[LK_REDIS_OWED_MAX];
};

/* -- posting ------------------------------------------------------------------------------------
 */

static void put(struct debt **list, struct debt *debt)
{
    debt->next = *list;
    *list = debt;
}

static struct debt *take(struct debt **list)
{
    struct debt *debt = *list;
    if (debt != NULL)
        *list = debt->next;
    return debt;
}

static lk_status outcome(const struct debt *debt)
{
    if (debt->call.status != LK_OK)
        return debt->call.status;
    lk_status status = lk_redis_reply_status(&debt->reply);
    if (status != LK_OK)
        return status == LK_BUSY ? LK_LOST : status; /* another kind of guard's: not ours */
    if (debt->reply.root.type != REDIS_REPLY_INTEGER)
        return LK_PROTOCOL;
    return debt->reply.root.integer == 0 ? LK_LOST : LK_OK;
}

static void answered(lk_redis_call *call)
{
    struct debt *debt = (struct debt *)call;
    lk_redis_debts *debts = debt->debts;
    lk_status status = outcome(debt);
    bool settled = status == LK_OK || status == LK_LOST;
    if (settled)
        lk_release_answered(debts->context, &debt->hold, status);
    pthread_mutex_lock(&debts->lock);
    debts->n_owed--;
    put(settled ? &debts->free : &debts->failed, debt);
    if (!settled)
        pthread_cond_signal(&debts->changed);
    pthread_mutex_unlock(&debts->lock);
}

bool lk_redis_debts_post(lk_redis_debts *debts, const lk_hold *hold, lk_redis_script *script,
                         int n_keys, int n, const char *const *words)
{
    pthread_mutex_lock(&debts->lock);
    struct debt *debt = take(&debts->free);
    if (debt != NULL) {
        debts->n_owed++;
        debts->posted = true;
        if (debts->dozing)
            pthread_cond_signal(&debts->changed);
    }
    pthread_mutex_unlock(&debts->lock);
    if (debt == NULL)
        return false;
    debt->hold = *hold;
    if (lk_redis_script_post(debts->redis, &debt->call, script, n_keys, n, words))
        return true;
    pthread_mutex_lock(&debts->lock);
    debts->n_owed--;
    put(&debts->free, debt);
    pthread_mutex_unlock(&debts->lock);
    return false;
}

/* -- collecting ---------------------------------------------------------------------------------
 */

/* A moment, or until woken. */
static void wait_a_moment(lk_redis_debts *debts)
{
    struct timespec until = lk_monotonic_after(LK_REDIS_COLLECT_MS * US_PER_MS);
    pthread_cond_timedwait(&debts->changed, &debts->lock, &until);
}

/* The lock is held, but not meanwhile. False: it could not be settled. */
static bool settle(lk_redis_debts *debts, struct debt *debt)
{
    pthread_mutex_unlock(&debts->lock);
    bool settled = lk_release_answered(debts->context, &debt->hold, outcome(debt));
    pthread_mutex_lock(&debts->lock);
    put(&debts->free, debt);
    return settled;
}

static void *collect(void *arg)
{
    lk_redis_debts *debts = arg;
    pthread_mutex_lock(&debts->lock);
    while (!debts->closing) {
        struct debt *debt = take(&debts->failed);
        if (debt != NULL) {
            settle(debts, debt);
        } else if (debts->n_owed == 0 && !debts->posted) {
            debts->dozing = true;
            pthread_cond_wait(&debts->changed, &debts->lock);
            debts->dozing = false;
        } else {
            debts->posted = false;
            wait_a_moment(debts);
            pthread_mutex_unlock(&debts->lock);
            lk_redis_collect(debts->redis);
            pthread_mutex_lock(&debts->lock);
        }
    }
    pthread_mutex_unlock(&debts->lock);
    return NULL;
}

/* -- opening and closing ------------------------------------------------------------------------
 */

static void free_debts(lk_redis_debts *debts)
{
    pthread_cond_destroy(&debts->changed);
    pthread_mutex_destroy(&debts->lock);
    free(debts);
}

lk_redis_debts *lk_redis_debts_open(const lk_context *context, lk_redis *redis)
{
    pthread_condattr_t monotonic;
    lk_redis_debts *debts = calloc(1, sizeof *debts);
    if (debts == NULL)
        return NULL;
    debts->context = context;
    debts->redis = redis;
    pthread_mutex_init(&debts->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&debts->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (size_t i = LK_REDIS_OWED_MAX; i-- > 0;) {
        debts->slot[i].debts = debts;
        debts->slot[i].call.reply = &debts->slot[i].reply;
        debts->slot[i].call.answered = answered;
        put(&debts->free, &debts->slot[i]);
    }
    if (lk_thread_start(&debts->collector, collect, debts))
        return debts;
    free_debts(debts);
    return NULL;
}

void lk_redis_debts_close(lk_redis_debts *debts)
{
    if (debts == NULL)
        return;
    pthread_mutex_lock(&debts->lock);
    debts->closing = true;
    pthread_cond_signal(&debts->changed);
    pthread_mutex_unlock(&debts->lock);
    pthread_join(debts->collector, NULL);
    lk_redis_collect(debts->redis);
    assert(debts->n_owed == 0);
    pthread_mutex_lock(&debts->lock);
    for (struct debt *debt; (debt = take(&debts->failed)) != NULL;)
        if (!settle(debts, debt))
            break;
    pthread_mutex_unlock(&debts->lock);
    free_debts(debts);
}
