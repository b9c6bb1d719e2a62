#include "remote.h"
#include "answer_problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set-up and audit wait longer than a request under load: a busy service answers them late. */
enum {
    CALL_TIMEOUT_MS = 30000,
    AUDIT_TIMEOUT_MS = 600000, /* as long as the service allows */
    LIVE_TIMEOUT_MS = 5000,
    WIRE_TIMEOUT_MS = 1000
};

static int fail(char *message, const struct load_target *target, const char *method,
                const char *path, int status, const char *body)
{
    char detail[ANSWER_DETAIL_MAX + 1];
    answer_problem_detail(body == NULL ? "not enough memory" : body, detail);
    if (status < 0)
        snprintf(message, REMOTE_MESSAGE_MAX, "%s; is the service running?", detail);
    else
        snprintf(message, REMOTE_MESSAGE_MAX, "%s: %s %s answered %d: %s", target->host, method,
                 path, status, detail);
    return -1;
}

/* One call to one instance; *ret is the parsed answer. */
static int call_within(int timeout_ms, const struct options *options,
                       const struct load_target *target, const char *method, const char *path,
                       const char *body, json_t **ret, char *message)
{
    char *answer;
    int status =
        strcmp(method, "PUT") == 0
            ? load_put(options->stop, target, path, "", body, timeout_ms, &answer)
            : load_fetch_until(options->stop, target, method, path, "", body, timeout_ms, &answer);
    const bool good = status == 200 || status == 201;
    json_t *parsed = good ? json_loads(answer, 0, NULL) : NULL;
    int result = 0;
    if (!good)
        result = fail(message, target, method, path, status, answer);
    else if (parsed == NULL)
        result = fail(message, target, method, path, status, "not JSON");
    else
        *ret = parsed;
    free(answer);
    return result;
}

static int call(const struct options *options, const struct load_target *target, const char *method,
                const char *path, const char *body, json_t **ret, char *message)
{
    return call_within(CALL_TIMEOUT_MS, options, target, method, path, body, ret, message);
}

/* -- guards ------------------------------------------------------------------------------------ */

static int count_instances(const char names[][65], int n)
{
    int different = 0;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen = seen || strcmp(names[i], names[j]) == 0;
        different += !seen;
    }
    return different;
}

int remote_describe(const struct options *options, struct remote_service *ret, char *message)
{
    struct remote_service service = {0};
    char names[LOAD_TARGETS_MAX][65];
    for (int i = 0; i < options->n_targets; i++) {
        json_t *answer;
        if (call(options, &options->targets[i], "GET", "/v1/guards", NULL, &answer, message) != 0) {
            json_decref(service.guards);
            return -1;
        }
        const char *instance = json_string_value(json_object_get(answer, "instance"));
        const char *guard = json_string_value(json_object_get(answer, "default"));
        snprintf(names[i], sizeof names[i], "%s", instance == NULL ? "" : instance);
        if (instance == NULL) /* not reported: count each address as an instance */
            snprintf(names[i], sizeof names[i], "address %d", i);
        service.lanes |= json_is_true(json_object_get(answer, "lanes"));
        if (i == 0) {
            snprintf(service.default_guard, sizeof service.default_guard, "%s",
                     guard == NULL ? "" : guard);
            service.guards = json_incref(json_object_get(answer, "guards"));
        }
        json_decref(answer);
    }
    service.instances = count_instances(names, options->n_targets);
    *ret = service;
    return 0;
}

void remote_forget(struct remote_service *service)
{
    json_decref(service->guards);
    service->guards = NULL;
}

int remote_claims_safe(const struct remote_service *service, const char *guard, bool *ret,
                       char *message)
{
    size_t i;
    const json_t *each;
    json_array_foreach(service->guards, i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name != NULL && strcmp(name, guard) == 0) {
            *ret = json_is_true(json_object_get(
                each, service->instances == 1 ? "claims_safe_in_one_process" : "claims_safe"));
            return 0;
        }
    }
    snprintf(message, REMOTE_MESSAGE_MAX,
             "the service knows no guard '%s'; GET /v1/guards lists those it has", guard);
    return -1;
}

/* -- resources --------------------------------------------------------------------------------- */

static int put(const struct options *options, const char *kind, const char *id, const char *guard,
               const char *fields, int64_t *ret_version, char *message)
{
    char path[REMOTE_PATH_MAX], body[512];
    json_t *answer;
    snprintf(path, sizeof path, "/v1/%s/%s", kind, id);
    snprintf(body, sizeof body, "{%s,\"guard\":\"%s\"}", fields, guard);
    if (call(options, &options->targets[0], "PUT", path, body, &answer, message) != 0)
        return -1;
    if (ret_version != NULL)
        *ret_version = json_integer_value(json_object_get(answer, "version"));
    json_decref(answer);
    return 0;
}

int remote_put_item(const struct options *options, const char *id, const char *guard,
                    int64_t per_user_limit, int64_t *ret_version, char *message)
{
    char fields[200];
    snprintf(fields, sizeof fields,
             "\"stock\":%lld,\"price\":1999,\"per_user_limit\":%lld,\"reserve_s\":86400%s",
             (long long)options->stock, (long long)per_user_limit,
             options->terms.fence == CHOICE_NONE ? ""
             : options->terms.fence == CHOICE_ON ? ",\"fence\":true"
                                                 : ",\"fence\":false");
    return put(options, "items", id, guard, fields, ret_version, message);
}

