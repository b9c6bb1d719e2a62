#include "business.h"
#include "service_rig.h"
#include "tests.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void point_function(struct op *op, enum op_point point);
static _Atomic(point_function *) at_point_now; /* NULL: no operation is held */

static void at_point(struct op *op, enum op_point point)
{
    point_function *now = atomic_load(&at_point_now);
    if (now)
        now(op, point);
}

/* -- servers ---------------------------------------------------------------------------------- */

struct service_rig rig = {.seams = {.at_point = at_point}};

int rig_open(void **state)
{
    (void)state;
    if (sandbox_open(&rig.sandbox) != 0)
        return -1;
    rig.redis = sandbox_redis(rig.sandbox, NULL);
    return rig.redis ? 0 : -1;
}

int rig_close(void **state)
{
    (void)state;
    sandbox_close(rig.sandbox);
    return 0;
}

void rig_reset(const char *guard)
{
    struct config *config = &rig.config;
    *config = (struct config){
        .lease_ms = 30000,
        .wait_ms = 60000, /* a test that waits this long has failed */
        .watchdog = true,
        .fence = true,
        .lock_queue = true,
        .lanes = true,
        .batch = 64,
        .lane_turns = 8,
        .workers = 16,
        .queue_max = 20000,
        .connections = 1000,
        .refusals_max = 100000,
        .close_orders_ms = 3600000,
    };
    snprintf(config->db, sizeof config->db, "sqlite:%.400s/%d.db", sandbox_dir(rig.sandbox),
             ++rig.databases);
    snprintf(config->guard, sizeof config->guard, "%s", guard);
    snprintf(config->redis, sizeof config->redis, "%s", rig.redis->url);
    snprintf(config->instance, sizeof config->instance, "test");
}

int rig_start(void)
{
    return service_open(&rig.config, &business, &rig.seams, &rig.service);
}

void rig_stop(void)
{
    if (rig.service)
        service_drain(rig.service, 60000);
    service_close(rig.service);
    rig.service = NULL;
}

int rig_clear(void **state)
{
    (void)state;
    points_clear();
    rig_stop();
    return 0;
}

/* -- operations ------------------------------------------------------------------------------- */

enum { WAIT_MS = 60000 };

static pthread_mutex_t done_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done_any = PTHREAD_COND_INITIALIZER;

/* The test uses op->http: &is_done means that the answer is there. */
static char is_done;

static void take_answer(struct op *op)
{
    pthread_mutex_lock(&done_mutex);
    op->http = &is_done;
    pthread_cond_broadcast(&done_any);
    pthread_mutex_unlock(&done_mutex);
}

/* A body buffer for an operation on a test's stack. It holds all answers but the long ones, which
 * tests free themselves. It stays reachable, so LeakSanitizer does not report it. */
static char *body_new(void)
{
    static char **bodies;
    static size_t n;
    pthread_mutex_lock(&done_mutex);
    char **all = realloc(bodies, (n + 1) * sizeof *bodies), *body = calloc(1, DB_BODY_MAX + 1);
    if (!all || !body)
        abort();
    bodies = all;
    bodies[n++] = body;
    pthread_mutex_unlock(&done_mutex);
    return body;
}

struct op *op_make(struct op *op, enum op_kind kind, const char *id, const char *other,
                   int64_t amount, int number)
{
    *op = (struct op){.kind = kind,
                      .amount = amount,
                      .fence = -1,
                      .answer = {.body = body_new(), .body_room = DB_BODY_MAX + 1},
                      .done = take_answer};
    if (kind == OP_AUDIT)
        snprintf(op->resource, sizeof op->resource, "%s", id);
    else
        snprintf(op->id, sizeof op->id, "%s", id);
    snprintf(op->other, sizeof op->other, "%s", other);
    if (kind < OP_PUT_ITEM) {
        snprintf(op->key, sizeof op->key, "key-%d-%s-%d", (int)kind, op->id, number);
        snprintf(op->request, sizeof op->request, "%d %s %s %lld", (int)kind, op->id, op->other,
                 (long long)amount);
    }
    snprintf(op->request_id, sizeof op->request_id, "request-%d", number);
    op->deadline_us = now_us() + WAIT_MS * INT64_C(1000);
    return op;
}

struct op *op_order(struct op *op, int number)
{
    return op_make(op, OP_PLACE_ORDER, "1", "u1", 1, number);
}

struct op *op_put_item(struct op *op, const char *id, int64_t stock, const char *guard)
{
    op_make(op, OP_PUT_ITEM, id, "", stock, 0);
    op->price = 100;
    op->reserve_s = 900;
    snprintf(op->guard, sizeof op->guard, "%s", guard);
    return op;
}

struct op *op_put_account(struct op *op, const char *id, int64_t balance, const char *guard)
{
    op_make(op, OP_PUT_ACCOUNT, id, "", balance, 0);
    snprintf(op->guard, sizeof op->guard, "%s", guard);
    return op;
}

void ops_submit(struct service *service, struct op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ops[i].http = NULL;
        if (!service_submit(service, &ops[i]))
            take_answer(&ops[i]);
    }
}

void ops_wait(struct op *ops, size_t n)
{
    pthread_mutex_lock(&done_mutex);
    for (size_t i = 0; i < n; i++) {
        while (ops[i].http != &is_done)
            pthread_cond_wait(&done_any, &done_mutex);
    }
    pthread_mutex_unlock(&done_mutex);
}

