/*
 * zk-ephemeral: one ephemeral node per key. Its creator holds the lock.
 *
 * Algorithm: create /lockkit/ephemeral/KEY with the token as its data; if it is there, watch it and
 *            try again when it has gone. Release deletes the node if its creation zxid is ours.
 * Guarantee: one holder per key while its session lives; a dead holder's node goes with its
 *            session; the fence (zxid) rises.
 * Weakness:  the herd: every release wakes all waiters, of which one wins, in no order; a holder
 *            that was paused beyond its session believes in it until it looks; a node deleted by
 *            hand and taken by another between the two steps of a release is freed by it.
 * Source:    the simple lock with herd effect of P. Hunt et al.: ZooKeeper, USENIX ATC 2010, 2.4
 */
#include "providers.h"
#include "zk_node.h"

#include <stdio.h>
#include <string.h>

#define ROOT "/lockkit/ephemeral"

/* -- an attempt ------------------------------------------------------------------------------- */

static lk_status try_in(const lk_zk_turn *turn, lk_hold *hold)
{
    char path[LK_ZK_PATH_MAX];
    lk_zk_answer answer;
    lk_zk_make_token_unique(turn->zk, hold);
    lk_zk_key_path(path, ROOT, hold->key);
    hold->fence = 0;
    lk_zk_set_node(hold, turn->epoch, LK_ZK_NO_SEQUENCE);
    lk_status status = lk_zk_create_in(turn, path, hold->token, ZOO_EPHEMERAL, &answer);
    if (status == LK_OK && answer.code == ZOK) {
        hold->fence = (uint64_t)answer.stat.czxid;
        hold->lease_ms = turn->session_ms;
        return LK_OK;
    }
    if (status == LK_OK)
        status = answer.code == ZNODEEXISTS ? LK_BUSY : LK_PROTOCOL;
    if (status != LK_UNKNOWN && status != LK_PROTOCOL)
        lk_zk_forget_node(hold);
    return status;
}

static lk_status try_acquire(void *self, lk_attempt *attempt)
{
    lk_zk_turn turn;
    lk_status status = LK_LOST;
    /* If the session ends during the try, so does its node: try again in a new session. */
    for (int i = 0; i < 2 && status == LK_LOST; i++) {
        status = lk_zk_begin(self, &turn);
        if (status == LK_OK)
            status = try_in(&turn, attempt->hold);
    }
    return lk_zk_outside_status(status);
}

/* The first call sets the watch; the try after it finds out if the node went just before; the next
 * call blocks. */
static lk_status wait_for(void *self, lk_attempt *attempt, int64_t until_us)
{
    lk_zk *zk = self;
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_key_path(path, ROOT, attempt->hold->key);
    if (!attempt->waiter && !lk_zk_wait_for(zk, attempt, path))
        return LK_NO_MEMORY; /* polls */
    const lk_zk_waiter *waiter = attempt->waiter;
    if (waiter->watching) {
        lk_zk_await(zk, attempt, until_us);
        return LK_OK;
    }
    lk_status status = lk_zk_begin(zk, &turn);
    return status == LK_OK ? lk_zk_watch(&turn, attempt) : status;
}

static void wait_end(void *self, lk_attempt *attempt)
{
    lk_zk_forget_wait(self, attempt);
}

/* -- the end ---------------------------------------------------------------------------------- */

/* LK_OK if the node that stands there is this hold's, LK_LOST if not. */
static lk_status look(const lk_zk_turn *turn, const char *path, const lk_hold *hold)
{
    lk_zk_answer answer;
    lk_status status = lk_zk_get(turn, path, false, &answer);
    if (status != LK_OK)
        return status;
    if (answer.code != ZOK)
        return LK_LOST;
    bool ours = hold->fence != 0 ? (uint64_t)answer.stat.czxid == hold->fence
                                 : strcmp(answer.text, hold->token) == 0;
    return ours ? LK_OK : LK_LOST;
}

static lk_status undo(lk_zk *zk, lk_hold *hold)
{
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_zk_key_path(path, ROOT, hold->key);
    lk_status status = lk_zk_resume(zk, lk_zk_epoch_of(hold), &turn);
    if (status == LK_OK && hold->fence == 0) /* perhaps created: catch up first */
        status = lk_zk_sync(&turn, path, &answer);
    if (status == LK_OK)
        status = look(&turn, path, hold);
    if (status == LK_OK)
        status = lk_zk_delete(&turn, path, &answer);
    if (status == LK_OK && answer.code != ZOK)
        status = LK_LOST;
    if (status == LK_OK || status == LK_LOST)
        lk_zk_forget_node(hold);
    return status;
}

static lk_status release(void *self, lk_hold *hold)
{
    return lk_zk_release(self, hold, undo);
}

/* -- looking from outside --------------------------------------------------------------------- */

static lk_status confirm(void *self, const lk_hold *hold)
{
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_key_path(path, ROOT, hold->key);
    lk_status status = lk_zk_resume(self, lk_zk_epoch_of(hold), &turn);
    return status == LK_OK ? look(&turn, path, hold) : status;
}

/* A sign of life: the node stands, so the session lives. */
static lk_status renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    (void)lease_ms;
    return confirm(self, hold);
}

static lk_status inspect(void *self, const char *key, lk_lock_info *ret)
{
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_zk_key_path(path, ROOT, key);
    lk_status status = lk_zk_begin(self, &turn);
    if (status == LK_OK)
        status = lk_zk_get(&turn, path, false, &answer);
    if (status == LK_OK && answer.code == ZOK) {
        ret->holders = 1;
        ret->fence = (uint64_t)answer.stat.czxid;
        snprintf(ret->token, sizeof ret->token, "%.*s", LK_TOKEN_MAX, answer.text);
    }
    return lk_zk_outside_status(status);
}

static lk_status list(void *self, const char *prefix,
                      int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    return lk_zk_list(self, ROOT, inspect, prefix, each, arg);
}

static lk_status force_release(void *self, const char *key)
{
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_zk_key_path(path, ROOT, key);
    lk_status status = lk_zk_begin(self, &turn);
    if (status == LK_OK)
        status = lk_zk_delete(&turn, path, &answer);
    if (status != LK_OK)
        return lk_zk_outside_status(status);
    return answer.code == ZOK ? LK_OK : LK_LOST;
}

static lk_status open_ephemeral(const lk_context *context, void **ret_self, lk_error *error)
{
    lk_zk *zk;
    lk_status status = lk_zk_open(context, &zk, error);
    if (status == LK_OK)
        *ret_self = zk;
    return status;
}

const lk_provider lk_zk_ephemeral = {
    .info = {.name = "zk-ephemeral",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_WAKES | LK_CAP_SESSION,
             .algorithm = "one ephemeral node per key; all waiters watch it",
             .guarantee = "one holder at a time while its session lives; fences rise",
             .weakness = "each release wakes all waiters, served in no order; a holder paused "
                         "beyond its session does not notice",
             .source = "Hunt et al.: ZooKeeper, USENIX ATC 2010, 2.4, simple locks"},
    .open = open_ephemeral,
    .close = lk_zk_provider_close,
    .try_acquire = try_acquire,
    .wait = wait_for,
    .wait_end = wait_end,
    .renew = renew,
    .alive = lk_zk_provider_alive,
    .release = release,
    .ping = lk_zk_provider_ping,
    .confirm = confirm,
    .inspect = inspect,
    .list = list,
    .force_release = force_release,
};
