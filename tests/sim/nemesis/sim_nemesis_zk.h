/* What goes wrong with ZooKeeper. */
#ifndef SIM_NEMESIS_ZK_H
#define SIM_NEMESIS_ZK_H

#include "sim_settings.h"

/* Does it, or begins it. False: it is no fault of ZooKeeper. */
bool sim_zk_fault(enum sim_event kind);
void sim_zk_heal(void);

#endif
