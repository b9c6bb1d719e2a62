/* The idempotency keys of requests that run in this process now. The unique key of the idempotency
 * table decides, for all instances. This table saves the second request the work, and tells it why.
 */
#ifndef INFLIGHT_H
#define INFLIGHT_H

#include "op.h"

struct inflight;

struct inflight *inflight_open(void); /* NULL without memory */
void inflight_close(struct inflight *table);

/* False: an operation with op's key runs already. True: op is in the table until inflight_remove(),
 * and must not move. */
bool inflight_add(struct inflight *table, struct op *op);
void inflight_remove(struct inflight *table, struct op *op);
bool inflight_has(struct inflight *table, const char *key);

#endif
