#include "lab.h"
#include "answer.h"
#include "guard.h"
#include "lab_private.h"
#include "lab_slips.h"
#include "point.h"
#include "resource.h"

#include <stdio.h>
#include <string.h>

const char *const lab_point_names[OP_POINT_COUNT] = {
#define POINT_NAME(name, text) [OP_##name] = text,
    OP_POINT_MAP(POINT_NAME)
#undef POINT_NAME
};

/* The operation that this thread runs. The points of a lock do not know it. */
static _Thread_local struct {
    char key[OP_KEY_MAX + 1], request_id[65], user[DB_ID_MAX + 1];
    char resource[DB_RESOURCE_MAX + 1]; /* of an order or a change; "" */
    struct guard_lease lease;           /* of the locks it takes; 0: as configured */
    bool waited; /* its wait is traced: a polling waiter passes these points many times */
} current;

/* An order's own row has no value of this kind. */
static bool shows_value(const struct op *op, enum op_point point)
{
    if (op->kind == OP_PAY_ORDER || op->kind == OP_CANCEL_ORDER || op->kind == OP_REFUND_ORDER)
        return false;
    return point == OP_READ || point == OP_DECIDED || point == OP_COMMITTED;
}

static void begin(const struct op *op)
{
    current.waited = false;
    if (op->key[0] != '\0')
        snprintf(current.key, sizeof current.key, "%s", op_client_key(op));
    else /* an operation of the scheduled task */
        snprintf(current.key, sizeof current.key, "close:%s", op->id);
    snprintf(current.request_id, sizeof current.request_id, "%s", op->request_id);
    snprintf(current.user, sizeof current.user, "%s", op->other);
    current.resource[0] = '\0';
    if (op->kind == OP_PLACE_ORDER || op->kind == OP_CHANGE_STOCK)
        resource_name(current.resource, "item", op->id);
    else if (op->kind == OP_CHANGE_BALANCE)
        resource_name(current.resource, "account", op->id);
}

/* Applies the terms of this operation: in a lesson a wait may be longer than the service's. */
static void set_terms(struct op *op)
{
    const struct lab_terms terms = lab_terms_of(current.key, current.request_id, current.resource);
    current.lease = (struct guard_lease){.lease_ms = terms.lease_ms, .renewed = terms.watchdog};
    if (terms.wait_ms != 0)
        op->deadline_us = now_us() + terms.wait_ms * 1000;
}

static struct guard_lease lease_of_current(void)
{
    return current.lease;
}

static int lanes_of(const char *resource)
{
    return lab_terms_of("", "", resource).lanes;
}

static void (*slip_at)(struct op *op, enum op_point point);

void lab_at(void (*at)(struct op *op, enum op_point point))
{
    slip_at = at;
}

static void at_op_point(struct op *op, enum op_point point)
{
    if (op->kind >= OP_PUT_ITEM) {
        current.lease.lease_ms = 0; /* an earlier operation of this thread may have set it */
        return;
    }
    begin(op);
    if (point == OP_WAITING)
        set_terms(op);
    if (slip_at)
        slip_at(op, point);
    const struct lab_passage passage = {
        .point = lab_point_names[point],
        .key = current.key,
        .request_id = current.request_id,
        .user = current.user,
        .lock = "",
        .resource = current.resource,
        .value = op->shown_value,
        .fence = op->shown_fence,
        .has_value = shows_value(op, point),
        .section = op->section,
    };
    lab_trace_add(&passage);
    lab_pause_pass(&passage);
}

static void at_lock_point(void *ctx, const char *point, const char *lock)
{
    (void)ctx;
    const struct lab_passage passage = {.point = point,
                                        .key = current.key,
                                        .request_id = current.request_id,
                                        .user = current.user,
                                        .lock = lock,
                                        .resource = ""};
    bool waits = strcmp(point, LK_POINT_WAIT) == 0;
    if (strcmp(point, LK_POINT_TRY) != 0 && !(waits && current.waited))
        lab_trace_add(&passage);
    current.waited |= waits;
    lab_pause_pass(&passage);
}

static int64_t ahead_us;

static int64_t wall_clock_us(void *ctx)
{
    return lk_env_system()->wall_us(ctx) + ahead_us;
}

const bool lab_is_built = true;

bool lab_is_possible(const struct config *config)
{
    return config->lab_slip[0] == '\0' || lab_slip_is_known(config->lab_slip);
}

const struct lab *lab_open(const struct config *config)
{
    static lk_env env;
    static struct seams seams;
    static struct lab lab;
    env = *lk_env_system();
    env.point = at_lock_point;
    env.wall_us = wall_clock_us;
    ahead_us = config->lab_clock_ms * 1000;
    seams = (struct seams){.at_point = at_op_point,
                           .env = &env,
                           .lease = lease_of_current,
                           .lanes = lanes_of,
                           .one_by_one = true,
                           .looks_before = true,
                           .query = lab_query_lock};
    if (config->lab_slip[0] != '\0')
        lab_slip_install(config->lab_slip, &seams);
    lab = (struct lab){.seams = &seams, .routes = lab_routes(config)};
    return &lab;
}
