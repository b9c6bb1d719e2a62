/*
 * A line in the log when a lock server or the store is away: clients are told that it is, whoever
 * runs the service is told why as well (with the server's address, which is no client's business).
 */
#ifndef AWAY_LOG_H
#define AWAY_LOG_H

#include "../lockkit/lockkit.h"

/* At most one line per second for all, however many failures there are; the next one counts those
 * that had none. Any thread. */
void away_log(const char *what, const char *why);

/* A lk_on_debt(); arg: the name of the guard. A release that the lock server did not confirm is
 * owed, until it is settled or left to its lease. At most one line per second and kind. */
void away_log_debt(void *arg, const char *key, lk_debt what, int64_t owed_ms);

#endif
