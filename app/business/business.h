/* What each kind of operation does, in a file of its own: order.c, account.c, payment.c ... */
#ifndef BUSINESS_H
#define BUSINESS_H

#include "op.h"
#include "section.h"

#define OPERATION_DECLARED(kind, name, metric, event)                                              \
    extern const struct operation name##_operation;
OP_BUSINESS_MAP(OPERATION_DECLARED)
#undef OPERATION_DECLARED

extern const struct operation close_operation; /* cancellation.c; of the scheduled task */

#endif
