#include "zk_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- names ------------------------------------------------------------------------------------ */

/* "ROOT/KEY/_c_TOKEN-LABEL": what a contender's node is created as; with its number, what it is. */
static void contender_path(char path[LK_ZK_PATH_MAX], const lk_zk_recipe *recipe,
                           const lk_hold *hold)
{
    char prefix[LK_ZK_PATH_MAX];
    lk_zk_key_path(path, recipe->root, hold->key);
    lk_zk_name_prefix(prefix, hold);
    size_t length = strlen(path);
    snprintf(path + length, LK_ZK_PATH_MAX - length, "/%s%s", prefix, recipe->label[hold->mode]);
}

void lk_zk_own_path(char path[LK_ZK_PATH_MAX], const lk_zk_recipe *recipe, const lk_hold *hold)
{
    contender_path(path, recipe, hold);
    size_t length = strlen(path);
    snprintf(path + length, LK_ZK_PATH_MAX - length, "%010d", (int)lk_zk_sequence_of(hold));
}

/* -- who blocks me? --------------------------------------------------------------------------- */

const char *lk_zk_blocker(const lk_zk_recipe *recipe, const lk_zk_answer *names, lk_mode mode,
                          int32_t sequence)
{
    const char *blocker = NULL;
    int32_t last = 0, other;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->names[i];
        if (!lk_zk_parse_sequence(name, &other) || !lk_zk_is_before(other, sequence))
            continue;
        if (mode == LK_SHARED && recipe->is_shared(name))
            continue;
        if (blocker && lk_zk_is_before(other, last))
            continue;
        blocker = name;
        last = other;
    }
    return blocker;
}

static bool is_among(const lk_zk_answer *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->names[i], name) == 0)
            return true;
    return false;
}

/* -- leaving ---------------------------------------------------------------------------------- */

/* After a create without answer: the name of our node, if it was created. */
static lk_status find_own(const lk_zk_turn *turn, const char *parent, const lk_hold *hold,
                          char path[LK_ZK_PATH_MAX], lk_zk_answer *answer)
{
    char prefix[LK_ZK_PATH_MAX];
    lk_zk_name_prefix(prefix, hold);
    lk_status status = lk_zk_sync(turn, parent, answer);
    if (status == LK_OK)
        status = lk_zk_children(turn, parent, answer);
    if (status != LK_OK)
        return status;
    status = LK_LOST;
    for (size_t i = 0; i < answer->n && status == LK_LOST; i++)
        if (strncmp(answer->names[i], prefix, strlen(prefix)) == 0 &&
            lk_zk_child_path(path, parent, answer->names[i]))
            status = LK_OK;
    free(answer->names);
    return status;
}

