/*
 * The scheduled task that keeps at most --refusals-max refusals (db/upkeep.h), so that strangers
 * who are refused do not fill the disk.
 *
 * It counts once a second, or less often, so that counting takes 1 % of a core at most. Then it
 * deletes what is beyond the bound, the oldest first, in small bites. So it costs what the refusals
 * of that time are worth, and nothing if there are few. It rests while the store has no index of
 * refusals, and says so once in the log.
 */
#ifndef PRUNE_REFUSALS_H
#define PRUNE_REFUSALS_H

#include "section.h"

struct prune_refusals;

/* Starts the task's thread. NULL without memory or threads. */
struct prune_refusals *prune_refusals_open(const struct section_base *base);
void prune_refusals_close(struct prune_refusals *task); /* after its bite; NULL is allowed */

#endif
