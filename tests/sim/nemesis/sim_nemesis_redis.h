/* What goes wrong with Redis. */
#ifndef SIM_NEMESIS_REDIS_H
#define SIM_NEMESIS_REDIS_H

#include "sim_settings.h"

/* Does it, until it is over. */
void sim_redis_fault(enum sim_event kind);
void sim_redis_heal(void);

#endif