static lk_status undo(lk_zk *zk, lk_hold *hold)
{
    const lk_zk_recipe *recipe = zk->recipe;
    char path[LK_ZK_PATH_MAX], parent[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_status status = lk_zk_resume(zk, lk_zk_epoch_of(hold), &turn);
    if (status == LK_OK && lk_zk_sequence_of(hold) == LK_ZK_NO_SEQUENCE) {
        lk_zk_key_path(parent, recipe->root, hold->key);
        status = find_own(&turn, parent, hold, path, &answer);
    } else {
        lk_zk_own_path(path, recipe, hold);
    }
    if (status == LK_OK)
        status = lk_zk_delete(&turn, path, &answer);
    if (status == LK_OK && answer.code != ZOK)
        status = LK_LOST;
    if (status == LK_OK || status == LK_LOST)
        lk_zk_forget_node(hold);
    return status;
}

lk_status lk_zk_queue_release(void *self, lk_hold *hold)
{
    return lk_zk_release(self, hold, undo);
}

void lk_zk_queue_wait_end(void *self, lk_attempt *attempt)
{
    if (!attempt->waiter)
        return;
    lk_zk_forget_wait(self, attempt);
    lk_zk_queue_release(self, attempt->hold);
}

/* -- an attempt: join the queue, find the blocker --------------------------------------------- */

static lk_status enqueue(const lk_zk_turn *turn, lk_hold *hold, lk_zk_answer *answer)
{
    const lk_zk_recipe *recipe = turn->zk->recipe;
    char path[LK_ZK_PATH_MAX];
    int32_t sequence;
    lk_zk_make_token_unique(turn->zk, hold);
    contender_path(path, recipe, hold);
    lk_zk_set_node(hold, turn->epoch, LK_ZK_NO_SEQUENCE);
    lk_status status = lk_zk_create_in(turn, path, hold->token, ZOO_EPHEMERAL_SEQUENTIAL, answer);
    if (status == LK_OK && (answer->code != ZOK || !lk_zk_parse_sequence(answer->text, &sequence)))
        status = LK_PROTOCOL;
    if (status == LK_OK) {
        lk_zk_set_node(hold, turn->epoch, sequence);
        hold->fence = (uint64_t)answer->stat.czxid;
        hold->lease_ms = turn->session_ms;
    } else if (status != LK_UNKNOWN && status != LK_PROTOCOL) {
        lk_zk_forget_node(hold); /* certainly not created, or gone with the session */
    }
    return status;
}

/* Refused: waits for the blocker from now on. */
static lk_status stand_behind(lk_zk *zk, lk_attempt *attempt, const char *parent,
                              const char *blocker)
{
    char path[LK_ZK_PATH_MAX];
    const lk_zk_waiter *waiter = attempt->waiter;
    if (!lk_zk_child_path(path, parent, blocker))
        return LK_PROTOCOL;
    if (waiter && strcmp(waiter->path, path) == 0)
        return LK_BUSY;
    lk_zk_forget_wait(zk, attempt);
    return lk_zk_wait_for(zk, attempt, path) ? LK_BUSY : LK_NO_MEMORY;
}

static lk_status look(const lk_zk_turn *turn, lk_attempt *attempt, lk_zk_answer *answer)
{
    lk_zk *zk = turn->zk;
    const lk_zk_recipe *recipe = zk->recipe;
    lk_hold *hold = attempt->hold;
    char parent[LK_ZK_PATH_MAX], own[LK_ZK_PATH_MAX];
    lk_zk_key_path(parent, recipe->root, hold->key);
    lk_zk_own_path(own, recipe, hold);
    lk_status status = lk_zk_children(turn, parent, answer);
    if (status != LK_OK)
        return status;
    if (!is_among(answer, own + strlen(parent) + 1)) { /* somebody has removed it */
        lk_zk_forget_node(hold);
        lk_zk_forget_wait(zk, attempt);
        status = LK_UNAVAILABLE;
    } else {
        const char *blocker = lk_zk_blocker(recipe, answer, hold->mode, lk_zk_sequence_of(hold));
        if (blocker)
            status = stand_behind(zk, attempt, parent, blocker);
    }
    free(answer->names);
    return status;
}

static lk_status try_in(const lk_zk_turn *turn, lk_attempt *attempt)
{
    lk_hold *hold = attempt->hold;
    lk_zk_answer answer;
    if (lk_zk_epoch_of(hold) != turn->epoch) {
        lk_zk_forget_wait(turn->zk, attempt);
        lk_status status = enqueue(turn, hold, &answer);
        if (status != LK_OK)
            return status;
    }
    lk_status status = look(turn, attempt, &answer);
    bool blind = status == LK_UNKNOWN || status == LK_UNAVAILABLE;
    if (blind && lk_zk_epoch_of(hold) != 0) /* a waiter keeps its place; else undo */
        status = attempt->waiter ? LK_UNAVAILABLE : LK_UNKNOWN;
    return status;
}

lk_status lk_zk_queue_try(void *self, lk_attempt *attempt)
{
    lk_zk *zk = self;
    lk_zk_turn turn;
    lk_status status = LK_LOST;
    /* A session that ends meanwhile takes all its nodes along: once more in a new one. */
    for (int i = 0; i < 2 && status == LK_LOST; i++) {
        status = lk_zk_begin(zk, &turn);
        if (status == LK_OK)
            status = try_in(&turn, attempt);
    }
    if (status == LK_LOST) {
        lk_zk_forget_node(attempt->hold);
        status = LK_UNAVAILABLE;
    }
    if (status == LK_OK)
        lk_zk_forget_wait(zk, attempt);
    bool leave = status == LK_NO_MEMORY || (status == LK_BUSY && attempt->last);
    if (leave && attempt->hold->attempts == 1) { /* wait_end() will not be called */
        lk_zk_forget_wait(zk, attempt);
        lk_zk_queue_release(zk, attempt->hold);
    }
    return status;
}

/* The first call for a blocker sets the watch; the try after it finds out if the blocker went just
 * before; the next call blocks. */
lk_status lk_zk_queue_wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    lk_zk *zk = self;
    const lk_zk_waiter *waiter = attempt->waiter;
    lk_zk_turn turn;
    if (!waiter)
        return LK_UNAVAILABLE;
    if (waiter->watching) {
        lk_zk_await(zk, attempt, until_us);
        return LK_OK;
    }
    lk_status status = lk_zk_resume(zk, lk_zk_epoch_of(attempt->hold), &turn);
    return status == LK_OK ? lk_zk_watch(&turn, attempt) : status;
}

/* A sign of life: the node stands, so the session lives. */
lk_status lk_zk_queue_renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    (void)lease_ms;
    return lk_zk_queue_confirm(self, hold);
}

lk_status lk_zk_queue_open(const lk_context *context, const lk_zk_recipe *recipe, void **ret_self,
                           lk_error *error)
{
    lk_zk *zk;
    lk_status status = lk_zk_open(context, &zk, error);
    if (status != LK_OK)
        return status;
    zk->recipe = recipe;
    *ret_self = zk;
    return LK_OK;
}
