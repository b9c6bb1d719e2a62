/* epoll(7) on the descriptors of the simulated kernel. */
#ifndef SIM_EPOLL_H
#define SIM_EPOLL_H

#include <stdbool.h>

bool sim_epoll_close(int fd); /* false: it is none */

#endif
