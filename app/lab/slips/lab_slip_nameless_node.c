/* Nodes are told apart only by their numbers. A client that did not learn the number of its node
 * cannot find the node, and assumes that it was not created. The node stays as long as the session
 * lives, and no waiter behind it gets the lock. */
#include "lab_slips.h"
#include "provider.h"

static const lk_provider *right;

static lk_status release(void *self, lk_hold *hold)
{
    if (hold->fence != 0) /* it comes with the node's number */
        return right->release(self, hold);
    hold->private_.slot = 0; /* as before the first try */
    return LK_OK;
}

void lab_slip_nameless_node(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("zk-sequential");
    if (right == NULL) /* make WITHOUT=zookeeper */
        return;
    wrong = *right;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
