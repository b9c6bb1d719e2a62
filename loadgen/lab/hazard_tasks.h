/* The scheduled tasks of the instances. They close A's order when its time is over, without being
 * asked, and are held at points as requests are. Each function returns 0, or -1 with
 * run->message. */
#ifndef HAZARD_TASKS_H
#define HAZARD_TASKS_H

#include "hazard_run.h"

/* From now on they are held at the point of the first of these steps. */
int tasks_send(struct hazard_run *run, const struct hazard_step *steps);
/* Waits until each is held there, waits for the order's lock, or was refused the task's lock. */
int tasks_as_far_as(struct hazard_run *run, const char *point);
int tasks_release(struct hazard_run *run);
/* Waits until those that were not refused are done with the order. */
int tasks_answer(struct hazard_run *run);

#endif
