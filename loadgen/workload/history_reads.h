/*
 * Reads of a run's resources, for its history: GETs beside the load, on a thread and connections of
 * their own, which no figure of the load counts. Without them a history shows what the service
 * accepted, and not what others could see of it.
 */
#ifndef HISTORY_READS_H
#define HISTORY_READS_H

#include "run.h"

struct history_reads;

/* Reads until history_reads_stop(), about 500 times a second; nothing (*ret is NULL) for a run
 * without a history. 0, or -1 with run->message. */
int history_reads_start(struct run *run, struct history_reads **ret);
void history_reads_stop(struct history_reads *reads);

#endif
