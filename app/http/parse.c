#include "parse.h"
#include "resource.h"
#include "format.h"
#include "json_room.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_ROWS = 100 }; /* without limit= in the query */

static void *place(struct op *op, const struct field *field)
{
    return (char *)op + field->offset;
}

/* Appends to op->request. The fields of every route fit into DB_REQUEST_MAX. */
static void describe(struct op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void describe(struct op *op, const char *format, ...)
{
    size_t used = strlen(op->request);
    va_list args;
    va_start(args, format);
    int n = format_text(op->request + used, sizeof(op->request) - used, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(op->request) - used);
}

static bool take_integer(const struct field *field, const json_t *value, struct op *op)
{
    int64_t number = field->fallback;
    if (value != NULL) {
        if (!json_is_integer(value) || json_integer_value(value) < field->min ||
            json_integer_value(value) > field->max) {
            op_problem(op, PROBLEM_BAD_REQUEST,
                       "%s must be a whole number from %" PRId64 " to %" PRId64, field->name,
                       field->min, field->max);
            return false;
        }
        number = json_integer_value(value);
    }
    memcpy(place(op, field), &number, sizeof(number));
    describe(op, " %s=%" PRId64, field->name, number);
    return true;
}

static bool put_word(const struct field *field, const char *text, struct op *op)
{
    memcpy(place(op, field), text, strlen(text) + 1);
    describe(op, " %s=%s", field->name, text);
    return true;
}

static bool take_word(const struct field *field, const json_t *value, struct op *op)
{
    const size_t max = field->type == FIELD_NAME ? DB_GUARD_MAX : DB_ID_MAX;
    const char *text = "";
    if (value != NULL) {
        text = json_string_value(value);
        if (text == NULL || !is_id(text, max)) {
            op_problem(op, PROBLEM_BAD_REQUEST, "%s must be a string of 1 to %zu of [A-Za-z0-9_-]",
                       field->name, max);
            return false;
        }
    }
    return put_word(field, text, op);
}

/* A buyer is the user; an operator says who is. */
static bool take_user(const struct field *field, const json_t *value, struct op *op)
{
    if (value == NULL && op->own_only)
        return put_word(field, op->caller, op);
    if (value == NULL) {
        op_problem(op, PROBLEM_BAD_REQUEST, "%s is missing", field->name);
        return false;
    }
    if (!take_word(field, value, op))
        return false;
    if (op_may_see(op, place(op, field)))
        return true;
    op_problem(op, PROBLEM_FORBIDDEN, "%s must be that of the token, or be left out", field->name);
    return false;
}

static bool take_text(const struct field *field, const json_t *value, struct op *op)
{
    const char *text = value != NULL ? json_string_value(value) : "";
    bool good = text != NULL && strlen(text) <= (size_t)field->max;
    for (const char *c = text; good && *c != '\0'; c++)
        good = (unsigned char)*c >= ' ' && *c != 0x7f;
    if (!good) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "%s must be a string of at most %" PRId64 " bytes without control characters",
                   field->name, field->max);
        return false;
    }
    return put_word(field, text, op);
}

static bool take_bool(const struct field *field, const json_t *value, struct op *op)
{
    if (value != NULL && !json_is_boolean(value)) {
        op_problem(op, PROBLEM_BAD_REQUEST, "%s must be true or false", field->name);
        return false;
    }
    *(int8_t *)place(op, field) = value == NULL ? -1 : json_is_true(value);
    return true;
}

static bool take_field(const struct field *field, const json_t *object, struct op *op)
{
    const json_t *value = json_object_get(object, field->name);
    if (value == NULL && field->required) {
        op_problem(op, PROBLEM_BAD_REQUEST, "%s is missing", field->name);
        return false;
    }
    switch (field->type) {
    case FIELD_INTEGER:
        return take_integer(field, value, op);
    case FIELD_USER:
        return take_user(field, value, op);
    case FIELD_ID:
    case FIELD_NAME:
        return take_word(field, value, op);
    case FIELD_TEXT:
        return take_text(field, value, op);
    case FIELD_BOOL:
        return take_bool(field, value, op);
    }
    assert(false); /* every type is handled */
    return false;
}

static bool only_known(const struct route *route, json_t *object, struct op *op)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        bool known = false;
        for (const struct field *f = route->fields; f->name != NULL && !known; f++)
            known = strcmp(f->name, name) == 0;
        if (!known) {
            op_problem(op, PROBLEM_BAD_REQUEST, "unknown field \"%.64s\"", name);
            return false;
        }
    }
    return true;
}

