#include "service.h"
#include "answer.h"
#include "events.h"
#include "point.h"
#include "resource.h"
#include "service_private.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

bool service_is_business(const struct op *op)
{
    return op->kind < OP_PUT_ITEM;
}

/* True for a POST. GET /v1/transactions has a key, too, but only reads its answer. */
static bool runs_under_key(const struct op *op)
{
    return service_is_business(op) && op->key[0] != '\0';
}

/* -- crowds: no item and no user fills the queue of all others --------------------------------- */

enum { CROWD_MIN = 64, RESOURCE_PART = 2, USER_PART = 16 };

/* The share of the queue that operations of one name may have. */
static uint32_t crowd_max(const struct service *service, int part)
{
    const int64_t max = service->config->queue_max / part;
    return max > CROWD_MIN ? (uint32_t)max : CROWD_MIN;
}

static void leave_crowds(struct service *service, struct op *op)
{
    while (op->n_crowds > 0)
        crowd_leave(service->crowd, op->crowds[--op->n_crowds]);
}

static bool enter(struct service *service, struct op *op, const char *kind, const char *name,
                  int part)
{
    const uint32_t max = crowd_max(service, part);
    if (name[0] == '\0')
        return true;
    if (crowd_enter(service->crowd, kind, name, max, &op->crowds[op->n_crowds])) {
        op->n_crowds++;
        return true;
    }
    op_problem(op, PROBLEM_TOO_MANY_WAITING, "%s %s has %u requests waiting; try later", kind, name,
               (unsigned)max);
    return false;
}

/* Counts what changes stock or balances: by its resource, and by its user or second account. False:
 * op has its problem. */
static bool enter_crowds(struct service *service, struct op *op)
{
    static const char *const kinds[OP_PUT_ITEM] = {[OP_PLACE_ORDER] = "item",
                                                   [OP_CHANGE_BALANCE] = "account",
                                                   [OP_CHANGE_STOCK] = "item",
                                                   [OP_TRANSFER] = "account"};
    op->n_crowds = 0;
    if (!service_is_business(op))
        return true;
    const char *kind = kinds[op->kind] ? kinds[op->kind] : "order";
    const char *buyer = op->own_only ? op->caller : ""; /* an operator asks for many users */
    return enter(service, op, kind, op->id, RESOURCE_PART) &&
           (op->kind == OP_TRANSFER      ? enter(service, op, "account", op->other, RESOURCE_PART)
            : op->kind == OP_PLACE_ORDER ? enter(service, op, "user", op->other, USER_PART)
                                         : enter(service, op, "user", buyer, USER_PART));
}

/* -- one operation ---------------------------------------------------------------------------- */

/* One accepted operation more; before service_drain() begins to wait, or it is refused. */
static void add_accepted(struct service *service, enum op_kind kind)
{
    atomic_fetch_add(&service->accepted, 1);
    if (kind == OP_AUDIT)
        atomic_fetch_add(&service->audits_accepted, 1);
}

/* One accepted operation less. */
static void drop_accepted(struct service *service, enum op_kind kind)
{
    if (kind == OP_AUDIT)
        atomic_fetch_sub(&service->audits_accepted, 1);
    atomic_fetch_sub(&service->accepted, 1);
    if (!atomic_load(&service->draining))
        return;
    pthread_mutex_lock(&service->mutex);
    pthread_cond_broadcast(&service->idle);
    pthread_mutex_unlock(&service->mutex);
}

static void count_outcome(struct service *service, const struct op *op)
{
    int outcome = op->answer.status == 0 ? OUTCOME_ABANDONED
                  : op->answer.replayed  ? OUTCOME_REPLAYED
                                         : (int)op->answer.problem;
    counter_add(&service->counters.outcomes[op->kind][outcome], 1);
}

void service_finish(struct service *service, struct op *op)
{
    if (runs_under_key(op))
        inflight_remove(service->inflight, op);
    count_outcome(service, op);
    if (service_is_business(op) && op->point_us[OP_COMMITTED] != 0 &&
        op->answer.problem == PROBLEM_NONE)
        counters_step(&service->counters, op);
    const enum op_kind kind = op->kind;
    leave_crowds(service, op);
    op->done(op);
    drop_accepted(service, kind);
}

static bool refused(struct service *service, struct op *op)
{
    leave_crowds(service, op);
    count_outcome(service, op);
    drop_accepted(service, op->kind);
    return false;
}

static bool refuse(struct service *service, struct op *op, enum problem problem, const char *detail)
{
    op_problem(op, problem, "%s", detail);
    return refused(service, op);
}

static struct lanes *lanes_for(struct service *service, enum op_kind kind)
{
    if (kind == OP_READY)
        return service->probes;
    if (kind >= OP_AUDIT)
        return kind == OP_AUDIT ? service->audits : service->asks;
    return kind < OP_GET_ITEM ? service->writes : service->reads;
}

const char *service_lane_name(const struct service *service, const struct op *op,
                              char name[DB_RESOURCE_MAX + 1])
{
    const struct seams *seams = service->seams;
    if (op->kind == OP_GET_ITEM) {
        resource_name(name, "item", op->id);
        return name;
    }
    if ((!service->config->lanes && !seams->lanes) || op->kind > OP_CHANGE_BALANCE)
        return NULL;
    resource_name(name, op->kind == OP_PLACE_ORDER ? "item" : "account", op->id);
    const int wanted = seams->lanes ? seams->lanes(name) : -1;
    return (wanted < 0 ? service->config->lanes : wanted > 0) ? name : NULL;
}

