#include "counters.h"

void counters_init(struct counters *counters)
{
    counters->batch.scale = &metric_sizes;
}

void counter_add(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void counters_step(struct counters *counters, const struct op *op)
{
    int64_t before_us = op->point_us[OP_SUBMITTED];
    for (int point = OP_WAITING; point <= OP_RELEASED; point++) {
        const int64_t at_us = op->point_us[point];
        if (at_us == 0)
            continue;
        counter_add(&counters->step_us[point], (uint64_t)(at_us - before_us));
        counter_add(&counters->stepped[point], 1);
        before_us = at_us;
    }
}
