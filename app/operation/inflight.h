/* The idempotency keys of requests that run in this process now. The unique key of the idempotency
 * table decides, for all instances. This table saves the second request the work, and tells it why.
 */
#ifndef INFLIGHT_H
#define INFLIGHT_H

#include "op.h"

struct inflight;

struct inflight *inflight_open(void); /* NULL without memory */
void inflight_close(struct inflight *table);

/* False when op's key runs already. op stays in the table, and in place, until inflight_remove().
 */
bool inflight_add(struct inflight *table, struct op *op);
void inflight_remove(struct inflight *table, struct op *op);
bool inflight_has(struct inflight *table, const char *key);

#endif
