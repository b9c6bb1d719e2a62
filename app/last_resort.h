/* The end of a process whose threads may wait for a server that hangs. */
#ifndef LAST_RESORT_H
#define LAST_RESORT_H

#include <stdint.h>

/* If the process still runs after ms, it says so on standard error and ends with the status 1. For
 * the store and the locks this is a kill: answered changes are durable, and locks end with their
 * leases. It uses SIGALRM. */
void last_resort_after(int64_t ms);

#endif
