/* The scheduled task that closes unpaid orders and gives their stock back, on one instance at a
 * time. */
#ifndef CLOSE_ORDERS_H
#define CLOSE_ORDERS_H

#include "section.h"

struct close_orders;

/* Starts the task's thread. NULL without memory or threads. */
struct close_orders *close_orders_open(const struct section_base *base);
/* Ends it after the order that it closes at the moment. */
void close_orders_close(struct close_orders *task);

#endif
