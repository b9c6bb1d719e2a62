/* What goes wrong with Redis, memcached, and the net to them. */
#ifndef SIM_NEMESIS_NET_H
#define SIM_NEMESIS_NET_H

#include "sim_settings.h"

/* Begins one, once the last one has ended. */
void sim_net_fault(enum sim_event kind);
/* Waits until it has ended, then heals all. */
void sim_net_heal(void);

#endif
