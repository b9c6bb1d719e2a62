/* Orders for many items at once, with lanes on, over service_rig.h. */
#ifndef TOGETHER_H
#define TOGETHER_H

#include "service_rig.h"

enum {
    ITEMS = 12,
    STOCK = 100000,
    ORDERS = 3000,
    FIRST = 2, /* items whose orders occupy the threads that serve many lanes */
    N = ITEMS - FIRST,
    PATIENCE_MS = 60000
};

extern struct op ops[ORDERS], holders[FIRST];

/* Set-up of a test: an empty Redis and a new database, default guard redis-token. */
int together_prepare(void **state);
/* Creates items "0" to "ITEMS - 1", with the guards in turn; "": the default guard. ops[0] to
 * ops[N - 1] become orders of the items from FIRST on. */
void together_start(const char *const *guards, size_t n_guards);
void together_start_locked(void); /* all with the default guard */
/* Fills op with an order of one piece. */
struct op *together_order(struct op *op, int item, int number);

/* Orders of the first items occupy the threads that serve many lanes. The first n orders in ops, of
 * other items, queue behind them and are then served in one turn. */
void together_gather(int n);
/* The same for N, and waits until all are answered. */
void together_run(void);

int64_t together_sold(void); /* pieces of all items */

#endif
