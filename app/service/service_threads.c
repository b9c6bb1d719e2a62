/* The threads that do the work, and what each of them owns. */
#include "answer.h"
#include "point.h"
#include "queries.h"
#include "service_private.h"

#include <assert.h>
#include <stdlib.h>

enum {
    READ_THREADS = 2,
    READS_MAX = 64, /* of one item, answered together */
    AUDITS_WAITING_MAX = 16
};

static const struct operation *operation_of(const struct service *service, enum op_kind kind)
{
    const struct operation *other = service->seams->operations[kind];
    return other ? other : service->business->changes[kind];
}

/* -- threads that write ------------------------------------------------------------------------ */

/* Not in the lab, which watches each order; nor if each order would cost its own round trip. */
static bool serves_many(const struct service *service)
{
    const struct config *config = service->config;
    return config->lanes && !service->seams->one_by_one && !config->fence_database &&
           db_commits_in_groups(service->db) &&
           guard_is_quick_with_many(guard_default(service->guards));
}

static struct section_base base_of(struct service *service)
{
    return (struct section_base){.config = service->config,
                                 .seams = service->seams,
                                 .guards = service->guards,
                                 .db = service->db,
                                 .keeper = service->keeper,
                                 .counters = &service->counters};
}

static bool add_sections(struct writer *writer, size_t n)
{
    struct service *service = writer->service;
    const struct section_base base = base_of(service);
    struct section *sections = realloc(writer->sections, n * sizeof *sections);
    if (!sections)
        return false;
    writer->sections = sections;
    while (writer->n_sections < n) {
        const size_t batch = writer->n_sections == 0 ? service_batch_max(service) : LANES_PART_MAX;
        if (section_init(&sections[writer->n_sections], &base, batch) != 0)
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

/* Operations of a named lane share a lock. Without one (textbook mode) each takes its own locks. */
static void write_ops(void *state, struct op **ops, size_t n)
{
    struct writer *writer = state;
    struct service *service = writer->service;
    struct section *section = &writer->sections[0];
    const enum op_kind kind = ops[0]->kind;
    char lane[DB_RESOURCE_MAX + 1];
    if (refuse_when_closing(service, ops, n))
        return;
    if (service_is_business(ops[0]) && service_lane_name(service, ops[0], lane)) {
        section->operation = operation_of(service, kind);
        serve_lane(writer, lane, ops, n, false);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (service_is_business(ops[i]))
            attempt_one(section, operation_of(service, kind), ops[i]);
        else
            service->business->put(section, ops[i]);
        service_finish(service, ops[i]);
    }
}

/* A thread makes the sections for many lanes at its first such turn: few threads have one. Without
 * memory for them the lanes are postponed. */
static void write_many(void *state, struct lanes_part *parts, size_t n)
{
    struct writer *writer = state;
    struct service *service = writer->service;
    char lane[DB_RESOURCE_MAX + 1];
    if (atomic_load(&service->closing) ||
        (n > writer->n_sections && !add_sections(writer, LANES_MANY_MAX)))
        return;
    for (size_t i = 0; i < n; i++)
        writer->sections[i].operation = operation_of(service, parts[i].ops[0]->kind);
    if (n > 1)
        serve_lanes(writer, parts, n);
    else if (service_lane_name(service, parts[0].ops[0], lane))
        parts[0].n = serve_lane(writer, lane, parts[0].ops, parts[0].n, true);
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
                                           .inflight = service->inflight,
                                           .closing = &service->closing};
    }
    return reader;
}

static void reader_free(void *state)
{
    struct reader *reader = state;
    db_reader_close(reader->queries.reader);
    free(reader);
}

/* Only reads of an item have a lane's name: those of one item come together. */
static void read_ops(void *state, struct op **ops, size_t n)
{
    struct reader *reader = state;
    struct queries *queries = &reader->queries;
    db_error error;
    if (refuse_when_closing(reader->service, ops, n))
        return;
    op_pass_all(ops, n, OP_WAITING);
    if (!queries->reader && db_reader_open(queries->db, &queries->reader, &error) != DB_OK) {
        for (size_t i = 0; i < n; i++)
            op_problem(ops[i], problem_of_store(error.status), "store: %s", error.message);
    } else if (ops[0]->kind == OP_GET_ITEM) {
        query_item(queries, ops, n);
    } else {
        assert(n == 1);
        query_run(queries, ops[0]);
    }
    for (size_t i = 0; i < n; i++)
        service_finish(reader->service, ops[i]);
}

/* -- all of them ------------------------------------------------------------------------------- */

static struct lanes *open_readers(struct service *service, const char *name, size_t threads,
                                  size_t waiting_max)
{
    return lanes_open(&(struct lanes_options){
        .thread_name = name,
        .threads = threads,
        .batch = READS_MAX,
        .waiting_max = waiting_max,
        .state_new = reader_new,
        .state_free = reader_free,
        .serve = read_ops,
        .ctx = service,
    });
}

bool service_open_threads(struct service *service)
{
    const struct config *config = service->config;
    service->writes = lanes_open(&(struct lanes_options){
        .thread_name = "worker",
        .threads = (size_t)config->workers,
        .batch = service_batch_max(service),
        .waiting_max = (size_t)config->queue_max,
        .state_new = writer_new,
        .state_free = writer_free,
        .serve = write_ops,
        .serve_many = serves_many(service) ? write_many : NULL,
        .ctx = service,
    });
    const size_t queue_max = (size_t)config->queue_max;
    service->reads = open_readers(service, "reader", READ_THREADS, queue_max);
    service->audits = open_readers(service, "auditor", 1, AUDITS_WAITING_MAX);
    service->asks = open_readers(service, "asker", 1, queue_max);
    service->probes = open_readers(service, "probe", 1, queue_max);
    const struct section_base base = base_of(service);
    service->tasks = service->business->tasks_open(&base);
    return service->writes && service->reads && service->audits && service->asks &&
           service->probes && service->tasks;
}