static json_t *load(const char *body, size_t length, struct op *op)
{
    json_error_t error;
    bool no_memory;
    json_t *object = json_room_load(body, length, &error, &no_memory);
    if (object != NULL && json_is_object(object))
        return object;
    if (no_memory)
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
    else if (object != NULL)
        op_problem(op, PROBLEM_BAD_REQUEST, "the body must be a JSON object");
    else if (json_error_code(&error) == json_error_duplicate_key)
        op_problem(op, PROBLEM_BAD_REQUEST, "the body has a name twice (line %d, column %d)",
                   error.line, error.column);
    else if (json_error_code(&error) == json_error_numeric_overflow)
        op_problem(op, PROBLEM_BAD_REQUEST, "the body has too large a number (line %d, column %d)",
                   error.line, error.column);
    else
        op_problem(op, PROBLEM_BAD_REQUEST, "the body is not valid JSON (line %d, column %d)",
                   error.line, error.column);
    json_decref(object);
    return NULL;
}

static bool parse(const struct route *route, const char *body, size_t length, struct op *op)
{
    json_t *object = load(body, length, op);
    if (object == NULL)
        return false;

    op->request[0] = '\0';
    if (route->canonical != NULL)
        describe(op, "%s%s", route->canonical, route->parameter == ROUTE_ID ? op->id : "");
    bool good = only_known(route, object, op);
    for (const struct field *f = route->fields; good && f->name != NULL; f++)
        good = take_field(f, object, op);
    json_decref(object);
    if (route->canonical == NULL)
        op->request[0] = '\0';
    return good;
}

bool parse_body(const struct route *route, const char *body, size_t length, struct op *op)
{
    struct json_room room;
    if (length == 0 && (route->fields[0].name == NULL || !route->fields[0].required))
        body = "{}", length = 2;
    json_room_enter(&room);
    const bool good = parse(route, body, length, op);
    json_room_leave();
    return good;
}

bool parse_audit_query(const char *query, struct op *op)
{
    static const char name[] = "resource=";
    op->resource[0] = '\0';
    if (query == NULL || query[0] == '\0')
        return true;
    if (strncmp(query, name, sizeof(name) - 1) != 0) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "unknown query; give ?resource=item:ID or ?resource=account:ID, or none");
        return false;
    }
    return resource_parse(query + sizeof(name) - 1, op);
}

/* A whole number from min to max at the start of text, which ends there or at '&'. */
static bool query_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    const size_t length = strcspn(text, "&");
    errno = 0;
    const long long number = strtoll(text, NULL, 10);
    if (strspn(text, "0123456789") != length || length == 0 || errno != 0 || number < min ||
        number > max)
        return false;
    *ret = number;
    return true;
}

/* Copies a value that ends at '&'. False: too long, or other characters than an id's and '.'. */
static bool query_word(const char *text, char ret[DB_ID_MAX + 1])
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const size_t length = strcspn(text, "&");
    if (length == 0 || length > DB_ID_MAX || strspn(text, allowed) < length)
        return false;
    memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

/* The value of the parameter that text begins with; NULL: it is another one. */
static const char *value_of(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == '=' ? text + length + 1 : NULL;
}

static bool list_parameter(const char *text, int64_t limit_max, bool with_user, struct op *op)
{
    const char *value;
    if ((value = value_of(text, "after")) != NULL)
        return query_word(value, op->after);
    if ((value = value_of(text, "limit")) != NULL)
        return query_number(value, 1, limit_max, &op->limit);
    if (with_user && (value = value_of(text, "user")) != NULL)
        return query_word(value, op->other) && is_id(op->other, DB_ID_MAX);
    return false;
}

static bool list_user(struct op *op)
{
    if (op->other[0] == '\0' && op->own_only)
        strcpy(op->other, op->caller);
    if (op->other[0] == '\0')
        op_problem(op, PROBLEM_BAD_REQUEST, "whose? Give ?user=ID");
    else if (!op_may_see(op, op->other))
        op_problem(op, PROBLEM_FORBIDDEN, "user must be that of the token, or be left out");
    else
        return true;
    return false;
}

bool parse_list_query(const char *query, int64_t limit_max, bool with_user, struct op *op)
{
    bool good = true;
    op->after[0] = op->other[0] = '\0';
    op->limit = PAGE_ROWS;
    while (good && query != NULL && query[0] != '\0') {
        good = list_parameter(query, limit_max, with_user, op);
        const char *more = strchr(query, '&');
        query = more != NULL ? more + 1 : NULL;
    }
    if (!good)
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "unknown query; give after=, the \"next\" of the page before, and limit=N, N "
                   "from 1 to %" PRId64 "%s, or none",
                   limit_max, with_user ? ", and user=ID" : "");
    return good && (!with_user || list_user(op));
}
