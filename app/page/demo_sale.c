#include "demo_sale.h"
#include "answer.h"
#include "demo_child.h"
#include "resource.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 18, ARG_MAX_BYTES = 700, RUN_ID_LONGEST = 15 };

/* 0 and -1: as the service is configured. */
struct terms {
    char guard[DB_GUARD_MAX + 1];
    char run_id[RUN_ID_LONGEST + 1]; /* "": loadgen's own */
    int64_t lease_ms;
    int watchdog, fence, lanes;
};

struct wish {
    struct terms sales[DEMO_SALES_MAX];
    size_t n;
    int64_t buyers, stock, connections, rate;
    int together, spread;
};

enum run_state { QUEUED, RUNNING, DONE, FAILED };
static const char *const state_names[] = {
    [QUEUED] = "queued", [RUNNING] = "running", [DONE] = "done", [FAILED] = "failed"};

static struct {
    int id; /* of the last wish; 0: none yet */
    struct wish wish;
    char url[ARG_MAX_BYTES - 16]; /* of the instances that sell */
    struct {
        enum run_state state;
        struct demo_child child;
        json_t *report;                 /* when DONE */
        char message[DEMO_MESSAGE_MAX]; /* when FAILED */
    } runs[DEMO_SALES_MAX];
} sale;

static const char *peers; /* "": none */

struct args {
    char text[ARGS_MAX][ARG_MAX_BYTES];
    char *list[ARGS_MAX + 1]; /* NULL-terminated */
    size_t n;
};

/* -- the sales --------------------------------------------------------------------------------- */

static void add(struct args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct args *args, const char *format, ...)
{
    va_list values;
    assert(args->n < ARGS_MAX);
    va_start(values, format);
    vsnprintf(args->text[args->n], ARG_MAX_BYTES, format, values);
    va_end(values);
    args->list[args->n] = args->text[args->n];
    args->n++;
}

static void add_switch(struct args *args, const char *flag, int wanted)
{
    if (wanted >= 0)
        add(args, "--%s=%s", flag, wanted ? "on" : "off");
}

static void fill(struct args *args, const struct wish *wish, const struct terms *terms)
{
    add(args, "loadgen");
    add(args, "sale");
    add(args, "--url=%s", sale.url);
    add(args, "--guards=%s", terms->guard);
    if (terms->run_id[0] != '\0')
        add(args, "--run-id=%s", terms->run_id);
    if (terms->lease_ms > 0)
        add(args, "--lease-ms=%" PRId64, terms->lease_ms);
    add_switch(args, "watchdog", terms->watchdog);
    add_switch(args, "fence", terms->fence);
    add_switch(args, "lanes", terms->lanes);
    add(args, "--buyers=%" PRId64, wish->buyers);
    add(args, "--stock=%" PRId64, wish->stock);
    add(args, "--connections=%" PRId64, wish->connections);
    if (wish->rate > 0) {
        add(args, "--mode=rate");
        add(args, "--rate=%" PRId64, wish->rate);
    }
    add(args, "--json=-");
    add(args, "--quiet");
}

/* Starts sales: the next one when none runs, or all at once. After one that failed none follows. */
static void go_on(void)
{
    for (size_t i = 0; i < sale.wish.n; i++) {
        struct args args = {.n = 0};
        if (sale.runs[i].state == QUEUED) {
            fill(&args, &sale.wish, &sale.wish.sales[i]);
            const bool started =
                demo_child_start(&sale.runs[i].child, args.list, sale.runs[i].message);
            sale.runs[i].state = started ? RUNNING : FAILED;
        }
        if (sale.runs[i].state != DONE && !sale.wish.together)
            return;
    }
}

static void look_at_children(bool end)
{
    for (size_t i = 0; i < sale.wish.n; i++)
        if (sale.runs[i].state == RUNNING &&
            demo_child_ended(&sale.runs[i].child, end, &sale.runs[i].report, sale.runs[i].message))
            sale.runs[i].state = sale.runs[i].report != NULL ? DONE : FAILED;
}

/* Handles the end of processes that have ended. */
static void reap(void)
{
    look_at_children(false);
    go_on();
}

