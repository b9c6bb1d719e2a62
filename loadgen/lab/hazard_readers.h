/*
 * Two readers in a relay, from the lab itself: each takes the run's lock in shared mode, reads the
 * balance, and reads it once more before it goes, which it does when the other one is inside. Only
 * a refusal, because somebody waits to write, makes one go without the other; who was refused then
 * waits in turn. 0, or -1 with run->message.
 */
#ifndef HAZARD_READERS_H
#define HAZARD_READERS_H

#include "hazard_run.h"

/* Starts them; both have been inside together. */
int readers_send(struct hazard_run *run);
/* Until they have been inside together twice more. */
int readers_until_inside(struct hazard_run *run);
/* Until one waits and none is inside, or, where the lock lets them in beside a writer, as above. */
int readers_as_far_as(struct hazard_run *run);
/* Both go, and say what they saw. */
int readers_answer(struct hazard_run *run);

#endif
