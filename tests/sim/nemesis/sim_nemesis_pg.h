/* What goes wrong with PostgreSQL. */
#ifndef SIM_NEMESIS_PG_H
#define SIM_NEMESIS_PG_H

#include "sim_settings.h"

/* Does it, until it is over. False: it is no fault of PostgreSQL. */
bool sim_pg_fault(enum sim_event kind);

#endif