/* Kills the processes that run; none follows. */
static void stop(void)
{
    look_at_children(true);
    for (size_t i = 0; i < sale.wish.n; i++)
        json_decref(sale.runs[i].report);
    sale.wish.n = 0;
}

/* The first sale in this state; NULL: none. */
static const struct terms *first_in(enum run_state state)
{
    for (size_t i = 0; i < sale.wish.n; i++)
        if (sale.runs[i].state == state)
            return &sale.wish.sales[i];
    return NULL;
}

/* -- the routes -------------------------------------------------------------------------------- */

static bool read_terms(json_t *json, struct terms *ret)
{
    const char *guard = "", *run_id = "";
    json_int_t lease_ms = 0;
    *ret = (struct terms){.watchdog = -1, .fence = -1, .lanes = -1};
    if (json_unpack_ex(json, NULL, JSON_STRICT, "{s:s, s?s, s?I, s?b, s?b, s?b}", "guard", &guard,
                       "run_id", &run_id, "lease_ms", &lease_ms, "watchdog", &ret->watchdog,
                       "fence", &ret->fence, "lanes", &ret->lanes) != 0 ||
        !is_id(guard, DB_GUARD_MAX) || lease_ms < 0 ||
        (run_id[0] != '\0' && !is_id(run_id, RUN_ID_LONGEST)))
        return false;
    snprintf(ret->guard, sizeof ret->guard, "%s", guard);
    snprintf(ret->run_id, sizeof ret->run_id, "%s", run_id);
    ret->lease_ms = lease_ms; /* loadgen checks its limits */
    return true;
}

/* Whether one of the first n sales has this run id. Two sales of one id would sell one item. */
static bool has_run_id(const struct wish *wish, size_t n, const char *run_id)
{
    for (size_t i = 0; i < n && run_id[0] != '\0'; i++)
        if (strcmp(wish->sales[i].run_id, run_id) == 0)
            return true;
    return false;
}

static bool read_sales(const json_t *sales, struct wish *ret)
{
    size_t i;
    json_t *terms;
    ret->n = json_array_size(sales);
    if (ret->n < 1 || ret->n > DEMO_SALES_MAX)
        return false;
    json_array_foreach(sales, i, terms)
    {
        if (!read_terms(terms, &ret->sales[i]) || has_run_id(ret, i, ret->sales[i].run_id))
            return false;
    }
    return true;
}

static bool read_wish(const char *body, size_t bytes, struct wish *ret)
{
    json_t *sales = NULL;
    json_int_t buyers = 2000, stock = 100, connections = 64, rate = 0;
    json_t *json = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, NULL);
    ret->together = ret->spread = 0;
    bool good =
        json_unpack_ex(json, NULL, JSON_STRICT, "{s:o, s?I, s?I, s?I, s?I, s?b, s?b}", "sales",
                       &sales, "buyers", &buyers, "stock", &stock, "connections", &connections,
                       "rate", &rate, "together", &ret->together, "spread", &ret->spread) == 0 &&
        read_sales(sales, ret) && buyers >= 1 && buyers <= DEMO_BUYERS_MAX && stock >= 1 &&
        stock <= DEMO_BUYERS_MAX && connections >= 1 && connections <= DEMO_CONNECTIONS_MAX &&
        rate >= 0 && rate <= DEMO_RATE_MAX;
    ret->buyers = buyers;
    ret->stock = stock;
    ret->connections = connections;
    ret->rate = rate;
    json_decref(json);
    return good;
}

