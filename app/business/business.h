/* What the service does. Each kind of operation has its own file: order.c, account.c, payment.c ...
 * The table of them is handed to service_open(). */
#ifndef BUSINESS_H
#define BUSINESS_H

#include "op.h"
#include "section.h"

#define OPERATION_DECLARED(kind, name, metric, event)                                              \
    extern const struct operation name##_operation;
OP_BUSINESS_MAP(OPERATION_DECLARED)
#undef OPERATION_DECLARED

extern const struct business business;

extern const struct operation close_operation; /* cancellation.c; of the scheduled task */

#endif
