/* What a recorded tree says as a whole. */
#ifndef TREE_SUMS_H
#define TREE_SUMS_H

#include <jansson.h>

/* {"schedules", "losing", "fewest", "runs"}. Takes over runs. Each run that loses gets "lost_at":
 * so many of its moves were made when the loss stood in the row. fewest: the least number of moves
 * until then, without the end of a lease, which only takes time; null: none loses. */
json_t *tree_sums(json_t *runs);

/* Was more or less taken from the row than the accepted requests say? */
int tree_loses(const json_t *run);

#endif
