/*
 * zk-readwrite: readers together, writers alone, in order of arrival.
 *
 * Algorithm: the queue of zk-sequential under /lockkit/readwrite/KEY with two kinds of nodes, named
 *            as Curator does: ...-__READ__N and ...-__WRIT__N. A writer is blocked by everything
 *            before it, a reader by writers before it only; each watches the last of those.
 * Guarantee: readers share, a writer is alone, while their sessions live. Nobody overtakes: a
 *            writer waits for the readers that came before it, and readers that come later wait for
 *            the writer, so neither starves. The fences of writers rise.
 * Weakness:  that of zk-sequential, kazoo's locks included; readers wake together when a writer
 *            leaves; a read lock cannot be upgraded.
 * Source:    ZooKeeper Recipes and Solutions: Shared Locks; Curator, InterProcessReadWriteLock
 */
#include "providers.h"
#include "zk_queue.h"

#include <ctype.h>
#include <string.h>

/* The label right before the number tells a reader: Curator's or kazoo's. Any other label excludes.
 */
static bool is_reader(const char *name)
{
    size_t length = strlen(name);
    while (length > 0 && isdigit((unsigned char)name[length - 1]))
        length--;
    if (length > 0 && name[length - 1] == '-') /* the number's sign */
        length--;
    static const char *const labels[] = {"__READ__", "__rlock__"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        size_t n = strlen(labels[i]);
        if (length >= n && memcmp(name + length - n, labels[i], n) == 0)
            return true;
    }
    return false;
}

static const lk_zk_recipe recipe = {
    .root = "/lockkit/readwrite",
    .label = {[LK_EXCLUSIVE] = "__WRIT__", [LK_SHARED] = "__READ__"},
    .is_shared = is_reader,
};

static lk_status open_readwrite(const lk_context *context, void **ret_self, lk_error *error)
{
    return lk_zk_queue_open(context, &recipe, ret_self, error);
}

const lk_provider lk_zk_readwrite = {
    .info = {.name = "zk-readwrite",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_FAIR | LK_CAP_WAKES | LK_CAP_SHARED | LK_CAP_SESSION,
             .algorithm = "one queue of read and write nodes; each watches the last that conflicts "
                          "with it",
             .guarantee = "readers share, a writer is alone while sessions live; in order of "
                          "arrival, no writer starves",
             .weakness = "a holder paused beyond its session does not notice; a hung one keeps the "
                         "lock",
             .source = "ZooKeeper Recipes: Shared Locks; Curator InterProcessReadWriteLock"},
    .open = open_readwrite,
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
