#include "lab.h"
#include "answer.h"
#include "guard.h"
#include "lab_private.h"
#include "lab_slips.h"
#include "point.h"
#include "resource.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "/v1/lab/";

enum { TERMS_MS_MAX = 3600000 };

static const char *const point_names[] = {
#define POINT_NAME(name, text) [OP_##name] = text,
    OP_POINT_MAP(POINT_NAME)
#undef POINT_NAME
};

/* -- the points ------------------------------------------------------------------------------- */

/* Whose operation this thread runs: a lock's point does not know. */
static _Thread_local struct {
    char key[DB_KEY_MAX + 1], request_id[65], user[DB_ID_MAX + 1];
    struct guard_lease lease; /* of the locks it takes; 0: as configured */
    bool waited; /* a polling waiter passes the same two points again and again: shown once */
} current;

static bool shows_value(enum op_point point)
{
    return point == OP_READ || point == OP_DECIDED || point == OP_COMMITTED;
}

static void begin(const struct op *op)
{
    current.waited = false;
    if (op->key[0] != '\0')
        snprintf(current.key, sizeof current.key, "%s", op->key);
    else /* the scheduled task's */
        snprintf(current.key, sizeof current.key, "close:%s", op->id);
    snprintf(current.request_id, sizeof current.request_id, "%s", op->request_id);
    snprintf(current.user, sizeof current.user, "%s", op->other);
}

/* A lesson may take longer than the service would let it wait. */
static void set_terms(struct op *op)
{
    char resource[DB_RESOURCE_MAX + 1] = "";
    if (op->kind == OP_PLACE_ORDER || op->kind == OP_CHANGE_BALANCE)
        resource_name(resource, op->kind == OP_PLACE_ORDER ? "item" : "account", op->id);
    const struct lab_terms terms = lab_terms_of(current.key, current.request_id, resource);
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
        current.lease.lease_ms = 0; /* the one before it in this thread may have had terms */
        return;
    }
    begin(op);
    if (point == OP_WAITING)
        set_terms(op);
    if (slip_at)
        slip_at(op, point);
    const struct lab_passage passage = {
        .point = point_names[point],
        .key = current.key,
        .request_id = current.request_id,
        .user = current.user,
        .lock = "",
        .value = op->shown_value,
        .fence = op->shown_fence,
        .has_value = shows_value(point),
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
                                        .lock = lock};
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

const struct seams *lab_open(const struct config *config)
{
    static lk_env env;
    static struct seams seams;
    env = *lk_env_system();
    env.point = at_lock_point;
    env.wall_us = wall_clock_us;
    ahead_us = config->lab_clock_ms * 1000;
    seams = (struct seams){.at_point = at_op_point,
                           .env = &env,
                           .lease = lease_of_current,
                           .lanes = lanes_of,
                           .one_by_one = true,
                           .query = lab_query_lock};
    if (config->lab_slip[0] != '\0')
        lab_slip_install(config->lab_slip, &seams);
    return &seams;
}

void lab_close(void)
{
    lab_pause_let_go(0, true);
}

/* -- the routes ------------------------------------------------------------------------------- */

bool lab_serves(const struct config *config, const char *target)
{
    return config->lab && strncmp(target, prefix, sizeof prefix - 1) == 0;
}

static bool is_point(const char *name)
{
    for (size_t i = 0; i < sizeof point_names / sizeof point_names[0]; i++)
        if (strcmp(name, point_names[i]) == 0)
            return true;
    return strncmp(name, "lock.", 5) == 0 && strlen(name) <= LAB_POINT_MAX;
}

