/* The scheduled task that closes unpaid orders and gives their stock back, on one instance at a
 * time. */
#ifndef CLOSE_ORDERS_H
#define CLOSE_ORDERS_H

#include "section.h"
#include "counters.h"

struct close_orders;

/* Starts the task's thread. NULL without memory or threads. All is borrowed. */
struct close_orders *close_orders_open(const struct config *config, const struct seams *seams,
                                       struct guards *guards, db *store, struct keeper *keeper,
                                       struct counters *counters);
/* Ends it, after the order in hand. */
void close_orders_close(struct close_orders *task);

#endif
