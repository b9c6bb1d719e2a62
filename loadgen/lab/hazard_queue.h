/* Those who come one after another while the lock is held: each is seen to wait before the next one
 * comes, so that who came first is known. 0, or -1 with run->message. */
#ifndef HAZARD_QUEUE_H
#define HAZARD_QUEUE_H

#include "hazard_run.h"

enum { QUEUE_DELTA = -1 }; /* each takes so much */

int queue_send(struct hazard_run *run);
/* All are served. */
int queue_answer(struct hazard_run *run);
/* From the moments of their grants, into run->outcome: overtakings, the longest wait and the mean.
 */
void queue_measure(struct hazard_run *run);

#endif
