/* What each kind of operation does. One file each: order.c, account.c, payment.c, cancellation.c,
 * transfer.c. */
#ifndef BUSINESS_H
#define BUSINESS_H

#include "section.h"

extern const struct operation order_operation;        /* OP_PLACE_ORDER */
extern const struct operation account_operation;      /* OP_CHANGE_BALANCE */
extern const struct operation payment_operation;      /* OP_PAY_ORDER */
extern const struct operation cancellation_operation; /* OP_CANCEL_ORDER */
extern const struct operation close_operation;        /* cancellation.c; of the scheduled task */
extern const struct operation transfer_operation;     /* OP_TRANSFER */

#endif
