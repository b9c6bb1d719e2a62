/* The document of GET /openapi.json matches the table of routes. */
#include "openapi.h"
#include "problem_page.h"
#include "routes.h"
#include "stock_change.h"
#include "answer.h"
#include "tests.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <jansson.h>

static json_t *document;

static int load(void **state)
{
    (void)state;
    json_error_t error;
    document = json_loadb(openapi_json, openapi_json_bytes, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL)
        fprintf(stderr, "line %d: %s\n", error.line, error.text);
    return document != NULL ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(document);
    return 0;
}

/* The target of "$ref", or the object itself. */
static json_t *resolve(json_t *object)
{
    const char *path = json_string_value(json_object_get(object, "$ref"));
    if (path == NULL)
        return object;
    assert_int_equal(strncmp(path, "#/", 2), 0);
    char step[64];
    json_t *at = document;
    for (const char *p = path + 2; at != NULL && *p != '\0';) {
        const size_t n = strcspn(p, "/");
        snprintf(step, sizeof(step), "%.*s", (int)n, p);
        at = json_object_get(at, step);
        p += n + (p[n] == '/');
    }
    return at;
}

static json_t *operation_of(const struct route *route)
{
    char path[128], method[16];
    const char *brace = strstr(route->path, "{}");
    snprintf(path, sizeof(path), "%.*s%s%s",
             brace != NULL ? (int)(brace - route->path) : (int)strlen(route->path), route->path,
             brace == NULL                   ? ""
             : route->parameter == ROUTE_KEY ? "{key}"
                                             : "{id}",
             brace != NULL ? brace + 2 : "");
    size_t i = 0;
    for (; route->method[i] != '\0'; i++)
        method[i] = (char)(route->method[i] | 0x20);
    method[i] = '\0';
    return json_object_get(json_object_get(json_object_get(document, "paths"), path), method);
}

static bool takes(const json_t *security, const char *scheme)
{
    size_t i;
    json_t *alternative;
    json_array_foreach(security, i, alternative)
    {
        if (json_object_get(alternative, scheme) != NULL)
            return true;
    }
    return false;
}

/* Who may ask is said of every operation, as the table of routes has it. */
static void security_is_that_of(const struct route *route, const json_t *operation)
{
    const json_t *security = json_object_get(operation, "security");
    const json_t *responses = json_object_get(operation, "responses");
    assert_true(json_is_array(security));
    assert_in_range(route->role, ROLE_NOBODY, ROLE_OPERATOR);
    assert_int_equal(json_array_size(security), route->role == ROLE_NOBODY  ? 0
                                                : route->role == ROLE_BUYER ? 2
                                                                            : 1);
    assert_int_equal(takes(security, "buyerToken"), route->role == ROLE_BUYER);
    assert_int_equal(takes(security, "operatorToken"), route->role != ROLE_NOBODY);
    assert_int_equal(json_object_get(responses, "401") != NULL, route->role != ROLE_NOBODY);
    if (route->role == ROLE_OPERATOR)
        assert_non_null(json_object_get(responses, "403"));
}

GROUP_FIXTURE(load, unload);

TEST_THAT(every_route_is_described_and_nothing_else)
{
    size_t described = 0;
    const char *path, *member;
    json_t *item, *value;
    json_object_foreach(json_object_get(document, "paths"), path, item)
    {
        json_object_foreach(item, member, value)
        {
            described += strcmp(member, "parameters") != 0;
        }
    }
    assert_int_equal(described, n_routes);
    for (size_t i = 0; i < n_routes; i++) {
        json_t *operation = operation_of(&routes[i]);
        assert_non_null(operation);
        assert_non_null(json_object_get(operation, "operationId"));
        assert_non_null(json_object_get(operation, "responses"));
        security_is_that_of(&routes[i], operation);
    }
}

static bool is_required(const json_t *schema, const char *name)
{
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(schema, "required"), i, value)
    {
        if (strcmp(json_string_value(value), name) == 0)
            return true;
    }
    return false;
}

static void field_is(const struct field *field, json_t *schema)
{
    json_t *described = json_object_get(json_object_get(schema, "properties"), field->name);
    assert_non_null(described);
    assert_int_equal(is_required(schema, field->name), field->required);
    static const char *const types[] = {
        [FIELD_ID] = "string",   [FIELD_USER] = "string",     [FIELD_NAME] = "string",
        [FIELD_TEXT] = "string", [FIELD_INTEGER] = "integer", [FIELD_BOOL] = "boolean"};
    assert_string_equal(json_string_value(json_object_get(described, "type")), types[field->type]);
    if (field->type != FIELD_INTEGER)
        return;
    assert_int_equal(json_integer_value(json_object_get(described, "minimum")), field->min);
    assert_int_equal(json_integer_value(json_object_get(described, "maximum")), field->max);
    const json_t *fallback = json_object_get(described, "default");
    assert_int_equal(fallback == NULL, field->required || field->fallback == OP_UNCHANGED);
    assert_true(fallback == NULL || json_integer_value(fallback) == field->fallback);
}

