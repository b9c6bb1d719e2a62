/* The end of a process whose threads may wait for a server that hangs. */
#ifndef LAST_RESORT_H
#define LAST_RESORT_H

#include <stdint.h>

/* After ms the process says so on standard error and ends with the status 1, whatever its threads
 * do. To the store and to others' locks this is a kill: what was answered is durable, locks end
 * with their leases. It uses SIGALRM. */
void last_resort_after(int64_t ms);

#endif
