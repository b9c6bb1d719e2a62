#include "fake_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reply_text(struct toy_reply *reply, const char *text)
{
    reply->bytes = text;
    reply->length = strlen(text);
}

static char *compose(int status, const char *headers, const char *body)
{
    char *text;
    int n = asprintf(&text,
                     "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n"
                     "\r\n%s",
                     status, headers, strlen(body), body);
    assert(n > 0);
    return text;
}

void fake_answer(struct fake_service *service, struct toy_reply *reply, int status,
                 const char *body)
{
    free(service->scratch);
    service->scratch = compose(status, "", body);
    reply_text(reply, service->scratch);
}

static void problem_body(char body[BODY_MAX], const char *name, int status)
{
    snprintf(body, BODY_MAX, "{\"type\":\"/problems/%s\",\"title\":\"x\",\"status\":%d}", name,
             status);
}

struct resource *fake_find(struct fake_service *service, const char *kind, const char *id,
                           bool create)
{
    char name[sizeof service->resources->name];
    snprintf(name, sizeof name, "%s:%s", kind, id);
    for (int i = 0; i < service->n_resources; i++)
        if (strcmp(service->resources[i].name, name) == 0)
            return &service->resources[i];
    if (!create)
        return NULL;
    assert(service->n_resources < RESOURCES_MAX);
    struct resource *resource = &service->resources[service->n_resources++];
    strcpy(resource->name, name);
    resource->forks = json_array();
    return resource;
}

/* -- changes ----------------------------------------------------------------------------------- */

static bool is_nth(int n, int number)
{
    return n > 0 && number == n;
}

/* Appends a ledger row and returns it; the caller releases its reference. */
static json_t *book(struct fake_service *service, const struct resource *resource, const char *key,
                    int64_t before, int64_t delta, int64_t version)
{
    json_int_t id = (json_int_t)json_array_size(service->ledger) + 1;
    json_t *row = json_pack("{sI ss ss ss sI sI sI sI sI}", "id", id, "resource", resource->name,
                            "txn_id", key, "instance", service->options.instance, "before", before,
                            "after", before + delta, "delta", delta, "version_before", version,
                            "at_us", (json_int_t)(1000 + version));
    assert(row != NULL);
    json_array_append(service->ledger, row);
    return row;
}

static void change(struct fake_service *service, struct resource *resource, const char *key,
                   int64_t delta, int lose_nth)
{
    bool lost = is_nth(lose_nth, service->n_accepted) && resource->last_row != NULL;
    int64_t before = lost ? resource->last_before : resource->current;
    int64_t version = resource->version - lost;
    json_t *row = book(service, resource, key, before, delta, version);
    if (lost) {
        resource->lost_updates++;
        json_array_append_new(resource->forks, json_pack("[OO]", resource->last_row, row));
    }
    resource->last_before = before;
    resource->current = before + delta;
    resource->version = version + 1;
    resource->ledger_sum += delta;
    json_decref(resource->last_row);
    resource->last_row = row;
}

/* Executes the request once; returns the problem, or NULL. */
static const char *perform(struct fake_service *service, const char *path, const char *key,
                           const json_t *body)
{
    const struct fake_defects *defects = &service->options.defects;
    char id[80];
    if (sscanf(path, "/v1/items/%79[^/]/orders", id) == 1) {
        struct resource *item = fake_find(service, "item", id, false);
        int64_t left = item->initial - item->sold;
        if (left <= defects->undersell - defects->oversell)
            return "sold-out";
        service->n_accepted++;
        if (is_nth(defects->forget_nth, service->n_accepted))
            return NULL;
        change(service, item, key, -1, defects->lose_nth);
        item->sold++;
        return NULL;
    }
    int64_t amount = json_integer_value(json_object_get(body, "amount"));
    const char *from = json_string_value(json_object_get(body, "from"));
    const char *to = json_string_value(json_object_get(body, "to"));
    if (from == NULL && sscanf(path, "/v1/accounts/%79[^/]/transactions", id) == 1)
        to = id;
    struct resource *source = from == NULL ? NULL : fake_find(service, "account", from, false);
    struct resource *target = fake_find(service, "account", to, false);
    if (source != NULL && source->current < amount)
        return "insufficient-funds";
    service->n_accepted++;
    if (is_nth(defects->forget_nth, service->n_accepted))
        return NULL;
    if (source != NULL)
        change(service, source, key, -amount, 0);
    change(service, target, key, amount, defects->lose_nth);
    if (is_nth(defects->double_nth, service->n_accepted)) {
        change(service, target, key, amount, 0);
        target->duplicates++;
    }
    return NULL;
}

