/* The lab's routes: see lab.h. */
#include "answer.h"
#include "lab_private.h"
#include "resource.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS_MS_MAX = 3600000 };

static const struct config *config; /* of the service */

/* NULL: not JSON. */
static json_t *parse(const struct extra_request *request)
{
    return json_loadb(request->body, request->body_bytes, JSON_REJECT_DUPLICATES, NULL);
}

/* -- pauses ------------------------------------------------------------------------------------ */

static bool is_point(const char *name)
{
    for (size_t i = 0; i < OP_POINT_COUNT; i++)
        if (strcmp(name, lab_point_names[i]) == 0)
            return true;
    return strncmp(name, "lock.", 5) == 0 && strlen(name) <= LAB_POINT_MAX;
}

static bool add_pause(const struct extra_request *request, struct op *op)
{
    const char *point = "", *match = "", *action = "hold";
    json_int_t after = 0, count = 1;
    json_t *json = parse(request);
    if (json_unpack_ex(json, NULL, JSON_STRICT, "{s:s, s?s, s?s, s?I, s?I}", "point", &point,
                       "match", &match, "action", &action, "after", &after, "count", &count) != 0) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "a pause is {\"point\",\"match\",\"action\",\"after\",\"count\"}");
    } else if (!is_point(point) || strlen(match) > OP_KEY_MAX || after < 0 || count < 1) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "no such point, match too long, after below 0, or count below 1");
    } else if (strcmp(action, "hold") == 0 && strcmp(point, lab_point_names[OP_SUBMITTED]) == 0) {
        op_problem(op, PROBLEM_BAD_REQUEST, "nobody can be held at submitted; hold at waiting");
    } else {
        enum lab_action what = strcmp(action, "hold") == 0   ? LAB_HOLD
                               : strcmp(action, "kill") == 0 ? LAB_KILL
                                                             : LAB_NOTE;
        if (what == LAB_NOTE && strcmp(action, "note") != 0)
            op_problem(op, PROBLEM_BAD_REQUEST, "action is hold, kill or note");
        else if ((count = lab_pause_add(point, match, what, after, count)) == 0)
            op_problem(op, PROBLEM_OVERLOADED, "at most %d pauses", LAB_PAUSES_MAX);
        else
            op_answer(op, 201, "{\"id\":%d}", (int)count);
    }
    json_decref(json);
    return true;
}

static bool list_pauses(const struct extra_request *request, struct op *op)
{
    (void)request;
    op_answer_json(op, json_pack("{s:o}", "pauses", lab_pause_list()));
    return true;
}

static bool let_all_go(const struct extra_request *request, struct op *op)
{
    (void)request;
    lab_pause_let_go(0, true);
    op_answer(op, 200, "{}");
    return true;
}

/* 0: not the id of a pause. */
static int pause_id(const char *text)
{
    char *end;
    if (text[0] < '1' || text[0] > '9')
        return 0;
    const long number = strtol(text, &end, 10); /* saturates */
    return *end == '\0' && number <= INT_MAX ? (int)number : 0;
}

static void let_go(const char *parameter, bool forget, struct op *op)
{
    const int id = pause_id(parameter);
    if (id != 0 && lab_pause_let_go(id, forget))
        op_answer(op, 200, "{}");
    else
        op_problem(op, PROBLEM_NOT_FOUND, "no pause %.20s", parameter);
}

static bool let_one_go(const struct extra_request *request, struct op *op)
{
    let_go(request->parameter, false, op);
    return true;
}

static bool forget_one(const struct extra_request *request, struct op *op)
{
    let_go(request->parameter, true, op);
    return true;
}

static void let_everybody_go(void)
{
    lab_pause_let_go(0, true);
}

/* -- terms ------------------------------------------------------------------------------------- */

static bool add_terms(const struct extra_request *request, struct op *op)
{
    struct lab_terms terms = {.match = ""};
    const char *match = "";
    int watchdog = 0, lanes = -1;
    json_int_t lease_ms = 0, wait_ms = 0;
    json_t *json = parse(request);
    if (json_unpack_ex(json, NULL, JSON_STRICT, "{s:s, s?I, s?I, s?b, s?b}", "match", &match,
                       "lease_ms", &lease_ms, "wait_ms", &wait_ms, "watchdog", &watchdog, "lanes",
                       &lanes) != 0) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "terms are {\"match\",\"lease_ms\",\"watchdog\",\"wait_ms\",\"lanes\"}");
    } else if (match[0] == '\0' || strlen(match) > OP_KEY_MAX || lease_ms < 0 ||
               lease_ms > TERMS_MS_MAX || wait_ms < 0 || wait_ms > TERMS_MS_MAX) {
        op_problem(op, PROBLEM_BAD_REQUEST, "match empty or too long, or not 0 to %d ms",
                   TERMS_MS_MAX);
    } else if (watchdog && (lease_ms == 0 || !config->watchdog)) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "the watchdog renews a lease_ms, in a service that does not run --watchdog=off");
    } else {
        snprintf(terms.match, sizeof terms.match, "%s", match);
        terms.lease_ms = lease_ms;
        terms.wait_ms = wait_ms;
        terms.watchdog = watchdog;
        terms.lanes = lanes;
        lab_terms_set(&terms);
        op_answer(op, 201, "{}");
    }
    json_decref(json);
    return true;
}

/* -- locks, wire, trace ------------------------------------------------------------------------ */

/* Returns false: a thread of the service asks the lock server. */
static bool look_at_lock(const struct extra_request *request, struct op *op)
{
    op->kind = OP_GET_LOCK;
    return !resource_parse(request->parameter, op);
}

static bool free_lock(const struct extra_request *request, struct op *op)
{
    op->kind = OP_FREE_LOCK;
    return !resource_parse(request->parameter, op);
}

static bool show_wire(const struct extra_request *request, struct op *op)
{
    (void)request;
    lab_wire_show(op);
    return true;
}

static bool take_wire(const struct extra_request *request, struct op *op)
{
    lab_wire_take(request->body, request->body_bytes, op);
    return true;
}

static bool show_trace(const struct extra_request *request, struct op *op)
{
    (void)request;
    op_answer_json(op, lab_trace_list(config->instance));
    return true;
}

static bool forget_trace(const struct extra_request *request, struct op *op)
{
    (void)request;
    lab_trace_clear();
    op_answer(op, 200, "{}");
    return true;
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct extra_route list[] = {
    {"POST", "/v1/lab/pauses", add_pause},       {"GET", "/v1/lab/pauses", list_pauses},
    {"DELETE", "/v1/lab/pauses", let_all_go},    {"POST", "/v1/lab/pauses/{}", let_one_go},
    {"DELETE", "/v1/lab/pauses/{}", forget_one}, {"POST", "/v1/lab/terms", add_terms},
    {"GET", "/v1/lab/locks/{}", look_at_lock},   {"DELETE", "/v1/lab/locks/{}", free_lock},
    {"POST", "/v1/lab/wire", take_wire},         {"GET", "/v1/lab/wire", show_wire},
    {"GET", "/v1/lab/trace", show_trace},        {"DELETE", "/v1/lab/trace", forget_trace},
};

const struct extra_routes *lab_routes(const struct config *of_service)
{
    static const struct extra_routes routes = {
        .list = list, .n = sizeof list / sizeof list[0], .end = let_everybody_go};
    config = of_service;
    return &routes;
}
