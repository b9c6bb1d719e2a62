#include "business.h"
#include "close_orders.h"
#include "reset.h"

const struct business business = {
#define OPERATION(kind, name, metric, event) .changes[OP_##kind] = &name##_operation,
    OP_BUSINESS_MAP(OPERATION)
#undef OPERATION
        .put = reset_put,
    .task_open = close_orders_open,
    .task_close = close_orders_close,
};
