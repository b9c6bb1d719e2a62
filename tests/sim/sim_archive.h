/*
 * Archives of the ledger: a process of its own that moves rows from a SQLite store to a file, while
 * the instances are down. It may be killed at any step, the power may fail, and it is begun again.
 * The judge reads store and file together.
 */
#ifndef SIM_ARCHIVE_H
#define SIM_ARCHIVE_H

#include <stdbool.h>

struct sqlite3;

extern const char sim_archive[]; /* the path of the file */

/* A new run: none was begun. */
void sim_archive_new(void);
/* Has one been begun? Then the store alone does not have all rows. */
bool sim_archive_begun(void);
/* Runs one that moves the rows from before a random moment. A third is killed at some step, a third
 * soon after a flush of the file: a part is in it then, and perhaps not out of the store.
 * True: it was killed. One runs at a time: false, if another one does. */
bool sim_archive_run(void);
/* As kill -9, if one runs. */
void sim_archive_kill(void);
/* At each step of a group. */
void sim_archive_at_step(int group);
/* The folder was flushed. */
void sim_archive_flushed(void);
/* Once all is healed, and all instances have ended: the last one must end. */
void sim_archive_finish(void);
/* Rules about both; from now on "ledger" has the rows of store and file for this connection. */
void sim_archive_judge(struct sqlite3 *store);

#endif