TEST_THAT(bodies_are_described_as_they_are_checked)
{
    for (size_t i = 0; i < n_routes; i++) {
        json_t *body = json_object_get(operation_of(&routes[i]), "requestBody");
        const bool takes_body = strcmp(routes[i].method, "GET") != 0;
        assert_int_equal(body != NULL, takes_body);
        if (!takes_body)
            continue;
        json_t *content = json_object_get(json_object_get(body, "content"), "application/json");
        json_t *schema = resolve(json_object_get(content, "schema"));
        assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
        size_t fields = 0;
        for (const struct field *f = routes[i].fields; f->name != NULL; f++, fields++)
            field_is(f, schema);
        assert_int_equal(json_object_size(json_object_get(schema, "properties")), fields);
    }
}

TEST_THAT(a_write_asks_for_a_key_or_a_condition)
{
    for (size_t i = 0; i < n_routes; i++) {
        size_t index;
        json_t *value;
        bool asks = false, conditions = false;
        json_t *operation = operation_of(&routes[i]);
        json_array_foreach(json_object_get(operation, "parameters"), index, value)
        {
            const char *name = json_string_value(json_object_get(resolve(value), "name"));
            asks = asks || strcmp(name, "Idempotency-Key") == 0;
            conditions = conditions || strcmp(name, "If-Match") == 0;
        }
        const json_t *responses = json_object_get(operation, "responses");
        assert_int_equal(asks, strcmp(routes[i].method, "POST") == 0 && !routes[i].lesson);
        assert_int_equal(asks, routes[i].canonical != NULL);
        assert_int_equal(conditions, json_object_get(responses, "412") != NULL);
        assert_int_equal(routes[i].conditional, json_object_get(responses, "428") != NULL);
        assert_true(conditions || !routes[i].conditional);
    }
}

/* The introduction names each POST that takes no key. */
TEST_THAT(the_introduction_names_the_posts_without_a_key)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(document, "info"), "description"));
    const char *begin = strstr(text, "Every POST needs an Idempotency-Key, except ");
    assert_non_null(begin);
    for (size_t i = 0; i < n_routes; i++) {
        const char *brace = strstr(routes[i].path, "{}");
        char path[128];
        if (brace == NULL || strcmp(routes[i].method, "POST") != 0)
            continue;
        snprintf(path, sizeof path, "`%.*s{id}%s`", (int)(brace - routes[i].path), routes[i].path,
                 brace + 2);
        const char *at = strstr(begin, path);
        assert_int_equal(at != NULL && at < strchr(begin, ':'), routes[i].canonical == NULL);
    }
}

/* A reason that the document lists is one of the service's table, and the other way round. */
TEST_THAT(the_reasons_of_stock_changes_are_listed)
{
    static const char *const places[] = {"ChangeStock", "StockChange"};
    json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        json_t *properties = json_object_get(json_object_get(schemas, places[i]), "properties");
        json_t *reasons = json_object_get(json_object_get(properties, "reason"), "enum");
        assert_int_equal(json_array_size(reasons), n_stock_reasons);
        for (size_t k = 0; k < n_stock_reasons; k++)
            assert_string_equal(json_string_value(json_array_get(reasons, k)),
                                stock_reasons[k].name);
    }
}

TEST_THAT(every_problem_is_described)
{
    json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    json_t *properties = json_object_get(json_object_get(schemas, "Problem"), "properties");
    json_t *types = json_object_get(json_object_get(properties, "type"), "enum");
    assert_int_equal(json_array_size(types), PROBLEM_COUNT - 1);
    for (int p = PROBLEM_NONE + 1; p < PROBLEM_COUNT; p++) {
        const struct problem_info *info = problem_info((enum problem)p);
        const char *type = json_string_value(json_array_get(types, (size_t)p - 1));
        assert_string_equal(strrchr(type, '/') + 1, info->id);
        char name[32];
        snprintf(name, sizeof(name), "Problem%d", info->status);
        json_t *responses = json_object_get(json_object_get(document, "components"), "responses");
        assert_non_null(json_object_get(responses, name));
    }
}

/* The type of a problem in an answer is the path of its page. */
TEST_THAT(every_problem_has_a_page)
{
    static const struct extra_routes *const none[EXTRAS_MAX];
    for (int p = PROBLEM_NONE + 1; p < PROBLEM_COUNT; p++) {
        const char *id = problem_info((enum problem)p)->id, *advice;
        struct route_match match;
        struct op op = {.kind = OP_READY};
        char path[64];
        snprintf(path, sizeof(path), "/problems/%s", id);
        assert_int_equal(route_find("GET", path, none, &match), ROUTE_FOUND);
        problem_page(&op, match.parameter);
        assert_int_equal(op.answer.status, 200);
        advice = problem_advice((enum problem)p);
        if (advice == NULL)
            fail_msg("write of %s in problem_page.c", id);
        assert_non_null(strstr(op.answer.body, advice)); /* whole */
        answer_free(&op.answer);
    }
}

static void references_lead_somewhere_in(json_t *value)
{
    const char *name;
    json_t *member;
    size_t index;
    if (json_is_object(value)) {
        assert_non_null(resolve(value));
        json_object_foreach(value, name, member) references_lead_somewhere_in(member);
    }
    json_array_foreach(value, index, member) references_lead_somewhere_in(member);
}

TEST_THAT(references_lead_somewhere)
{
    references_lead_somewhere_in(document);
}