static void add_pause(const char *body, size_t bytes, struct op *op)
{
    const char *point = "", *match = "", *action = "hold";
    json_int_t count = 1;
    json_error_t error;
    json_t *json = json_loadb(body ? body : "", bytes, JSON_REJECT_DUPLICATES, &error);
    if (json_unpack_ex(json, &error, JSON_STRICT, "{s:s, s?s, s?s, s?I}", "point", &point, "match",
                       &match, "action", &action, "count", &count) != 0) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "a pause is {\"point\",\"match\",\"action\",\"count\"}");
    } else if (!is_point(point) || strlen(match) > DB_KEY_MAX || count < 1) {
        op_problem(op, PROBLEM_BAD_REQUEST, "no such point, match too long, or count below 1");
    } else if (strcmp(action, "hold") == 0 && strcmp(point, point_names[OP_SUBMITTED]) == 0) {
        op_problem(op, PROBLEM_BAD_REQUEST, "nobody can be held at submitted; hold at waiting");
    } else {
        enum lab_action what = strcmp(action, "hold") == 0   ? LAB_HOLD
                               : strcmp(action, "kill") == 0 ? LAB_KILL
                                                             : LAB_NOTE;
        if (what == LAB_NOTE && strcmp(action, "note") != 0)
            op_problem(op, PROBLEM_BAD_REQUEST, "action is hold, kill or note");
        else if ((count = lab_pause_add(point, match, what, count)) == 0)
            op_problem(op, PROBLEM_OVERLOADED, "%d pauses are the most", LAB_PAUSES_MAX);
        else
            op_answer(op, 201, "{\"id\":%d}", (int)count);
    }
    json_decref(json);
}

static void add_terms(const struct config *config, const char *body, size_t bytes, struct op *op)
{
    struct lab_terms terms = {.match = ""};
    const char *match = "";
    int watchdog = 0, lanes = -1;
    json_int_t lease_ms = 0, wait_ms = 0;
    json_error_t error;
    json_t *json = json_loadb(body ? body : "", bytes, JSON_REJECT_DUPLICATES, &error);
    if (json_unpack_ex(json, &error, JSON_STRICT, "{s:s, s?I, s?I, s?b, s?b}", "match", &match,
                       "lease_ms", &lease_ms, "wait_ms", &wait_ms, "watchdog", &watchdog, "lanes",
                       &lanes) != 0) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "terms are {\"match\",\"lease_ms\",\"watchdog\",\"wait_ms\",\"lanes\"}");
    } else if (match[0] == '\0' || strlen(match) > DB_KEY_MAX || lease_ms < 0 ||
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
}

/* Its lock server is asked by one of the service's threads. False, with a problem: no resource. */
static bool ask_lock(const char *resource, bool look, struct op *op)
{
    op->kind = look ? OP_GET_LOCK : OP_FREE_LOCK;
    return resource_parse(resource, op);
}

static void let_go(const char *id, bool forget, struct op *op)
{
    char *end = NULL;
    long number = id ? strtol(id, &end, 10) : 0; /* saturates */
    if (number > INT_MAX || (end && *end != '\0') || !lab_pause_let_go((int)number, forget))
        op_problem(op, PROBLEM_NOT_FOUND, "no pause %.20s", id);
    else
        op_answer(op, 200, "{}");
}

bool lab_answer(const struct config *config, const char *method, const char *target,
                const char *body, size_t bytes, struct op *op)
{
    static const char locks[] = "locks/";
    const char *path = target + sizeof prefix - 1;
    const char *id =
        strncmp(path, "pauses/", 7) == 0 && path[7] >= '1' && path[7] <= '9' ? path + 7 : NULL;
    bool pauses = strcmp(path, "pauses") == 0, trace = strcmp(path, "trace") == 0;
    bool wire = strcmp(path, "wire") == 0;
    bool get = strcmp(method, "GET") == 0, forget = strcmp(method, "DELETE") == 0;
    if (strncmp(path, locks, sizeof locks - 1) == 0 && (get || forget))
        return !ask_lock(path + sizeof locks - 1, get, op);
    if (pauses && strcmp(method, "POST") == 0) {
        add_pause(body, bytes, op);
    } else if (pauses && get) {
        op_answer_json(op, json_pack("{s:o}", "pauses", lab_pause_list()));
    } else if ((pauses || id) && forget) {
        let_go(id, true, op);
    } else if (id && strcmp(method, "POST") == 0) {
        let_go(id, false, op);
    } else if (strcmp(path, "terms") == 0 && strcmp(method, "POST") == 0) {
        add_terms(config, body, bytes, op);
    } else if (wire && get) {
        lab_wire_show(op);
    } else if (wire && strcmp(method, "POST") == 0) {
        lab_wire_take(body, bytes, op);
    } else if (trace && get) {
        op_answer_json(op, lab_trace_list(config->instance));
    } else if (trace && forget) {
        lab_trace_clear();
        op_answer(op, 200, "{}");
    } else {
        op_problem(op, PROBLEM_NOT_FOUND, "the lab has pauses, terms, locks, wire and trace");
    }
    return true;
}
