/*
 * zk-sequential: a queue of ephemeral sequential nodes; each waits for the one before it.
 *
 * Algorithm: create /lockkit/sequential/KEY/_c_TOKEN-lock-, to which ZooKeeper appends the next
 *            number. The lowest number holds the lock. Each other contender watches the node just
 *            before its own, and looks again when that is gone. Release and giving up delete the
 *            node. After a create without an answer the node is found by its token.
 * Guarantee: one holder per key while its session lives, in order of arrival; a dead holder's
 *            node goes with its session; one waiter wakes per release; the fence (zxid) rises.
 * Weakness:  a holder that was paused beyond its session believes in it until it looks; a holder
 *            that hangs in a living process keeps the lock; each grant is two writes of the
 *            ensemble. kazoo's locks are excluded only if they are given our names.
 * Source:    ZooKeeper Recipes and Solutions: Locks; Curator, LockInternals and
 *            StandardLockInternalsDriver; P. Hunt et al.: ZooKeeper, USENIX ATC 2010, 2.4
 */
#include "providers.h"
#include "zk_queue.h"

static const lk_zk_recipe recipe = {
    .root = "/lockkit/sequential",
    .label = {[LK_EXCLUSIVE] = "lock-"},
};

static lk_status open_sequential(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_zk_queue_open(context, &recipe, ret_self, error);
}

const lk_provider lk_zk_sequential = {
    .info = {.name = "zk-sequential",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_FAIR | LK_CAP_WAKES | LK_CAP_SESSION,
             .algorithm = "ephemeral sequential nodes; the lowest holds, each watches the one "
                          "before it",
             .guarantee = "one holder at a time while its session lives, in order of arrival; "
                          "fences rise",
             .weakness = "a holder paused beyond its session does not notice; a hung one keeps the "
                         "lock",
             .source = "ZooKeeper Recipes: Locks; Curator LockInternals; Hunt et al. 2010"},
    .open = open_sequential,
    .close = lk_zk_provider_close,
    .try_acquire = lk_zk_queue_try,
    .wait = lk_zk_queue_wait,
    .wait_end = lk_zk_queue_wait_end,
    .renew = lk_zk_queue_renew,
    .alive = lk_zk_provider_alive,
    .release = lk_zk_queue_release,
    .ping = lk_zk_provider_ping,
    .confirm = lk_zk_queue_confirm,
    .inspect = lk_zk_queue_inspect,
    .list = lk_zk_queue_list,
    .force_release = lk_zk_queue_force_release,
};
