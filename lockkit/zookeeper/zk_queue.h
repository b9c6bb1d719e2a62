/*
 * The queue of a key: create a node, find the node that blocks it, wait for that node alone. After
 * the internals of Curator's locks. A recipe names the nodes and says which block which. Waiting,
 * leaving and cleaning up are the same for all recipes.
 *
 * Fences: the creation zxid of the contender's node. zxids rise over all changes of an ensemble,
 * and nodes that block each other are granted in the order in which they were created, so the fence
 * of each exclusive grant of a key is above that of all before it, whichever session it came from.
 * Of readers that hold a lock together the later grant may have the lower fence. Nothing can raise
 * a zxid. If an ensemble is set up anew, empty, its fences begin again below the last one that the
 * resource has seen, and the resource refuses them. The remedy is a fence from the database.
 */
#ifndef LOCKKIT_ZK_QUEUE_H
#define LOCKKIT_ZK_QUEUE_H

#include "zk_node.h"

typedef struct lk_zk_recipe {
    const char *root;                    /* "/lockkit/sequential" */
    const char *label[2];                /* by lk_mode: what follows the token: "lock-" */
    bool (*is_shared)(const char *name); /* is a node of this name a reader? NULL: none is */
} lk_zk_recipe;

/* Members of a provider whose open() calls lk_zk_queue_open() with its recipe. */
lk_status lk_zk_queue_open(const lk_context *context, const lk_zk_recipe *recipe, void **ret_self,
                           lk_error *error);
lk_status lk_zk_queue_try(void *self, lk_attempt *attempt);
lk_status lk_zk_queue_wait(void *self, lk_attempt *attempt, int64_t until_us);
void lk_zk_queue_wait_end(void *self, lk_attempt *attempt);
lk_status lk_zk_queue_renew(void *self, lk_hold *hold, int64_t lease_ms);
lk_status lk_zk_queue_release(void *self, lk_hold *hold);

/* -- zk_operator.c ---------------------------------------------------------------------------- */
lk_status lk_zk_queue_confirm(void *self, const lk_hold *hold);
lk_status lk_zk_queue_inspect(void *self, const char *key, lk_lock_info *ret);
lk_status lk_zk_queue_list(void *self, const char *prefix,
                           int (*each)(void *arg, const lk_lock_info *info), void *arg);
lk_status lk_zk_queue_force_release(void *self, const char *key);

/* Among names, whose nth is ours or another's: the last that blocks one of this mode and sequence
 * number; NULL: none does. */
const char *lk_zk_blocker(const lk_zk_recipe *recipe, const lk_zk_answer *names, lk_mode mode,
                          int32_t sequence);
/* The path of a hold's own node, with its number. */
void lk_zk_own_path(char path[LK_ZK_PATH_MAX], const lk_zk_recipe *recipe, const lk_hold *hold);

#endif
