/*
 * Lines in the log when a lock server or the store is away. A client is only told that it is away.
 * The log also says why, with the address of the server, which no client needs to know.
 */
#ifndef AWAY_LOG_H
#define AWAY_LOG_H

#include "lockkit.h"

/* Writes at most one line per second. The next line counts the failures that had none. Any thread.
 */
void away_log(const char *what, const char *why);

/* A lk_on_pending(); arg: the name of the guard. A release that the lock server did not confirm is
 * pending until it is done or given up. At most one line per second and kind. */
void away_log_pending(void *arg, const char *key, lk_pending what, int64_t pending_ms);

/* For a lock whose transaction is undecided. key: the first of its set. ms: how long it is kept. At
 * most one line per second and kind. */
enum away_kept { AWAY_KEPT, AWAY_KEPT_DECIDED, AWAY_KEPT_LOST, AWAY_KEPT_LEFT };
void away_log_kept(enum away_kept what, const char *key, int64_t ms);

#endif
