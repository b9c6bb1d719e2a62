/* Faults: how each strikes, and how it is healed. */
#ifndef TORTURE_FAULTS_H
#define TORTURE_FAULTS_H

#include "torture_world.h"

/* Returns true when it was seen to take effect. */
bool torture_strike(struct torture_world *world, const struct torture_strike *strike);
/* Undoes what does not end by itself. False: not yet, call it again. Killed and stopped processes
 * come back with torture_world_tick(). */
bool torture_unstrike(struct torture_world *world, const struct torture_strike *strike);
/* Has the same hold stood for some 20 ms? Asked while an instance is paused. */
bool torture_lock_stands(struct torture_world *world);
/* A minority of the lock servers dies and stays dead. */
void torture_leave_broken(struct torture_world *world);

/* torture_faults_store.c */
bool torture_store_strike(struct torture_world *world, const struct torture_strike *strike);
bool torture_store_unstrike(struct torture_world *world, const struct torture_strike *strike);

#endif
