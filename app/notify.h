/*
 * Tells the service manager the state of the service: sd_notify(3), which is one datagram. Without
 * NOTIFY_SOCKET in the environment nothing is sent.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdint.h>

/* Sends "READY=1", "STOPPING=1", "WATCHDOG=1" ...; several lines are allowed. 0: sent, or there
 * is no NOTIFY_SOCKET. -1 with errno. */
int notify(const char *state);

/* The manager restarts the service if it does not hear WATCHDOG=1 within this time; -1: it does not
 * wait. From WATCHDOG_USEC and WATCHDOG_PID. */
int64_t notify_watchdog_ms(void);

#endif
