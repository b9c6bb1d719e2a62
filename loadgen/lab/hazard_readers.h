/*
 * Two readers of the lab itself that take turns. Each takes the run's lock in shared mode, reads
 * the balance, and releases when the other reader is inside; before that it reads the balance
 * again. If the other is refused because a writer waits, the reader releases alone, and the refused
 * one waits for the lock. Each function returns 0, or -1 with run->message.
 */
#ifndef HAZARD_READERS_H
#define HAZARD_READERS_H

#include "hazard_run.h"

/* Starts both. Returns when both were inside together. */
int readers_send(struct hazard_run *run);
/* Waits until both were inside together twice more. */
int readers_until_inside(struct hazard_run *run);
/* Waits until one waits and none is inside. Where the lock admits readers beside a waiting writer:
 * as readers_until_inside(). */
int readers_as_far_as(struct hazard_run *run);
/* Ends both and takes what they observed. */
int readers_answer(struct hazard_run *run);

#endif
