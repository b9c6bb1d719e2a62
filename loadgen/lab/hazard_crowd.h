/* Many buyers at once, from the load engine. The first of them are held until two have decided, or
 * one waits for another's lock. 0, or -1 with run->message. */
#ifndef HAZARD_CROWD_H
#define HAZARD_CROWD_H

#include "hazard_run.h"

int crowd_send(struct hazard_run *run);
int crowd_as_far_as(struct hazard_run *run);
/* Until all of it waits for a lock that somebody else has; of guards that set a watch and sleep. */
int crowd_until_waiting(struct hazard_run *run);
/* Until one of those who waited has the lock, and who else was woken for it sleeps again. */
int crowd_until_woken(struct hazard_run *run);
/* Wake-ups per release: the first one's, or the mean of all, whichever is more. */
int64_t crowd_wakes(const struct hazard_run *run);
int crowd_release(struct hazard_run *run);
int crowd_answer(struct hazard_run *run);

#endif