void ops_run(struct service *service, struct op *ops, size_t n)
{
    ops_submit(service, ops, n);
    ops_wait(ops, n);
}

int op_run(struct service *service, struct op *op)
{
    ops_run(service, op, 1);
    return op->answer.status;
}

size_t ops_count(const struct op *ops, size_t n, int status)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ops[i].answer.status == status;
    return count;
}

size_t ops_count_problem(const struct op *ops, size_t n, enum problem problem)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ops[i].answer.problem == problem;
    return count;
}

/* -- results ----------------------------------------------------------------------------------- */

static json_t *parse(const struct op *op)
{
    const char *body = op->answer.body;
    json_error_t error;
    json_t *document = json_loads(body, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        fprintf(stderr, "not JSON: %s: %s\n", error.text, body);
    return document;
}

int64_t answer_number(const struct op *op, const char *name)
{
    json_t *document = parse(op), *value = json_object_get(document, name);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : INT64_MIN;
    json_decref(document);
    return number;
}

bool answer_text(const struct op *op, const char *name, char *ret, size_t size)
{
    json_t *document = parse(op), *value = json_object_get(document, name);
    bool found = json_is_string(value);
    if (found)
        snprintf(ret, size, "%s", json_string_value(value));
    json_decref(document);
    return found;
}

int64_t rig_number(enum op_kind kind, const char *id, const char *name)
{
    struct op op;
    assert_int_equal(op_run(rig.service, op_make(&op, kind, id, "", 0, 0)), 200);
    return answer_number(&op, name);
}

int64_t rig_stock(void)
{
    return rig_number(OP_GET_ITEM, "1", "stock");
}

int64_t audit_number(struct service *service, const char *resource, const char *name)
{
    struct op op;
    int64_t number = INT64_MIN;
    if (op_run(service, op_make(&op, OP_AUDIT, resource, "", 0, 0)) != 200)
        return number;
    json_t *document = parse(&op);
    json_t *row = json_array_get(json_object_get(document, "resources"), 0);
    json_t *value = json_object_get(row, name);
    if (strcmp(name, "n_forks") == 0)
        number = (int64_t)json_array_size(json_object_get(row, "forks"));
    else if (json_is_integer(value))
        number = json_integer_value(value);
    json_decref(document);
    free(op.answer.body);
    return number;
}

bool audit_is_clean(struct service *service)
{
    struct op op;
    if (op_run(service, op_make(&op, OP_AUDIT, "", "", 0, 0)) != 200) {
        fprintf(stderr, "audit: %s\n", op.answer.body);
        return false;
    }
    json_t *document = parse(&op);
    bool clean = json_is_true(json_object_get(document, "ok"));
    if (!clean)
        fprintf(stderr, "audit: %s\n", op.answer.body);
    json_decref(document);
    free(op.answer.body);
    return clean;
}

bool rig_metrics_contain(const char *text)
{
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    service_metrics(rig.service, out);
    fclose(out);
    bool found = strstr(all, text) != NULL;
    free(all);
    return found;
}

/* -- points ------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct gate {
        enum op_point point;
        char request_id[65];
        bool set, reached, open;
    } gates[GATES];
    enum op_point meeting_point;
    int meeting, present;
} points = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void stand_at_gate(struct op *op, enum op_point point)
{
    pthread_mutex_lock(&points.mutex);
    for (int i = 0; i < GATES; i++) {
        struct gate *gate = &points.gates[i];
        if (!gate->set || point != gate->point || strcmp(op->request_id, gate->request_id) != 0)
            continue;
        gate->reached = true;
        pthread_cond_broadcast(&points.changed);
        while (!gate->open)
            pthread_cond_wait(&points.changed, &points.mutex);
    }
    pthread_mutex_unlock(&points.mutex);
}

void gate_set(int gate, enum op_point point, const char *request_id)
{
    pthread_mutex_lock(&points.mutex);
    points.gates[gate] = (struct gate){.set = true, .point = point};
    snprintf(points.gates[gate].request_id, sizeof points.gates[gate].request_id, "%s", request_id);
    pthread_mutex_unlock(&points.mutex);
    atomic_store(&at_point_now, stand_at_gate);
}

void gate_wait(int gate)
{
    pthread_mutex_lock(&points.mutex);
    while (!points.gates[gate].reached)
        pthread_cond_wait(&points.changed, &points.mutex);
    pthread_mutex_unlock(&points.mutex);
}

void gate_open(int gate)
{
    pthread_mutex_lock(&points.mutex);
    points.gates[gate].open = true;
    pthread_cond_broadcast(&points.changed);
    pthread_mutex_unlock(&points.mutex);
}

static void meet(struct op *op, enum op_point point)
{
    pthread_mutex_lock(&points.mutex);
    if (point == points.meeting_point && op->key[0] != '\0') {
        points.present++;
        pthread_cond_broadcast(&points.changed);
        while (points.present < points.meeting)
            pthread_cond_wait(&points.changed, &points.mutex);
    }
    pthread_mutex_unlock(&points.mutex);
}

void meeting_set(enum op_point point, int n)
{
    pthread_mutex_lock(&points.mutex);
    points.meeting_point = point;
    points.present = 0;
    points.meeting = n;
    pthread_mutex_unlock(&points.mutex);
    atomic_store(&at_point_now, meet);
}

void points_clear(void)
{
    atomic_store(&at_point_now, NULL);
    pthread_mutex_lock(&points.mutex);
    memset(points.gates, 0, sizeof points.gates);
    pthread_mutex_unlock(&points.mutex);
}