size_t service_batch_max(const struct service *service)
{
    const struct config *config = service->config;
    return config->lanes || service->seams->lanes ? (size_t)config->batch : 1;
}

bool service_submit(struct service *service, struct op *op)
{
    char name[DB_RESOURCE_MAX + 1];
    op->seams = service->seams;
    op->answer.problem = PROBLEM_NONE;
    op->answer.replayed = op->answer.decided = false;
    add_accepted(service, op->kind);
    if (atomic_load(&service->draining))
        return refuse(service, op, PROBLEM_DRAINING, "this instance is shutting down");
    if (!enter_crowds(service, op))
        return refused(service, op);
    bool keyed = runs_under_key(op);
    if (keyed && !inflight_add(service->inflight, op))
        return refuse(service, op, PROBLEM_IN_FLIGHT, "ask again when it is done");
    op_pass(op, OP_SUBMITTED);
    if (lanes_submit(lanes_for(service, op->kind), service_lane_name(service, op, name), op))
        return true;
    if (keyed)
        inflight_remove(service->inflight, op);
    return refuse(service, op, PROBLEM_OVERLOADED, "too many requests are waiting; try later");
}

/* -- clients that have gone ------------------------------------------------------------------- */

static bool is_abandoned(const struct op *op)
{
    return atomic_load_explicit(&op->abandoned, memory_order_relaxed);
}

void service_withdraw(struct service *service)
{
    struct lanes *const queues[] = {service->writes, service->reads, service->audits, service->asks,
                                    service->probes};
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++) {
        struct op *op = lanes_withdraw(queues[i], is_abandoned);
        for (struct op *next; op; op = next) {
            next = op->next;
            op->answer.status = 0;
            if (events_wanted(op->point_us[OP_SUBMITTED]))
                events_pass(&op, 1, OP_REJECTED, now_us());
            service_finish(service, op);
        }
    }
}

/* -- life ------------------------------------------------------------------------------------- */

static bool open_store(struct service *service)
{
    const struct config *config = service->config;
    db_error error;
    const db_options options = {
        .url = config->db,
        .sync = config->sync_normal ? DB_SYNC_NORMAL : DB_SYNC_FULL,
        .shared_file = config->db_shared,
    };
    if (db_open(&options, &service->db, &error) == DB_OK)
        return true;
    fprintf(stderr, "seckilld: store: %s\n", error.message); /* the URL may hold a password */
    return false;
}

int service_open(const struct config *config, const struct business *business,
                 const struct seams *seams, struct service **ret)
{
    struct service *service = calloc(1, sizeof *service);
    if (!service) {
        fprintf(stderr, "seckilld: no memory\n");
        return -1;
    }
    service->config = config;
    service->business = business;
    service->seams = seams ? seams : &seams_none;
    counters_init(&service->counters);
    pthread_mutex_init(&service->mutex, NULL);
    pthread_cond_init(&service->idle, NULL);

    bool ready = open_store(service) && guards_open(config, service->seams, &service->guards) == 0;
    if (ready) {
        service->inflight = inflight_open();
        service->crowd = crowd_open();
        service->keeper = keeper_open(service->db, service->seams, &service->counters);
        ready =
            service->inflight && service->crowd && service->keeper && service_open_threads(service);
        if (!ready)
            fprintf(stderr, "seckilld: no memory or threads; lower --workers or --batch\n");
    }
    if (!ready) {
        service_close(service);
        return -1;
    }
    *ret = service;
    return 0;
}

/* Waits until all accepted operations are done, but for so many; with the mutex. */
static bool wait_for_all(struct service *service, const atomic_size_t *but, int64_t timeout_ms)
{
    const int64_t until_us = now_us() + timeout_ms * 1000;
    while (atomic_load(&service->accepted) > (but ? atomic_load(but) : 0))
        if (!cond_wait_until(&service->idle, &service->mutex, until_us))
            return false;
    return true;
}

bool service_drain(struct service *service, int64_t timeout_ms)
{
    enum { AUDITS_MS = 1000, LAST_MS = 1000 };
    pthread_mutex_lock(&service->mutex);
    atomic_store(&service->draining, true);
    bool drained = wait_for_all(service, &service->audits_accepted, timeout_ms) &&
                   wait_for_all(service, NULL, AUDITS_MS);
    if (!drained) {
        atomic_store(&service->closing, true); /* audits look at it */
        drained = wait_for_all(service, NULL, LAST_MS);
    }
    pthread_mutex_unlock(&service->mutex);
    return drained;
}

void service_close(struct service *service)
{
    if (!service)
        return;
    atomic_store(&service->draining, true);
    atomic_store(&service->closing, true);
    if (service->keeper)
        keeper_stop_waiting(service->keeper);
    service->business->tasks_close(service->tasks);
    lanes_close(service->writes);
    lanes_close(service->reads);
    lanes_close(service->audits);
    lanes_close(service->asks);
    lanes_close(service->probes);
    assert(atomic_load(&service->accepted) == 0);
    keeper_close(service->keeper);
    inflight_close(service->inflight);
    crowd_close(service->crowd);
    guards_close(service->guards);
    db_close(service->db);
    pthread_cond_destroy(&service->idle);
    pthread_mutex_destroy(&service->mutex);
    free(service);
}
