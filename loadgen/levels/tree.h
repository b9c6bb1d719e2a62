/* All schedules of a level: each order in which its requests can be moved, one after the other, is
 * run once on the real service. */
#ifndef TREE_H
#define TREE_H

#include "stage.h"

/* {"schedules", "losing", "fewest", "runs"}; NULL with stage->message. stop: ends it early. */
json_t *tree_record(struct stage *stage, const atomic_bool *stop);

#endif