static bool answer_start(const struct extra_request *request, struct op *op)
{
    struct wish wish;
    reap();
    if (!read_wish(request->body, request->body_bytes, &wish)) {
        op_problem(
            op, PROBLEM_BAD_REQUEST,
            "a sale is {\"sales\":[1 to %d of {\"guard\",\"run_id\",\"lease_ms\","
            "\"watchdog\",\"fence\",\"lanes\"}],\"buyers\":1 to %d,\"stock\":1 to %d,"
            "\"connections\":1 to %d,\"rate\":0 to %d,\"together\",\"spread\"}, each run_id once",
            DEMO_SALES_MAX, DEMO_BUYERS_MAX, DEMO_BUYERS_MAX, DEMO_CONNECTIONS_MAX, DEMO_RATE_MAX);
        return true;
    }
    if (first_in(RUNNING) != NULL) {
        op_problem(op, PROBLEM_IN_FLIGHT, "a sale is running; one at a time");
        return true;
    }
    stop();
    const int id = sale.id + 1;
    memset(&sale, 0, sizeof sale);
    sale.id = id;
    sale.wish = wish;
    snprintf(sale.url, sizeof sale.url, "%s%s%s", request->url,
             wish.spread && peers[0] != '\0' ? "," : "", wish.spread ? peers : "");
    go_on();
    if (first_in(RUNNING) != NULL)
        op_answer(op, 201, "{\"id\":%d}", sale.id);
    else
        op_problem(op, PROBLEM_UNAVAILABLE, "%s", sale.runs[0].message);
    return true;
}

static bool answer_stop(const struct extra_request *request, struct op *op)
{
    (void)request;
    look_at_children(true);
    for (size_t i = 0; i < sale.wish.n; i++)
        if (sale.runs[i].state == QUEUED)
            sale.runs[i].state = FAILED;
    op_answer(op, 200, "{}");
    return true;
}

/* As they were wished; what was left out is left out. */
static json_t *terms_json(const struct terms *terms)
{
    json_t *json = json_pack("{s:s}", "guard", terms->guard);
    if (terms->run_id[0] != '\0')
        json_object_set_new(json, "run_id", json_string(terms->run_id));
    if (terms->lease_ms > 0)
        json_object_set_new(json, "lease_ms", json_integer((json_int_t)terms->lease_ms));
    if (terms->watchdog >= 0)
        json_object_set_new(json, "watchdog", json_boolean(terms->watchdog));
    if (terms->fence >= 0)
        json_object_set_new(json, "fence", json_boolean(terms->fence));
    if (terms->lanes >= 0)
        json_object_set_new(json, "lanes", json_boolean(terms->lanes));
    return json;
}

static int instances(void)
{
    int n = 1;
    for (const char *at = peers; *at != '\0'; at = strchrnul(at + 1, ','))
        n++;
    return n;
}

static bool answer_state(const struct extra_request *request, struct op *op)
{
    (void)request;
    reap();
    json_t *sales = json_array(), *reports = json_array();
    const char *message = "";
    for (size_t i = 0; i < sale.wish.n; i++) {
        json_t *one = terms_json(&sale.wish.sales[i]);
        json_object_set_new(one, "state", json_string(state_names[sale.runs[i].state]));
        json_object_set_new(one, "message", json_string(sale.runs[i].message));
        json_array_append_new(sales, one);
        if (sale.runs[i].report != NULL)
            json_array_append(reports, sale.runs[i].report);
        if (message[0] == '\0')
            message = sale.runs[i].message;
    }
    const struct terms *running = first_in(RUNNING);
    const char *state = sale.id == 0         ? "idle"
                        : running != NULL    ? "running"
                        : message[0] != '\0' ? "failed"
                                             : "done";
    op_answer_json(op,
                   json_pack("{s:i, s:s, s:s, s:i, s:b, s:b, s:I, s:I, s:o, s:o, s:o*}", "id",
                             sale.id, "state", state, "message", message, "instances", instances(),
                             "together", sale.wish.together, "spread", sale.wish.spread, "buyers",
                             (json_int_t)sale.wish.buyers, "stock", (json_int_t)sale.wish.stock,
                             "sales", sales, "reports", reports, "terms",
                             running != NULL && !sale.wish.together ? terms_json(running) : NULL));
    return true;
}

static const struct extra_route list[] = {
    {"POST", "/v1/demo/sales", answer_start},
    {"GET", "/v1/demo/sales", answer_state},
    {"DELETE", "/v1/demo/sales", answer_stop},
};

const struct extra_routes *demo_open(const char *further)
{
    static const struct extra_routes routes = {
        .list = list, .n = sizeof list / sizeof list[0], .tick = reap, .end = stop};
    peers = further;
    return &routes;
}
