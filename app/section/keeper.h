/*
 * The keeper of locks whose transaction is undecided.
 *
 * Undecided: the store has not told whether the transaction is committed or never will be (db.h).
 * Until then its locks are not released. A worker that meets an unknown outcome asks the store for
 * a short time. Then it hands its locks to the keeper, answers its clients, and goes on. The
 * keeper's thread asks until the transaction is decided, then releases the locks. Until then each
 * lock is held like any other: the watchdog renews it up to --max-hold-ms, or its lease ends. If a
 * lock ends before the decision, it is counted and logged. From then on only a fence protects the
 * row.
 *
 * Bounded: while all places are taken, keeper_take() waits.
 * Threading: any thread.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "counters.h"
#include "lock_set.h"

enum { KEEPER_LOCK_SETS_MAX = 128 };

struct keeper;

/* Starts the thread. NULL: no memory or threads. All is borrowed. Of seams it uses
 * forgets_unknown. */
struct keeper *keeper_open(db *store, const struct seams *seams, struct counters *counters);
/* From now on keeper_take() does not wait for a place: it abandons the locks, as keeper_close()
 * does.
 */
void keeper_stop_waiting(struct keeper *keeper);
/* Asks for at most a few more seconds. A lock that is undecided even then is not released: it ends
 * with its lease, or with the process. Call keeper_take() no more. */
void keeper_close(struct keeper *keeper);

/* After DB_UNKNOWN, for a short time. True: the transaction is decided; readers see it, or it never
 * will be committed. */
bool keeper_find_out(struct keeper *keeper, const db_commit_id *commit_id);
/* Instead of lock_set_release(). Takes the locks out of the set. */
void keeper_take(struct keeper *keeper, struct lock_set *set, const db_commit_id *commit_id);

#endif
