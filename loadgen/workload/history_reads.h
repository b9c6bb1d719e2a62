/*
 * Reads of a run's resources, for its history. One thread sends GETs beside the load on its own
 * connections; they count in no figure. Without them a history shows what the service accepted,
 * but not what other clients could see.
 */
#ifndef HISTORY_READS_H
#define HISTORY_READS_H

#include "run.h"

struct history_reads;

/* Reads until history_reads_stop(), at most 500 times a second. Without a history it does nothing
 * and *ret is NULL. Returns 0, or -1 with run->message. */
int history_reads_start(struct run *run, struct history_reads **ret);
void history_reads_stop(struct history_reads *reads);

#endif
