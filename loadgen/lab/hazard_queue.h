/* Requests that arrive one after another while the lock is held. Each is observed to wait before
 * the next is sent, so that their order is known. Each function returns 0, or -1 with
 * run->message. */
#ifndef HAZARD_QUEUE_H
#define HAZARD_QUEUE_H

#include "hazard_run.h"

enum { QUEUE_DELTA = -1 }; /* what each request takes */

int queue_send(struct hazard_run *run);
/* Waits until all are served. */
int queue_answer(struct hazard_run *run);
/* Fills run->outcome from the times of the grants: overtakings, longest and mean wait. */
void queue_measure(struct hazard_run *run);

#endif
