/* What goes wrong with a Redis Cluster as a whole. */
#ifndef SIM_NEMESIS_CLUSTER_H
#define SIM_NEMESIS_CLUSTER_H

#include "sim_settings.h"

/* SIM_REDIS_FAILOVER, SIM_REDIS_SPLIT, SIM_CLUSTER_SLOT, _TURN or _ROLL. Does it, until it is over.
 */
void sim_cluster_fault(enum sim_event kind);
/* A replica that was killed and is back gets what its master has. */
void sim_cluster_back(struct sim_redis *redis);

#endif