static void decide(struct fake_service *service, struct answered *answered, const char *path,
                   const char *body_text)
{
    char body[BODY_MAX];
    json_t *asked = json_loads(body_text, 0, NULL);
    const char *problem = perform(service, path, answered->key, asked);
    if (problem != NULL)
        problem_body(body, problem, 409);
    else
        snprintf(body, sizeof body, "{\"order_id\":\"o-%s\"}", answered->key);
    answered->body = strdup(body);
    answered->reply = compose(problem != NULL ? 409 : 201, "", body);
    json_decref(asked);
}

/* -- routes ------------------------------------------------------------------------------------ */

static struct answered *answered_of(struct fake_service *service, const char *key, bool create)
{
    struct answered *answered;
    HASH_FIND_STR(service->keys, key, answered);
    if (answered != NULL || !create)
        return answered;
    answered = calloc(1, sizeof *answered);
    assert(answered != NULL);
    snprintf(answered->key, sizeof answered->key, "%s", key);
    answered->number = ++service->n_keys;
    HASH_ADD_STR(service->keys, key, answered);
    return answered;
}

static void post(struct fake_service *service, const char *path, const char *key, const char *body,
                 struct toy_reply *reply)
{
    const struct fake_defects *defects = &service->options.defects;
    struct answered *answered = answered_of(service, key, true);
    char problem[BODY_MAX];
    int sending = ++answered->sendings;
    atomic_fetch_add(&service->posts, 1);
    if (is_nth(defects->never_nth, answered->number) || (defects->busy_first && sending == 1)) {
        problem_body(problem, "overloaded", 503);
        fake_answer(service, reply, 503, problem);
    } else if (defects->in_flight_first && sending == 1) {
        problem_body(problem, "in-flight", 409);
        fake_answer(service, reply, 409, problem);
    } else if (is_nth(defects->refuse_nth, answered->number)) {
        problem_body(problem, "bad-request", 400);
        fake_answer(service, reply, 400, problem);
    } else if (is_nth(defects->lose_request_nth, answered->number) && sending == 1) {
        reply->then = TOY_RESET;
    } else if (answered->reply != NULL && defects->replay_differs) {
        fake_answer(service, reply, 201, "{\"order_id\":\"another\"}");
    } else {
        if (answered->reply == NULL)
            decide(service, answered, path, body);
        reply_text(reply, answered->reply);
        if (is_nth(defects->cut_nth, answered->number) && sending == 1) {
            reply->length = 0;
            reply->then = TOY_RESET;
        }
    }
}

static void get_guards(struct fake_service *service, struct toy_reply *reply)
{
    static const char guards[] =
        "{\"name\":\"none\",\"claims_safe\":false,\"claims_safe_in_one_process\":false},"
        "{\"name\":\"mutex\",\"claims_safe\":false,\"claims_safe_in_one_process\":true},"
        "{\"name\":\"redis-token\",\"claims_safe\":true,\"claims_safe_in_one_process\":true},"
        "{\"name\":\"sql-atomic\",\"claims_safe\":true,\"claims_safe_in_one_process\":true}";
    char body[1024];
    snprintf(body, sizeof body,
             "{\"instance\":\"%s\",\"lanes\":%s,\"default\":\"redis-token\",\"guards\":[%s]}",
             service->options.instance, service->options.lanes ? "true" : "false", guards);
    fake_answer(service, reply, 200, body);
}

