#include "service.h"
#include "admin.h"
#include "answer.h"
#include "business.h"
#include "point.h"
#include "queries.h"
#include "service_private.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum { READ_THREADS = 2 };

static const struct operation *operations[] = {
    [OP_PLACE_ORDER] = &order_operation, [OP_CHANGE_BALANCE] = &account_operation,
    [OP_PAY_ORDER] = &payment_operation, [OP_CANCEL_ORDER] = &cancellation_operation,
    [OP_TRANSFER] = &transfer_operation,
};

void service_use(enum op_kind kind, const struct operation *operation)
{
    assert(kind < sizeof operations / sizeof operations[0]);
    operations[kind] = operation;
}

static bool is_business(const struct op *op)
{
    return op->kind < OP_PUT_ITEM;
}

/* A POST; GET /v1/transactions has a key too, but asks about it. */
static bool runs_under_key(const struct op *op)
{
    return is_business(op) && op->key[0] != '\0';
}

/* -- an operation's way ------------------------------------------------------------------------ */

static void leave(struct service *service)
{
    if (atomic_fetch_sub(&service->accepted, 1) > 1 || !atomic_load(&service->draining))
        return;
    pthread_mutex_lock(&service->mutex);
    pthread_cond_broadcast(&service->idle);
    pthread_mutex_unlock(&service->mutex);
}

static void count_outcome(struct service *service, const struct op *op)
{
    counter_add(&service->counters.outcomes[op->kind][op->answer.problem], 1);
}

static void finish(void *ctx, struct op *op)
{
    struct service *service = ctx;
    if (runs_under_key(op))
        inflight_remove(service->inflight, op);
    count_outcome(service, op);
    if (is_business(op) && op->point_us[OP_COMMITTED] != 0 && op->answer.problem == PROBLEM_NONE)
        counters_step(&service->counters, op);
    op->done(op);
    leave(service);
}

static bool turn_away(struct service *service, struct op *op, enum problem problem,
                      const char *detail)
{
    op_problem(op, problem, "%s", detail);
    count_outcome(service, op);
    leave(service);
    return false;
}

static struct lanes *lanes_for(struct service *service, enum op_kind kind)
{
    if (kind == OP_READY)
        return service->probes;
    if (kind >= OP_AUDIT)
        return kind == OP_AUDIT ? service->audits : service->asks;
    return kind < OP_GET_ITEM ? service->writes : service->reads;
}

static int (*lanes_wanted)(const char *resource);

void service_set_lanes(int (*wanted)(const char *resource))
{
    lanes_wanted = wanted;
}

/* The lane for what uses one resource only. */
static const char *lane_name(const struct service *service, const struct op *op,
                             char name[DB_RESOURCE_MAX + 1])
{
    if ((!service->config->lanes && !lanes_wanted) || op->kind > OP_CHANGE_BALANCE)
        return NULL;
    resource_name(name, op->kind == OP_PLACE_ORDER ? "item" : "account", op->id);
    const int wanted = lanes_wanted ? lanes_wanted(name) : -1;
    return (wanted < 0 ? service->config->lanes : wanted > 0) ? name : NULL;
}

static size_t batch_max(const struct config *config)
{
    return config->lanes || lanes_wanted ? (size_t)config->batch : 1;
}

bool service_submit(struct service *service, struct op *op)
{
    char name[DB_RESOURCE_MAX + 1];
    op->answer.problem = PROBLEM_NONE;
    op->answer.replayed = op->answer.decided = false;
    atomic_fetch_add(&service->accepted, 1); /* first: who drains waits for whoever came by */
    if (atomic_load(&service->draining))
        return turn_away(service, op, PROBLEM_DRAINING, "this instance is shutting down");
    bool keyed = runs_under_key(op);
    if (keyed && !inflight_add(service->inflight, op))
        return turn_away(service, op, PROBLEM_IN_FLIGHT, "ask again when it is done");
    op_pass(op, OP_SUBMITTED);
    if (lanes_submit(lanes_for(service, op->kind), lane_name(service, op, name), op))
        return true;
    if (keyed)
        inflight_remove(service->inflight, op);
    return turn_away(service, op, PROBLEM_OVERLOADED, "too many requests are waiting; try later");
}

/* -- threads that write ------------------------------------------------------------------------ */

struct writer {
    struct service *service;
    struct section section;
};

static void *writer_new(void *ctx)
{
    struct service *service = ctx;
    struct writer *writer = calloc(1, sizeof *writer);
    if (writer && section_init(&writer->section, service->config, service->guards, service->db,
                               batch_max(service->config)) == 0) {
        writer->service = service;
        return writer;
    }
    free(writer);
    return NULL;
}

static void writer_free(void *state)
{
    struct writer *writer = state;
    section_free(&writer->section);
    free(writer);
}

static bool refuse_when_closing(struct service *service, struct op **ops, size_t n)
{
    if (!atomic_load(&service->closing))
        return false;
    for (size_t i = 0; i < n; i++) {
        op_problem(ops[i], PROBLEM_DRAINING, "this instance is shutting down");
        finish(service, ops[i]);
    }
    return true;
}

