/*
 * A line in the log when a lock server or the store is away: clients are told that it is, whoever
 * runs the service is told why as well (with the server's address, which is no client's business).
 */
#ifndef AWAY_LOG_H
#define AWAY_LOG_H

/* At most one line per second for all, however many failures there are; the next one counts those
 * that had none. Any thread. */
void away_log(const char *what, const char *why);

#endif
