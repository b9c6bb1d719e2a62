/* One turn of a lane's operations, in steps; for guarded.c and guarded_together.c only. */
#ifndef GUARDED_PRIVATE_H
#define GUARDED_PRIVATE_H

#include "guarded.h"

struct run {
    const struct guarded_host *host;
    struct section *section;
    bool in_company; /* others would wait with it: so it waits for nothing */
    bool left;       /* as it would have to wait: its operations are not answered */
    int relocks;     /* times that the guard was changed between reading and taking it */
    int64_t turn;    /* under the lock, from 1 on */
    bool goes_on;    /* with another one under the lock that was kept */
    char lane[DB_RESOURCE_MAX + 1];
};

/* False: there is nothing to read from, and all have been told. */
bool run_begin(struct run *run, struct op **ops, size_t n);
/* Before the locks, for n runs with one reader: those who are answered or late leave, the others'
 * rows are named. All from one snapshot; without one (the store is away) each read says why for
 * itself. */
void run_look_up(struct run *runs, size_t n);
void run_note_acquired(struct run *run);
/* What became of a section's run: it is done, refused, or run again, until one of these. False: all
 * is to be begun again, as the guard was changed; or the run is left. */
bool run_settle(struct run *run, db_status status);
/* After the release. done: as run_settle() has it. */
void run_answer(struct run *run, bool done);
/* All of it, and while more of them wait again. Returns how many of ops are left, at their
 * beginning: only those in company can be. */
size_t run_turns(struct run *run, struct op **ops, size_t n);

#endif