static void write_ops(void *state, struct op **ops, size_t n)
{
    struct writer *writer = state;
    struct service *service = writer->service;
    if (refuse_when_closing(service, ops, n))
        return;
    if (is_business(ops[0])) {
        guarded_run(&service->host, &writer->section, operations[ops[0]->kind], ops, n);
        return;
    }
    assert(n == 1);
    admin_put(&writer->section, ops[0]);
    finish(service, ops[0]);
}

static size_t spread(void *ctx, struct op **ops, size_t n)
{
    struct service *service = ctx;
    char name[DB_RESOURCE_MAX + 1];
    if (!lane_name(service, ops[0], name))
        return 0;
    return lanes_spread(service->writes, name, &ops[1], n - 1);
}

static bool goes_on(void *ctx, const struct op *op, char ret_lane[DB_RESOURCE_MAX + 1])
{
    struct service *service = ctx;
    return !atomic_load(&service->closing) && lane_name(service, op, ret_lane) &&
           lanes_goes_on(service->writes, ret_lane);
}

static size_t more(void *ctx, const char *lane, struct op **ops)
{
    struct service *service = ctx;
    return lanes_more(service->writes, lane, ops);
}

/* -- threads that read ------------------------------------------------------------------------- */

struct reader {
    struct service *service;
    struct queries queries;
};

static void *reader_new(void *ctx)
{
    struct service *service = ctx;
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader) {
        reader->service = service;
        reader->queries = (struct queries){.config = service->config,
                                           .db = service->db,
                                           .guards = service->guards,
                                           .inflight = service->inflight};
    }
    return reader;
}

static void reader_free(void *state)
{
    struct reader *reader = state;
    db_reader_close(reader->queries.reader);
    free(reader);
}

static void read_ops(void *state, struct op **ops, size_t n)
{
    struct reader *reader = state;
    struct queries *queries = &reader->queries;
    db_error error;
    assert(n == 1);
    if (refuse_when_closing(reader->service, ops, n))
        return;
    op_pass(ops[0], OP_WAITING);
    if (!queries->reader && db_reader_open(queries->db, &queries->reader, &error) != DB_OK)
        op_problem(ops[0], PROBLEM_UNAVAILABLE, "store: %s", error.message);
    else
        query_run(queries, ops[0]);
    finish(reader->service, ops[0]);
}

/* -- life ------------------------------------------------------------------------------------- */

static struct lanes *open_readers(struct service *service, const char *name, size_t threads)
{
    return lanes_open(&(struct lanes_options){
        .thread_name = name,
        .threads = threads,
        .batch = 1,
        .waiting_max = (size_t)service->config->queue_max,
        .state_new = reader_new,
        .state_free = reader_free,
        .serve = read_ops,
        .ctx = service,
    });
}

static bool open_threads(struct service *service)
{
    const struct config *config = service->config;
    service->writes = lanes_open(&(struct lanes_options){
        .thread_name = "worker",
        .threads = (size_t)config->workers,
        .batch = batch_max(config),
        .waiting_max = (size_t)config->queue_max,
        .state_new = writer_new,
        .state_free = writer_free,
        .serve = write_ops,
        .ctx = service,
    });
    service->reads = open_readers(service, "reader", READ_THREADS);
    service->audits = open_readers(service, "auditor", 1);
    service->asks = open_readers(service, "asker", 1);
    service->probes = open_readers(service, "probe", 1);
    service->task = close_orders_open(config, service->guards, service->db, &service->counters);
    return service->writes && service->reads && service->audits && service->asks &&
           service->probes && service->task;
}

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

int service_open(const struct config *config, struct service **ret)
{
    struct service *service = calloc(1, sizeof *service);
    pthread_condattr_t attr;
    if (!service) {
        fprintf(stderr, "seckilld: no memory\n");
        return -1;
    }
    service->config = config;
    counters_init(&service->counters);
    service->host = (struct guarded_host){.counters = &service->counters,
                                          .ctx = service,
                                          .finish = finish,
                                          .spread = spread,
                                          .goes_on = goes_on,
                                          .more = more,
                                          .turns = config->lab ? 1 : config->lane_turns};
    pthread_mutex_init(&service->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&service->idle, &attr);
    pthread_condattr_destroy(&attr);

    bool ready = open_store(service) && guards_open(config, &service->guards) == 0;
    if (ready) {
        service->inflight = inflight_open();
        ready = service->inflight && open_threads(service);
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

bool service_drain(struct service *service, int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int waited = 0;
    pthread_mutex_lock(&service->mutex);
    atomic_store(&service->draining, true);
    while (atomic_load(&service->accepted) > 0 && waited == 0)
        waited = pthread_cond_timedwait(&service->idle, &service->mutex, &until);
    bool drained = atomic_load(&service->accepted) == 0;
    pthread_mutex_unlock(&service->mutex);
    return drained;
}

void service_close(struct service *service)
{
    if (!service)
        return;
    atomic_store(&service->draining, true);
    atomic_store(&service->closing, true);
    close_orders_close(service->task);
    lanes_close(service->writes);
    lanes_close(service->reads);
    lanes_close(service->audits);
    lanes_close(service->asks);
    lanes_close(service->probes);
    inflight_close(service->inflight);
    guards_close(service->guards);
    db_close(service->db);
    pthread_cond_destroy(&service->idle);
    pthread_mutex_destroy(&service->mutex);
    free(service);
}
