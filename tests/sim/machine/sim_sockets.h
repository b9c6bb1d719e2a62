/* Sockets and eventfds of the simulated processes. */
#ifndef SIM_SOCKETS_H
#define SIM_SOCKETS_H

#include <stdbool.h>

void sim_sockets_begin(void);
bool sim_sockets_close(int fd); /* false: not ours */
/* The process has ended: the kernel closes what it had open. */
void sim_sockets_kill(int group);

#endif
