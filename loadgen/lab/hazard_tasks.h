/* The scheduled tasks of the instances, which find A's order when its time is over: they come by
 * themselves, and are held as requests are. 0, or -1 with run->message. */
#ifndef HAZARD_TASKS_H
#define HAZARD_TASKS_H

#include "hazard_run.h"

/* From now on they are held where the first of these steps says. */
int tasks_send(struct hazard_run *run, const struct hazard_step *steps);
/* Each is held there, waits for the order's lock, or was turned away at the task's own. */
int tasks_as_far_as(struct hazard_run *run, const char *point);
int tasks_release(struct hazard_run *run);
/* Those that were not turned away have done with the order. */
int tasks_answer(struct hazard_run *run);

#endif