static void put(struct fake_service *service, const char *kind, const char *id, const char *text,
                struct toy_reply *reply)
{
    json_t *body = json_loads(text, 0, NULL);
    struct resource *resource = fake_find(service, kind, id, true);
    const char *field = strcmp(kind, "item") == 0 ? "stock" : "balance";
    resource->initial = resource->current = json_integer_value(json_object_get(body, field));
    char key[100];
    snprintf(key, sizeof key, "reset\t%s:1", resource->name);
    json_decref(book(service, resource, key, resource->initial, 0, 0));
    resource->version = 1;
    json_decref(body);
    fake_answer(service, reply, 200, "{}");
}

static void get_outcome(struct fake_service *service, const char *key, struct toy_reply *reply)
{
    struct answered *answered = answered_of(service, key, false);
    char problem[BODY_MAX];
    problem_body(problem, "not-found", 404);
    bool known = answered != NULL && answered->body != NULL;
    fake_answer(service, reply, known ? 200 : 404, known ? answered->body : problem);
}

static void answer(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    struct fake_service *service = ctx;
    char method[8], path[300], key[KEY_MAX] = "", id[100];
    int n = sscanf(request->text, "%7s %299s", method, path);
    assert(n == 2);
    const char *header = strcasestr(request->text, "\r\nIdempotency-Key: ");
    if (header != NULL)
        sscanf(header + strlen("\r\nIdempotency-Key: "), "%79[^\r]", key);

    bool is_put = strcmp(method, "PUT") == 0;
    if (strcmp(method, "POST") == 0)
        post(service, path, key, request->body, reply);
    else if (sscanf(path, "/v1/items/%99s", id) == 1)
        (is_put ? put : fake_tell_value)(service, "item", id, request->body, reply);
    else if (sscanf(path, "/v1/accounts/%99s", id) == 1)
        (is_put ? put : fake_tell_value)(service, "account", id, request->body, reply);
    else if (strncmp(path, "/v1/ledger?", strlen("/v1/ledger?")) == 0)
        fake_tell_ledger(service, path + strlen("/v1/ledger?"), reply);
    else if (strcmp(path, "/v1/audit") == 0)
        fake_tell_audit(service, NULL, reply);
    else if (sscanf(path, "/v1/audit?resource=%99s", id) == 1)
        fake_tell_audit(service, id, reply);
    else if (sscanf(path, "/v1/transactions/%99s", id) == 1)
        get_outcome(service, id, reply);
    else if (strcmp(path, "/v1/guards") == 0)
        get_guards(service, reply);
    else
        fake_answer(service, reply, 404, "{}");
}

struct fake_service *fake_start(const struct fake_options *options)
{
    struct fake_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return NULL;
    service->options = *options;
    service->ledger = json_array();
    if (service->options.instance == NULL)
        service->options.instance = "fake";
    struct toy_options toy = {.answer = answer, .ctx = service};
    service->server = toy_start(&toy);
    if (service->server == NULL) {
        free(service);
        return NULL;
    }
    return service;
}

void fake_stop(struct fake_service *service)
{
    struct answered *answered, *next;
    toy_stop(service->server);
    HASH_ITER(hh, service->keys, answered, next)
    {
        HASH_DEL(service->keys, answered);
        free(answered->reply);
        free(answered->body);
        free(answered);
    }
    for (int i = 0; i < service->n_resources; i++) {
        json_decref(service->resources[i].forks);
        json_decref(service->resources[i].last_row);
    }
    json_decref(service->ledger);
    free(service->scratch);
    free(service);
}

const char *fake_url(const struct fake_service *service)
{
    return toy_url(service->server);
}

int fake_posts(const struct fake_service *service)
{
    return atomic_load(&service->posts);
}
