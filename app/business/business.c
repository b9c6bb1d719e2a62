#include "business.h"
#include "close_orders.h"
#include "prune_keys.h"
#include "prune_refusals.h"
#include "reset.h"
#include "setting.h"

#include <stdlib.h>

struct tasks {
    struct close_orders *close_orders;
    struct prune_keys *prune_keys;
    struct prune_refusals *prune_refusals;
};

static void tasks_close(struct tasks *tasks)
{
    if (tasks == NULL)
        return;
    close_orders_close(tasks->close_orders);
    prune_keys_close(tasks->prune_keys);
    prune_refusals_close(tasks->prune_refusals);
    free(tasks);
}

static struct tasks *tasks_open(const struct section_base *base)
{
    struct tasks *tasks = calloc(1, sizeof *tasks);
    if (tasks == NULL)
        return NULL;
    tasks->close_orders = close_orders_open(base);
    tasks->prune_keys = prune_keys_open(base);
    tasks->prune_refusals = prune_refusals_open(base);
    if (tasks->close_orders != NULL && tasks->prune_keys != NULL && tasks->prune_refusals != NULL)
        return tasks;
    tasks_close(tasks);
    return NULL;
}

static void put(struct section *section, struct op *op)
{
    if (op_is_patch(op->kind))
        setting_patch(section, op);
    else
        reset_put(section, op);
}

const struct business business = {
#define OPERATION(kind, name, metric, event) .changes[OP_##kind] = &name##_operation,
    OP_BUSINESS_MAP(OPERATION)
#undef OPERATION
        .put = put,
    .tasks_open = tasks_open,
    .tasks_close = tasks_close,
};