int remote_set_terms(const struct options *options, const char *resource, char *message)
{
    const struct sale_terms *terms = &options->terms;
    char body[300];
    if (terms->lease_ms == 0 && terms->lanes == CHOICE_NONE)
        return 0;
    snprintf(body, sizeof body, "{\"match\":\"%s\",\"lease_ms\":%lld,\"watchdog\":%s%s}", resource,
             (long long)terms->lease_ms, terms->watchdog == CHOICE_ON ? "true" : "false",
             terms->lanes == CHOICE_NONE ? ""
             : terms->lanes == CHOICE_ON ? ",\"lanes\":true"
                                         : ",\"lanes\":false");
    for (int i = 0; i < options->n_targets; i++) {
        json_t *answer;
        if (call(options, &options->targets[i], "POST", "/v1/lab/terms", body, &answer, message) !=
            0)
            return -1;
        json_decref(answer);
    }
    return 0;
}

int remote_put_account(const struct options *options, const char *id, const char *guard,
                       int64_t balance, int64_t *ret_version, char *message)
{
    char fields[64];
    snprintf(fields, sizeof fields, "\"balance\":%lld", (long long)balance);
    return put(options, "accounts", id, guard, fields, ret_version, message);
}

/* Binary search: the audit is sorted by name. */
static const json_t *find_resource(const json_t *audit, const char *resource)
{
    const json_t *rows = json_object_get(audit, "resources");
    size_t from = 0, to = json_array_size(rows);
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const json_t *row = json_array_get(rows, middle);
        const char *name = json_string_value(json_object_get(row, "resource"));
        int order = name == NULL ? 0 : strcmp(name, resource);
        if (order == 0)
            return row;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

int remote_is_there(const struct options *options, char *message)
{
    char *answer;
    int status = load_fetch_until(options->stop, &options->targets[0], "GET", "/livez", "", NULL,
                                  LIVE_TIMEOUT_MS, &answer);
    if (status < 0)
        fail(message, &options->targets[0], "GET", "/livez", status, answer);
    free(answer);
    return status < 0 ? -1 : 0;
}

static int get_audit(const struct options *options, const char *path, json_t **ret, char *message)
{
    return call_within(AUDIT_TIMEOUT_MS, options, &options->targets[0], "GET", path, NULL, ret,
                       message);
}

int remote_get(const struct options *options, const char *path, json_t **ret, char *message)
{
    return call(options, &options->targets[0], "GET", path, NULL, ret, message);
}

int remote_audit_all(const struct options *options, json_t **ret, char *message)
{
    return get_audit(options, "/v1/audit", ret, message);
}

int remote_audit_row(const json_t *audit, const char *resource, struct audit_row *ret,
                     char *message)
{
    int result = audit_row_parse(find_resource(audit, resource), ret);
    if (result != 0)
        snprintf(message, REMOTE_MESSAGE_MAX, "GET /v1/audit: %s, or a field of it, is missing",
                 resource);
    return result;
}

int remote_audit(const struct options *options, const char *resource, struct audit_row *ret,
                 char *message)
{
    char path[REMOTE_PATH_MAX];
    json_t *answer;
    snprintf(path, sizeof path, "/v1/audit?resource=%s", resource);
    if (get_audit(options, path, &answer, message) != 0)
        return -1;
    int result = remote_audit_row(answer, resource, ret, message);
    json_decref(answer);
    return result;
}

/* -- single requests --------------------------------------------------------------------------- */

int remote_post(const struct options *options, uint64_t n, const char *path, const char *key,
                const char *body, char **ret_body)
{
    char headers[400];
    snprintf(headers, sizeof headers, "Idempotency-Key: %s\r\nContent-Type: application/json\r\n",
             key);
    return load_fetch_until(options->stop, &options->targets[n % (uint64_t)options->n_targets],
                            "POST", path, headers, body, options->timeout_ms, ret_body);
}

int remote_keep_wire(const struct options *options, bool cut, bool *ret_wished)
{
    char *text;
    const int status =
        load_fetch(&options->targets[0], "POST", "/v1/lab/wire", "",
                   cut ? "{\"cut\":true}" : "{\"cut\":false}", WIRE_TIMEOUT_MS, &text);
    json_t *answer = status == 201 ? json_loads(text, 0, NULL) : NULL;
    const json_t *wished = json_object_get(answer, "wished");
    const bool told = json_is_boolean(wished);
    if (told)
        *ret_wished = json_is_true(wished);
    json_decref(answer);
    free(text);
    return told ? 0 : -1;
}

int remote_outcome(const struct options *options, uint64_t n, const char *key, char **ret_body)
{
    char path[REMOTE_PATH_MAX], problem[64];
    snprintf(path, sizeof path, "/v1/transactions/%s", key);
    int status =
        load_fetch_until(options->stop, &options->targets[n % (uint64_t)options->n_targets], "GET",
                         path, "", NULL, options->timeout_ms, ret_body);
    if (status != 200)
        return status;
    /* The stored answer is a success or a refusal. */
    answer_problem_name(*ret_body, problem, sizeof problem);
    return problem[0] == '\0' ? 201 : 409;
}
