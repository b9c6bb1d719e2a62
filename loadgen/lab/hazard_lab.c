#include "hazard_lab.h"
#include "answer_problem.h"
#include "json_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAB_HELD_MAX = 1000000, DETAIL_MAX = 160, PRICE = 100 };

/* One call, whose answer is to be 2xx; *ret (may be NULL) is the parsed answer. */
static int call(const struct load_target *target, const char *method, const char *path,
                const char *body, json_t **ret, char *message)
{
    char *answer = NULL;
    int status = load_fetch(target, method, path, "", body, LAB_TIMEOUT_MS, &answer), result = -1;
    if (status < 200 || status > 299)
        snprintf(message, LAB_MESSAGE_MAX, "%s %s: %d %.*s", method, path, status, DETAIL_MAX,
                 answer == NULL ? "out of memory" : answer);
    else if (ret != NULL && (*ret = json_loads(answer, 0, NULL)) == NULL)
        snprintf(message, LAB_MESSAGE_MAX, "%s %s: not JSON", method, path);
    else
        result = 0;
    free(answer);
    return result;
}

int lab_put(const struct load_target *target, const struct hazard *hazard, const char *id,
            bool fence, char *message)
{
    char path[LAB_PATH_MAX], body[LAB_PATH_MAX], reserve[64] = "";
    bool item = hazard->subject == ITEM;
    if (hazard->reserve_s != 0)
        snprintf(reserve, sizeof reserve, ",\"price\":%d,\"reserve_s\":%lld", PRICE,
                 (long long)hazard->reserve_s);
    snprintf(path, sizeof path, "/v1/%s/%s/reset", item ? "items" : "accounts", id);
    snprintf(body, sizeof body, "{\"%s\":%lld,\"fence\":%s%s}", item ? "stock" : "balance",
             (long long)hazard_initial(hazard), fence ? "true" : "false", reserve);
    return call(target, "POST", path, body, NULL, message);
}

int lab_put_buyer(const struct load_target *target, const char *id, char *message)
{
    char path[LAB_PATH_MAX], body[LAB_PATH_MAX];
    snprintf(path, sizeof path, "/v1/accounts/%s/reset", id);
    snprintf(body, sizeof body, "{\"balance\":%d}", 10 * PRICE);
    return call(target, "POST", path, body, NULL, message);
}

int lab_value(const struct load_target *target, const char *id, int64_t *ret, char *message)
{
    char path[LAB_PATH_MAX];
    json_t *answer;
    snprintf(path, sizeof path, "/v1/accounts/%s", id);
    if (call(target, "GET", path, NULL, &answer, message) != 0)
        return -1;
    const json_t *balance = json_object_get(answer, "balance");
    bool found = json_is_integer(balance);
    *ret = json_integer_value(balance);
    json_decref(answer);
    if (!found)
        snprintf(message, LAB_MESSAGE_MAX, "%s: no balance", path);
    return found ? 0 : -1;
}

int lab_pause(const struct load_target *target, const char *point, const char *match,
              const char *action, int64_t count, int *ret_id, char *message)
{
    char body[LAB_PATH_MAX];
    json_t *answer;
    snprintf(body, sizeof body,
             "{\"point\":\"%s\",\"match\":\"%s\",\"action\":\"%s\",\"count\":%lld}", point, match,
             action, (long long)count);
    if (call(target, "POST", "/v1/lab/pauses", body, &answer, message) != 0)
        return -1;
    const json_int_t id = json_integer_value(json_object_get(answer, "id"));
    json_decref(answer);
    if (id < 1 || id > INT_MAX) {
        snprintf(message, LAB_MESSAGE_MAX, "POST /v1/lab/pauses: no id");
        return -1;
    }
    *ret_id = (int)id;
    return 0;
}

int lab_let_go(const struct load_target *target, int id, char *message)
{
    char path[LAB_PATH_MAX];
    snprintf(path, sizeof path, "/v1/lab/pauses/%d", id);
    return call(target, "DELETE", path, NULL, NULL, message);
}

