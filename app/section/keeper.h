/*
 * Locks whose transaction is undecided.
 *
 * No lock is given back before its transaction is known to be committed or known never to commit.
 * A worker that meets an unknown outcome asks the store for a little while; then it hands its locks
 * to the keeper, answers its clients, and goes on. The keeper's thread asks until the transaction
 * is decided, and releases the locks then. Meanwhile each lock is held as any other is: renewed by
 * the watchdog up to --max-hold-ms, or until its lease ends. A lock that has ended before the
 * decision is counted and logged: from then on only a fence stands.
 *
 * Bounded: while all its places are taken, those who bring more wait.
 * Threading: any thread.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "counters.h"
#include "lock_set.h"

enum { KEEPER_LOCK_SETS_MAX = 128 };

struct keeper;

/* Starts its thread. NULL without memory or threads. All is borrowed; of seams, forgets_undecided
 * counts. */
struct keeper *keeper_open(db *store, const struct seams *seams, struct counters *counters);
/* From now on those who would wait for a place leave their locks as keeper_close() does. */
void keeper_waits_no_more(struct keeper *keeper);
/* Asks for a few more seconds at most. A lock that is still undecided then is not released: it ends
 * with its lease, or with the process. Nobody may bring any more. */
void keeper_close(struct keeper *keeper);

/* Of a DB_UNKNOWN. True: it is decided, and readers see it or never will. */
bool keeper_finds_out(struct keeper *keeper, const db_doubt *doubt);
/* In place of lock_set_release(): the set is empty then. */
void keeper_take(struct keeper *keeper, struct lock_set *set, const db_doubt *doubt);

#endif
