/* The threads that do the work, and what each needs for it. */
#include "reset.h"
#include "answer.h"
#include "business.h"
#include "point.h"
#include "queries.h"
#include "service_private.h"

#include <assert.h>
#include <stdlib.h>

enum { READ_THREADS = 2 };

static const struct operation *const operations[] = {
    [OP_PLACE_ORDER] = &order_operation, [OP_CHANGE_BALANCE] = &account_operation,
    [OP_PAY_ORDER] = &payment_operation, [OP_CANCEL_ORDER] = &cancellation_operation,
    [OP_TRANSFER] = &transfer_operation,
};

static const struct operation *operation_of(const struct service *service, enum op_kind kind)
{
    const struct operation *other = service->seams->operations[kind];
    return other ? other : operations[kind];
}

/* -- threads that write ------------------------------------------------------------------------ */

struct writer {
    struct service *service;
    struct section *sections; /* the first one for those who come by themselves */
    size_t n_sections;
};

/* Not where each order is to be watched, nor where each costs a round trip of its own. */
static bool serves_together(const struct service *service)
{
    const struct config *config = service->config;
    return config->lanes && !service->seams->one_by_one && !config->fence_database &&
           db_commits_in_groups(service->db) &&
           guard_is_quick_with_many(guard_default(service->guards));
}

static bool add_sections(struct writer *writer, size_t n)
{
    const struct service *service = writer->service;
    struct section *sections = realloc(writer->sections, n * sizeof *sections);
    if (!sections)
        return false;
    writer->sections = sections;
    while (writer->n_sections < n) {
        const size_t batch = writer->n_sections == 0 ? service_batch_max(service) : LANES_SHARE;
        if (section_init(&sections[writer->n_sections], service->config, service->guards,
                         service->db, service->keeper, batch) != 0)
            return false;
        writer->n_sections++;
    }
    return true;
}

static void writer_free(void *state)
{
    struct writer *writer = state;
    for (size_t i = 0; i < writer->n_sections; i++)
        section_free(&writer->sections[i]);
    free(writer->sections);
    free(writer);
}

static void *writer_new(void *ctx)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->service = ctx;
    if (add_sections(writer, 1))
        return writer;
    writer_free(writer);
    return NULL;
}

static bool refuse_when_closing(struct service *service, struct op **ops, size_t n)
{
    if (!atomic_load(&service->closing))
        return false;
    for (size_t i = 0; i < n; i++) {
        op_problem(ops[i], PROBLEM_DRAINING, "this instance is shutting down");
        service_finish(service, ops[i]);
    }
    return true;
}

static void write_ops(void *state, struct op **ops, size_t n)
{
    struct writer *writer = state;
    struct service *service = writer->service;
    if (refuse_when_closing(service, ops, n))
        return;
    if (service_is_business(ops[0])) {
        guarded_run(&service->host, &writer->sections[0], operation_of(service, ops[0]->kind), ops,
                    n);
        return;
    }
    assert(n == 1);
    admin_put(&writer->sections[0], ops[0]);
    service_finish(service, ops[0]);
}

/* Few threads come to serve many lanes: their sections are made then. Who finds none is left. */
static void write_together(void *state, struct lanes_share *shares, size_t n)
{
    struct writer *writer = state;
    struct service *service = writer->service;
    if (atomic_load(&service->closing) ||
        (n > writer->n_sections && !add_sections(writer, LANES_TOGETHER)))
        return;
    for (size_t i = 0; i < n; i++)
        writer->sections[i].operation = operation_of(service, shares[i].ops[0]->kind);
    guarded_run_together(&service->host, writer->sections, shares, n);
}

static size_t spread(void *ctx, struct op **ops, size_t n)
{
    struct service *service = ctx;
    char name[DB_RESOURCE_MAX + 1];
    if (!service_lane_name(service, ops[0], name))
        return 0;
    return lanes_spread(service->writes, name, &ops[1], n - 1);
}

static bool goes_on(void *ctx, const struct op *op, char ret_lane[DB_RESOURCE_MAX + 1])
{
    struct service *service = ctx;
    return !atomic_load(&service->closing) && service_lane_name(service, op, ret_lane) &&
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
                                           .seams = service->seams,
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
        op_problem(ops[0], problem_of_store(error.status), "store: %s", error.message);
    else
        query_run(queries, ops[0]);
    service_finish(reader->service, ops[0]);
}

/* -- all of them ------------------------------------------------------------------------------- */

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

bool service_open_threads(struct service *service)
{
    const struct config *config = service->config;
    service->host = (struct guarded_host){.counters = &service->counters,
                                          .ctx = service,
                                          .finish = service_finish,
                                          .spread = spread,
                                          .goes_on = goes_on,
                                          .more = more,
                                          .turns = config->lane_turns};
    service->writes = lanes_open(&(struct lanes_options){
        .thread_name = "worker",
        .threads = (size_t)config->workers,
        .batch = service_batch_max(service),
        .waiting_max = (size_t)config->queue_max,
        .state_new = writer_new,
        .state_free = writer_free,
        .serve = write_ops,
        .serve_together = serves_together(service) ? write_together : NULL,
        .ctx = service,
    });
    service->reads = open_readers(service, "reader", READ_THREADS);
    service->audits = open_readers(service, "auditor", 1);
    service->asks = open_readers(service, "asker", 1);
    service->probes = open_readers(service, "probe", 1);
    service->task = close_orders_open(config, service->seams, service->guards, service->db,
                                      service->keeper, &service->counters);
    return service->writes && service->reads && service->audits && service->asks &&
           service->probes && service->task;
}
