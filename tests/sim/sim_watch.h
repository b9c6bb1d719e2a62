/*
 * The judge while a run goes on: after each flush of the store and before each answer is believed,
 * it reads the store's file as it stands, and judges the rows (sim_judge.c).
 *
 * It reads through a file system of its own, which writes nothing and takes no locks. No time
 * passes and nobody else runs. So a run with it and a run without it leave one hash.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdbool.h>

void sim_watch_begin(bool on);
void sim_watch(void);
/* The file is not the one that was read: the power failed. */
void sim_watch_anew(void);

#endif
