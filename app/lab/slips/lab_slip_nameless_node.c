/* Contenders are told apart by their numbers alone. Whoever never heard which number his node was
 * given cannot find it among the others, and takes it for not made: it stays as long as the
 * session, which lives, and nobody behind it ever gets the lock. */
#include "lab_slips.h"
#include "providers.h"

#ifndef LK_WITHOUT_ZOOKEEPER
#include "zk_queue.h"

static lk_status release(void *self, lk_hold *hold)
{
    if (lk_zk_sequence_of(hold) != LK_ZK_NO_SEQUENCE)
        return lk_zk_queue_release(self, hold);
    lk_zk_forget_node(hold);
    return LK_OK;
}
#endif

void lab_slip_nameless_node(struct seams *seams)
{
#ifndef LK_WITHOUT_ZOOKEEPER
    static lk_provider wrong;
    wrong = lk_zk_sequential;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
#endif
}
