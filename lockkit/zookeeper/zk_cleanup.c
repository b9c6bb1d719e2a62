/*
 * Nodes whose removal failed.
 *
 * A lease would end by itself. An ephemeral node stays as long as its session, and the session of a
 * living client does not end. So each failed removal is kept, and a thread, started with the first,
 * repeats it when the ensemble is back. Names are made once (zk_node.h), so a late removal hits no
 * other node. Source: Curator's guaranteed deletes.
 */
#include "zk_session.h"
#include "thread.h"
#include "zk_node.h"

#include <stdlib.h>
#include <string.h>

struct lk_zk_cleanup {
    struct lk_zk_cleanup *next;
    lk_zk_undo *undo;
    lk_hold hold; /* a copy: key, token and slot count */
};

static bool is_done(lk_status status)
{
    return status == LK_OK || status == LK_LOST;
}

static void drop(lk_zk *zk, struct lk_zk_cleanup *cleanup)
{
    struct lk_zk_cleanup **at = &zk->cleanups;
    while (*at != cleanup)
        at = &(*at)->next;
    *at = cleanup->next;
    free(cleanup);
}

static void to_the_end(lk_zk *zk, struct lk_zk_cleanup *cleanup)
{
    struct lk_zk_cleanup **at = &zk->cleanups;
    while (*at != cleanup)
        at = &(*at)->next;
    *at = cleanup->next;
    while (*at)
        at = &(*at)->next;
    cleanup->next = NULL;
    *at = cleanup;
}

/* The janitor. No other thread takes clean-ups off the list. */
static void *run_janitor(void *arg)
{
    lk_zk *zk = arg;
    int64_t pause_us = zk->context->options->command_timeout_ms * 1000;
    pthread_mutex_lock(&zk->lock);
    while (!zk->closing) {
        struct lk_zk_cleanup *cleanup = zk->cleanups;
        if (!cleanup || !zk->connection || !zk->connection->connected) {
            pthread_cond_wait(&zk->changed, &zk->lock);
            continue;
        }
        pthread_mutex_unlock(&zk->lock);
        lk_status status =
            cleanup->undo(zk, &cleanup->hold); /* LK_LOST where its session has ended */
        pthread_mutex_lock(&zk->lock);
        if (is_done(status)) {
            drop(zk, cleanup);
            continue;
        }
        to_the_end(zk, cleanup);
        if (!zk->closing)
            lk_wait_for(&zk->changed, &zk->lock, pause_us);
    }
    pthread_mutex_unlock(&zk->lock);
    return NULL;
}

/* The lock is held. False: too many, or no memory. */
static bool note(lk_zk *zk, const lk_hold *hold, lk_zk_undo *undo)
{
    size_t n = 0;
    struct lk_zk_cleanup **at = &zk->cleanups;
    for (; *at; at = &(*at)->next, n++)
        if (strcmp((*at)->hold.token, hold->token) == 0)
            return true;
    if (!zk->has_janitor)
        zk->has_janitor = lk_thread_start(&zk->janitor, run_janitor, zk);
    struct lk_zk_cleanup *cleanup =
        n < LK_ZK_CLEANUPS_MAX && zk->has_janitor ? malloc(sizeof *cleanup) : NULL;
    if (!cleanup)
        return false;
    *cleanup = (struct lk_zk_cleanup){.undo = undo, .hold = *hold};
    *at = cleanup;
    pthread_cond_broadcast(&zk->changed);
    return true;
}

lk_status lk_zk_release(lk_zk *zk, lk_hold *hold, lk_zk_undo *undo)
{
    lk_status status = undo(zk, hold);
    if (is_done(status))
        return status;
    pthread_mutex_lock(&zk->lock);
    bool noted = note(zk, hold, undo);
    pthread_mutex_unlock(&zk->lock);
    if (!noted) /* losing all locks is better than keeping one that is never freed */
        lk_zk_abandon(zk, lk_zk_epoch_of(hold));
    return status;
}

void lk_zk_stop_janitor(lk_zk *zk)
{
    pthread_mutex_lock(&zk->lock);
    zk->closing = true;
    pthread_cond_broadcast(&zk->changed);
    pthread_mutex_unlock(&zk->lock);
    if (zk->has_janitor)
        pthread_join(zk->janitor, NULL);
    while (zk->cleanups)
        drop(zk, zk->cleanups);
}
