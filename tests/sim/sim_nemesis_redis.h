/* What goes wrong with Redis. */
#ifndef SIM_NEMESIS_REDIS_H
#define SIM_NEMESIS_REDIS_H

#include "sim_settings.h"

/* Begins one, once the last one has ended. */
void sim_redis_fault(enum sim_event kind);
/* Waits until it has ended, then heals all. */
void sim_redis_heal(void);

#endif