int lab_reset(const struct load_target *target, char *message)
{
    bool done = call(target, "DELETE", "/v1/lab/pauses", NULL, NULL, message) == 0 &&
                call(target, "DELETE", "/v1/lab/trace", NULL, NULL, message) == 0;
    return done ? 0 : -1;
}

int lab_look(const struct load_target *target, int id, struct lab_pause_state *ret, char *message)
{
    json_t *answer, *pause;
    size_t i;
    bool found = false;
    if (call(target, "GET", "/v1/lab/pauses", NULL, &answer, message) != 0)
        return -1;
    json_array_foreach(json_object_get(answer, "pauses"), i, pause)
    {
        if (json_integer_value(json_object_get(pause, "id")) != id)
            continue;
        found = true;
        ret->passed = json_integer_value(json_object_get(pause, "passed"));
        const json_int_t n_held = json_integer_value(json_object_get(pause, "n_held"));
        ret->n_held = n_held < 0 ? 0 : n_held > LAB_HELD_MAX ? LAB_HELD_MAX : (int)n_held;
    }
    json_decref(answer);
    if (!found)
        snprintf(message, LAB_MESSAGE_MAX, "the service has no pause %d", id);
    return found ? 0 : -1;
}

static void copy_text(const json_t *object, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", json_text_of(object, name));
}

int lab_trace(const struct load_target *target, struct lab_event *ret, int max, int *ret_n,
              char *message)
{
    json_t *answer;
    if (call(target, "GET", "/v1/lab/trace", NULL, &answer, message) != 0)
        return -1;
    const json_t *events = json_object_get(answer, "events");
    size_t n = json_array_size(events), first = n > (size_t)max ? n - (size_t)max : 0;
    for (size_t i = first; i < n; i++) {
        const json_t *from = json_array_get(events, i);
        const json_t *value = json_object_get(from, "value");
        struct lab_event *event = &ret[i - first];
        *event = (struct lab_event){
            .t_us = json_integer_value(json_object_get(from, "t_us")),
            .value = json_integer_value(value),
            .has_value = json_is_integer(value),
            .fence = json_integer_value(json_object_get(from, "fence")),
        };
        copy_text(from, "key", event->key, sizeof event->key);
        copy_text(from, "lock", event->lock, sizeof event->lock);
        copy_text(from, "point", event->point, sizeof event->point);
    }
    *ret_n = (int)(n - first);
    json_decref(answer);
    return 0;
}

int lab_audit(const struct load_target *target, const char *resource, struct audit_row *ret,
              char *message)
{
    char path[LAB_PATH_MAX];
    json_t *answer;
    snprintf(path, sizeof path, "/v1/audit?resource=%s", resource);
    if (call(target, "GET", path, NULL, &answer, message) != 0)
        return -1;
    int result = audit_row_parse(json_array_get(json_object_get(answer, "resources"), 0), ret);
    if (result != 0)
        snprintf(message, LAB_MESSAGE_MAX, "%s: a field of the audit is missing", path);
    json_decref(answer);
    return result;
}

int lab_order_state(const struct load_target *target, const char *id, char ret[LAB_STATE_MAX],
                    char *message)
{
    char path[LAB_PATH_MAX];
    json_t *answer;
    snprintf(path, sizeof path, "/v1/orders/%s", id);
    if (call(target, "GET", path, NULL, &answer, message) != 0)
        return -1;
    copy_text(answer, "state", ret, LAB_STATE_MAX);
    json_decref(answer);
    return 0;
}

int lab_was_accepted(const struct load_target *target, const char *key, bool *ret, char *message)
{
    char path[LAB_PATH_MAX], problem[64] = "", *answer = NULL;
    snprintf(path, sizeof path, "/v1/transactions/%s", key);
    int status = load_fetch(target, "GET", path, "", NULL, LAB_TIMEOUT_MS, &answer);
    if (status == 200)
        answer_problem_name(answer, problem, sizeof problem);
    else if (status != 404)
        snprintf(message, LAB_MESSAGE_MAX, "GET %s: %d %.*s", path, status, DETAIL_MAX,
                 answer == NULL ? "out of memory" : answer);
    *ret = status == 200 && problem[0] == '\0';
    free(answer);
    return status == 200 || status == 404 ? 0 : -1;
}
