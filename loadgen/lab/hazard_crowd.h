/* Many buyers at once, from the load engine. The first ones are held until two have decided, or
 * until one waits for the lock of another. Each returns 0, or -1 with run->message. */
#ifndef HAZARD_CROWD_H
#define HAZARD_CROWD_H

#include "hazard_run.h"

int crowd_send(struct hazard_run *run);
int crowd_as_far_as(struct hazard_run *run);
/* Waits until every buyer waits for the lock. For guards that watch and sleep. */
int crowd_until_waiting(struct hazard_run *run);
/* Waits until one waiter has the lock and the other woken ones sleep again. */
int crowd_until_woken(struct hazard_run *run);
/* Wake-ups per release: of the first release, or the mean of all; the larger one. */
int64_t crowd_wakes(const struct hazard_run *run);
int crowd_release(struct hazard_run *run);
int crowd_answer(struct hazard_run *run);

#endif
