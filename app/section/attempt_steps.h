/* One turn of a lane's operations, in steps; for attempt*.c only. attempt.c: the way of one run;
 * serve_lanes.c: of many; attempt_outcome.c: what becomes of one under its locks. */
#ifndef ATTEMPT_STEPS_H
#define ATTEMPT_STEPS_H

#include "attempt.h"

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
/* Its fences are taken, its rows read, it decides and commits; then as run_settle(). */
bool run_locked(struct run *run);
/* What became of a section's run: it is done, refused, or run again, until one of these. False: all
 * is to be begun again, as the guard was changed; or the run is left. */
bool run_settle(struct run *run, db_status status);
/* After the release. done: as run_settle() has it. */
void run_answer(struct run *run, bool done);
/* All of it, and while more of them wait again. Returns how many of ops are left, at their
 * beginning: only those in company can be. */
size_t run_turns(struct run *run, struct op **ops, size_t n);

int64_t run_deadline_us(const struct section *section); /* the first of its operations' */
/* The stored answer of op's key becomes its answer, or that it cannot be read; false: it has none.
 */
bool run_was_answered(struct run *run, struct op *op);
/* Answers those for which leave() says so; the others stay, in order. */
void run_leave_if(struct run *run, bool (*leave)(struct run *run, struct op *op));
/* All that are left get the problem. */
void run_fail(struct run *run, enum problem problem, const char *what, const char *why);
/* ... that the store is away; the log gets the store's own words, if it has any. */
void run_fail_store(struct run *run, db_status status, const char *told);
/* Answers op, which the caller takes out of the section. */
void run_finish(struct run *run, struct op *op);

#endif
