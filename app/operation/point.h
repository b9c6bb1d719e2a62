/* Clocks, and the named points that an operation passes. */
#ifndef POINT_H
#define POINT_H

#include "op.h"

#include <stddef.h>

int64_t now_us(void);  /* monotonic: deadlines, durations */
int64_t wall_us(void); /* Unix time: what is stored and shown */

/* op passes point: its time is kept and the hook, if any, called. */
void op_pass(struct op *op, enum op_point point);
/* All of them pass it at one instant. */
void op_pass_all(struct op **ops, size_t n, enum op_point point);

/* Called at every point of every operation, in the thread that runs it: traces it, holds it there,
 * or kills it there. NULL: none. */
typedef void point_hook(struct op *op, enum op_point point);
void point_set_hook(point_hook *hook);

#endif
