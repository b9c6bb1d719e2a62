#include "together.h"
#include "redis.h"
#include "tests.h"

#include <stdio.h>

struct op ops[ORDERS], holders[FIRST];

int together_prepare(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    rig_reset("redis-token");
    return 0;
}

struct op *together_order(struct op *op, int item, int number)
{
    char id[16];
    snprintf(id, sizeof id, "%d", item);
    return op_make(op, OP_PLACE_ORDER, id, "u1", 1, number);
}

void together_start(const char *const *guards, size_t n_guards)
{
    struct op op;
    char id[16];
    assert_int_equal(rig_start(), 0);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof id, "%d", i);
        op_put_item(&op, id, STOCK, guards[(size_t)i % n_guards]);
        assert_int_equal(op_run(rig.service, &op), 200);
    }
    for (int i = 0; i < N; i++)
        together_order(&ops[i], FIRST + i, i);
}

void together_start_locked(void)
{
    together_start((const char *const[]){""}, 1);
}

void together_gather(int n)
{
    static int number = ORDERS;
    for (int i = 0; i < FIRST; i++) {
        together_order(&holders[i], i, number++);
        gate_set(i, OP_DECIDED, holders[i].request_id);
        ops_submit(rig.service, &holders[i], 1);
        gate_wait(i);
    }
    ops_submit(rig.service, ops, (size_t)n);
    for (int i = 0; i < FIRST; i++)
        gate_open(i);
}

void together_run(void)
{
    together_gather(N);
    ops_wait(holders, FIRST);
    ops_wait(ops, N);
    points_clear();
}

int64_t together_sold(void)
{
    char id[16];
    int64_t sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id, sizeof id, "%d", i);
        sum += STOCK - rig_number(OP_GET_ITEM, id, "stock");
    }
    return sum;
}
