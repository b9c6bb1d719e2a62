/* Many buyers at once, from the load engine. The first of them are held until two have decided, or
 * one waits for another's lock. 0, or -1 with run->message. */
#ifndef HAZARD_CROWD_H
#define HAZARD_CROWD_H

#include "hazard_run.h"

int crowd_send(struct hazard_run *run);
int crowd_as_far_as(struct hazard_run *run);
int crowd_release(struct hazard_run *run);
int crowd_answer(struct hazard_run *run);

#endif
