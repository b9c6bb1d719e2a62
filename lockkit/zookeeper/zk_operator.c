/* For operators: holders and waiters of a queue in ZooKeeper, and freeing a lock by hand. */
#include "zk_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lk_status lk_zk_queue_confirm(void *self, const lk_hold *hold)
{
    lk_zk *zk = self;
    char path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_status status = lk_zk_resume(zk, lk_zk_epoch_of(hold), &turn);
    lk_zk_own_path(path, zk->recipe, hold);
    if (status == LK_OK)
        status = lk_zk_get(&turn, path, false, &answer);
    return status == LK_OK && answer.code != ZOK ? LK_LOST : status;
}

static lk_mode mode_of(const lk_zk_recipe *recipe, const char *name)
{
    return recipe->is_shared && recipe->is_shared(name) ? LK_SHARED : LK_EXCLUSIVE;
}

static bool holds(const lk_zk_recipe *recipe, const lk_zk_answer *names, const char *name)
{
    int32_t sequence;
    return lk_zk_parse_sequence(name, &sequence) &&
           !lk_zk_blocker(recipe, names, mode_of(recipe, name), sequence);
}

static lk_status inspect_in(const lk_zk_turn *turn, lk_lock_info *ret)
{
    const lk_zk_recipe *recipe = turn->zk->recipe;
    char parent[LK_ZK_PATH_MAX], path[LK_ZK_PATH_MAX];
    lk_zk_answer names, node;
    lk_zk_key_path(parent, recipe->root, ret->key);
    lk_status status = lk_zk_children(turn, parent, &names);
    if (status != LK_OK)
        return status;
    const char *holder = NULL;
    for (size_t i = 0; i < names.n; i++) {
        int32_t sequence;
        if (holds(recipe, &names, names.names[i])) {
            holder = names.names[i];
            ret->holders++;
        } else if (lk_zk_parse_sequence(names.names[i], &sequence)) {
            ret->waiters++;
        }
    }
    if (holder) {
        ret->mode = mode_of(recipe, holder);
        status = lk_zk_child_path(path, parent, holder) ? lk_zk_get(turn, path, false, &node)
                                                        : LK_PROTOCOL;
        if (status == LK_OK && node.code == ZOK) { /* else it is gone by now */
            snprintf(ret->token, sizeof ret->token, "%.*s", LK_TOKEN_MAX, node.text);
            ret->fence = (uint64_t)node.stat.czxid;
        }
    }
    free(names.names);
    return status;
}

lk_status lk_zk_queue_inspect(void *self, const char *key, lk_lock_info *ret)
{
    (void)key; /* stands in *ret */
    lk_zk_turn turn;
    lk_status status = lk_zk_begin(self, &turn);
    if (status == LK_OK)
        status = inspect_in(&turn, ret);
    return lk_zk_outside_status(status);
}

lk_status lk_zk_queue_list(void *self, const char *prefix,
                           int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    lk_zk *zk = self;
    const lk_zk_recipe *recipe = zk->recipe;
    return lk_zk_list(zk, recipe->root, lk_zk_queue_inspect, prefix, each, arg);
}

lk_status lk_zk_queue_force_release(void *self, const char *key)
{
    lk_zk *zk = self;
    const lk_zk_recipe *recipe = zk->recipe;
    char parent[LK_ZK_PATH_MAX], path[LK_ZK_PATH_MAX];
    lk_zk_turn turn;
    lk_zk_answer names, gone;
    lk_zk_key_path(parent, recipe->root, key);
    lk_status status = lk_zk_begin(zk, &turn);
    if (status == LK_OK)
        status = lk_zk_children(&turn, parent, &names);
    if (status != LK_OK)
        return lk_zk_outside_status(status);
    int freed = 0;
    for (size_t i = 0; i < names.n && status == LK_OK; i++) {
        if (!holds(recipe, &names, names.names[i]))
            continue;
        status = lk_zk_child_path(path, parent, names.names[i]) ? lk_zk_delete(&turn, path, &gone)
                                                                : LK_PROTOCOL;
        freed += status == LK_OK && gone.code == ZOK;
    }
    free(names.names);
    if (status != LK_OK)
        return lk_zk_outside_status(status);
    return freed > 0 ? LK_OK : LK_LOST;
}
