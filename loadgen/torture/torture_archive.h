/*
 * Archives of the ledger in a round: "seckilld archive", run and killed as an operator or a power
 * cut may do it.
 *
 * Only closed months are moved, and a round takes seconds. So the command's clock is 32 days ahead
 * of all others (libclockshim.so): for it the month of the round is over.
 */
#ifndef TORTURE_ARCHIVE_H
#define TORTURE_ARCHIVE_H

#include "torture_world.h"

/* For a round: none runs, none has run. Returns 0, or -1 after a message on stderr. */
int torture_archive_prepare(struct torture_world *world);
/* Begins one, or begins again what was killed. On SQLite the instances are killed first, and stay
 * down while it runs. aim: it is killed once a part is in the file, and perhaps not yet out of the
 * store. False: one runs. */
bool torture_archive_begin(struct torture_world *world, bool aim);
/* False: it still runs. */
bool torture_archive_look(struct torture_world *world);
/* Kills it if it still runs. */
void torture_archive_kill(struct torture_world *world);
/* After the round, with all instances ended: runs the archive to its end, and lets the service
 * audit store and archive. Returns NULL, or what went wrong. sound: the audit must find none. */
const char *torture_archive_finish(struct torture_world *world, bool sound);

#endif
