/* Listeners of GET /v1/events, and operations that pass their points. */
#ifndef EVENTS_RIG_H
#define EVENTS_RIG_H

#include "events.h"
#include "http_events.h"
#include "http_fixture.h"
#include "point.h"
#include "process.h"
#include "sse.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static struct fixture fixture;

static inline int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.events_show_keys = *state != NULL;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static inline void listen_to(struct sse *sse, const char *path, const char *last_id)
{
    assert_true(sse_open(sse, fixture.port, path, last_id, false));
    assert_true(sse_await(sse, "event: hello", 1));
}

static inline struct op *order(struct op *op, const char *item, const char *key)
{
    memset(op, 0, sizeof *op);
    op->kind = OP_PLACE_ORDER;
    op->amount = 1;
    strcpy(op->id, item);
    strcpy(op->key, key);
    return op;
}

static inline void pass_all(struct op *op, int64_t before)
{
    static const enum op_point way[] = {OP_SUBMITTED, OP_WAITING, OP_ACQUIRED,  OP_READ,
                                        OP_DECIDED,   OP_CHECKED, OP_COMMITTED, OP_RELEASED};
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        op->shown_value = way[i] <= OP_READ ? before : before - 1;
        op_pass(op, way[i]);
    }
}

static inline bool nobody_listens(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_events_listeners") == 0;
}

#endif
