/*
 * A line in the log when a lock server or the store is away: clients are told that it is, whoever
 * runs the service is told why as well (with the server's address, which is no client's business).
 */
#ifndef AWAY_LOG_H
#define AWAY_LOG_H

#include "lockkit.h"

/* At most one line per second for all, however many failures there are; the next one counts those
 * that had none. Any thread. */
void away_log(const char *what, const char *why);

/* A lk_on_debt(); arg: the name of the guard. A release that the lock server did not confirm is
 * owed, until it is settled or left to its lease. At most one line per second and kind. */
void away_log_debt(void *arg, const char *key, lk_debt what, int64_t owed_ms);

/* Of a lock whose transaction is undecided; key: the first of its set. ms: since it is kept. At
 * most one line per second and kind. */
enum away_kept { AWAY_KEPT, AWAY_KEPT_DECIDED, AWAY_KEPT_LOST, AWAY_KEPT_LEFT };
void away_log_kept(enum away_kept what, const char *key, int64_t ms);

#endif
