/* Clocks, and the named points that an operation passes. */
#ifndef POINT_H
#define POINT_H

#include "op.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

int64_t now_us(void);  /* monotonic: deadlines, durations */
int64_t wall_us(void); /* Unix time: what is stored and shown */

/* The pause after n pauses: first, 2 * first ... most. app sees neither lockkit/base nor the
 * engines of db, which have their own. */
int64_t backoff_us(int64_t first_us, int64_t most_us, int n);

/* Waits on cond with the mutex held. False once now_us() is until_us; true when it was signalled,
 * or for no reason. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us);

/* op passes a point: its time is kept, listeners to events hear of it, and the at_point() of its
 * seams, if any, is called. */
void op_pass(struct op *op, enum op_point point);
/* All of them pass it at one instant. */
void op_pass_all(struct op **ops, size_t n, enum op_point point);

#endif
