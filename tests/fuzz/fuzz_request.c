/*
 * What a request says: its path, its query, its JSON body. The first byte names the route.
 *
 * Second opinions: each field is read from the body with jansson alone; queries with a scanner of
 * digits; a path is encoded again, and must be decoded to the same.
 */
#include "format.h"
#include "fuzz.h"
#include "json_room.h"
#include "parse.h"
#include "resource.h"

#include <ctype.h>
#include <jansson.h>

static struct op *new_op(const struct route *route)
{
    struct op *op = calloc(1, sizeof *op);
    FUZZ_CHECK(op != NULL);
    op->kind = route != NULL ? route->kind : OP_READY;
    op->fence = -1;
    return op;
}

static void free_op(struct op *op)
{
    free(op->answer.body);
    free(op);
}

/* -- the body -----------------------------------------------------------------------------------
 */

/* Is this value one that the field takes? Said once more, without the code that is tested. */
static bool fits(const struct field *field, const json_t *value, const struct op *op)
{
    const char *text = json_string_value(value);
    const size_t length = json_string_length(value);
    switch (field->type) {
    case FIELD_INTEGER:
        return json_is_integer(value) && json_integer_value(value) >= field->min &&
               json_integer_value(value) <= field->max;
    case FIELD_USER:
        if (text == NULL || (op->own_only && strcmp(text, op->caller) != 0))
            return false;
        /* fall through */
    case FIELD_ID:
    case FIELD_NAME:
        for (size_t i = 0; text != NULL && i < length; i++)
            if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') ||
                  (text[i] >= 'A' && text[i] <= 'Z') || text[i] == '_' || text[i] == '-'))
                return false;
        return text != NULL && length >= 1 && length <= (field->type == FIELD_NAME ? 24 : 64);
    case FIELD_TEXT:
        for (size_t i = 0; text != NULL && i < length; i++)
            if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                return false;
        return text != NULL && length <= (size_t)field->max;
    case FIELD_BOOL:
        return json_is_boolean(value);
    }
    return false;
}

static bool all_fit(const struct route *route, const json_t *body, const struct op *op)
{
    size_t known = 0;
    for (const struct field *field = route->fields; field->name != NULL; field++) {
        const json_t *value = json_object_get(body, field->name);
        known += value != NULL;
        const bool required = field->required || (field->type == FIELD_USER && !op->own_only);
        if (value == NULL ? required : !fits(field, value, op))
            return false;
    }
    return known == json_object_size(body);
}

/* The fields of op are those of the body, or the defaults. */
static void check_fields(const struct route *route, const json_t *body, const struct op *op)
{
    for (const struct field *field = route->fields; field->name != NULL; field++) {
        const json_t *value = json_object_get(body, field->name);
        const char *at = (const char *)op + field->offset;
        int64_t number;
        memcpy(&number, at, sizeof number);
        if (field->type == FIELD_INTEGER)
            FUZZ_CHECK(number == (value != NULL ? json_integer_value(value) : field->fallback));
        else if (field->type == FIELD_BOOL)
            FUZZ_CHECK(*(const int8_t *)at == (value == NULL ? -1 : json_is_true(value)));
        else if (field->type == FIELD_USER && value == NULL)
            FUZZ_CHECK(strcmp(at, op->caller) == 0);
        else if (field->type != FIELD_TEXT)
            FUZZ_CHECK(strcmp(at, value != NULL ? json_string_value(value) : "") == 0);
    }
}

/* The same body with all defaults said and in another order has the same canonical text. */
static void check_canonical(const struct route *route, json_t *body, const struct op *op)
{
    struct op *other = new_op(route);
    strcpy(other->caller, op->caller);
    other->own_only = op->own_only;
    strcpy(other->id, route->parameter == ROUTE_ID ? op->id : "");
    for (const struct field *field = route->fields; field->name != NULL; field++)
        if (field->type == FIELD_INTEGER && json_object_get(body, field->name) == NULL)
            json_object_set_new(body, field->name, json_integer(field->fallback));
    char *text = json_dumps(body, JSON_SORT_KEYS | JSON_INDENT(1) | JSON_ENSURE_ASCII);
    FUZZ_CHECK(text != NULL && parse_body(route, text, strlen(text), other));
    FUZZ_CHECK(strcmp(op->request, other->request) == 0);
    free(text);
    free_op(other);
}

/* buyer: the request of a buyer, else of an operator. */
static void try_body(const struct route *route, const uint8_t *bytes, size_t size, bool buyer)
{
    struct op *op = new_op(route);
    strcpy(op->caller, buyer ? "u1" : "");
    op->own_only = buyer;
    char *body = fuzz_copy(bytes, size);
    if (route->parameter == ROUTE_ID)
        strcpy(op->id, "i1");
    const bool good = parse_body(route, body, size, op);
    json_t *json = size == 0 ? json_object() : json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(good == (json_is_object(json) && all_fit(route, json, op)));
    if (good) {
        FUZZ_CHECK(op->answer.status == 0);
        FUZZ_CHECK((route->canonical != NULL) == (op->request[0] != '\0'));
        check_fields(route, json, op);
        if (route->canonical != NULL)
            check_canonical(route, json, op);
    } else {
        FUZZ_CHECK(op->answer.problem == PROBLEM_BAD_REQUEST ||
                   (buyer && op->answer.problem == PROBLEM_FORBIDDEN));
        FUZZ_CHECK(op->answer.status == problem_info(op->answer.problem)->status);
        json_t *problem = json_loads(op->answer.body, 0, NULL);
        FUZZ_CHECK(json_is_object(problem));
        json_decref(problem);
    }
    json_decref(json);
    free(body);
    free_op(op);
}

/* -- path and query -----------------------------------------------------------------------------
 */

static void check_parameter(const struct route *route, const char *parameter)
{
    char encoded[3 * OP_KEY_MAX + 1], again[OP_KEY_MAX + 1], *to = encoded;
    for (const char *c = parameter; *c != '\0'; c++)
        to += sprintf(to, "%%%02X", (unsigned char)*c);
    FUZZ_CHECK(percent_decode(encoded, (size_t)(to - encoded), again, sizeof again) ==
               (int)strlen(parameter));
    FUZZ_CHECK(strcmp(again, parameter) == 0);
    if (route->parameter == ROUTE_ID)
        FUZZ_CHECK(is_id(parameter, DB_ID_MAX));
}

static void try_path(const char *target)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    static const struct extra_routes *const none[EXTRAS_MAX];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct route_match match;
        const enum route_outcome outcome = route_find(methods[i], target, none, &match);
        FUZZ_CHECK(strlen(match.allow) < sizeof match.allow &&
                   strlen(match.parameter) < sizeof match.parameter);
        FUZZ_CHECK((outcome == ROUTE_WRONG_METHOD) ==
                   (match.route == NULL && match.allow[0] != '\0'));
        FUZZ_CHECK(match.query == 0 || target[match.query - 1] == '?');
        if (outcome != ROUTE_FOUND)
            continue;
        FUZZ_CHECK(match.route != NULL &&
                   strcmp(match.route->method, i == 1 ? "GET" : methods[i]) == 0);
        FUZZ_CHECK((strstr(match.route->path, "{}") != NULL) == (match.parameter[0] != '\0'));
        if (match.parameter[0] != '\0')
            check_parameter(match.route, match.parameter);
    }
}

/* The parameters of a list, by hand. */
static bool is_list_query(const char *query)
{
    bool good = true;
    for (const char *at = query, *next; good && at != NULL && *at != '\0'; at = next) {
        const size_t length = strcspn(at, "&");
        next = at[length] == '&' ? at + length + 1 : NULL;
        if (length > 6 && memcmp(at, "after=", 6) == 0) {
            good = length - 6 <= DB_ID_MAX;
            for (size_t i = 6; i < length; i++)
                good = good && (isalnum((unsigned char)at[i]) || strchr("-_.", at[i]) != NULL);
        } else {
            good = length > 6 && length < 24 && memcmp(at, "limit=", 6) == 0 &&
                   strspn(at + 6, "0123456789") >= length - 6 && atoll(at + 6) >= 1 &&
                   atoll(at + 6) <= DB_PAGE_MAX;
        }
    }
    return good;
}

static void try_queries(const char *query)
{
    struct op *op = new_op(NULL), *list = new_op(NULL);
    const bool good = parse_list_query(query, DB_PAGE_MAX, false, list);
    FUZZ_CHECK(good == is_list_query(query));
    FUZZ_CHECK(!good || (list->limit >= 1 && list->limit <= DB_PAGE_MAX));
    if (parse_audit_query(query, op)) {
        const char *id = strchr(op->resource, ':');
        FUZZ_CHECK(query[0] == '\0' ? op->resource[0] == '\0'
                                    : id != NULL && is_id(id + 1, DB_ID_MAX));
    } else {
        FUZZ_CHECK(op->answer.status == 400);
    }
    free_op(op);
    free_op(list);
}

/* Our printf is the library's. */
static int print(char *ret, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int print(char *ret, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = format_text(ret, size, format, args);
    va_end(args);
    return n;
}

static void try_format(const char *text, size_t size)
{
    char ours[100], libc[100];
    int64_t number = 0;
    memcpy(&number, text, size < sizeof number ? size : sizeof number);
    const size_t room = size % sizeof ours + 1;
    const int n = print(ours, room, "%s=%ld, %d|%s", text, (long)number, (int)number, text);
    FUZZ_CHECK(n == snprintf(libc, room, "%s=%ld, %d|%s", text, (long)number, (int)number, text));
    FUZZ_CHECK(strcmp(ours, libc) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    json_room_set_up();
    const size_t which = fuzz_byte(&input, &size) % (n_routes + 1);
    if (which < n_routes) {
        if (strcmp(routes[which].method, "GET") != 0)
            for (int buyer = 0; buyer < 2; buyer++)
                try_body(&routes[which], input, size, buyer);
        return 0;
    }
    char *text = fuzz_text(input, size);
    if (strlen(text) <= ROUTE_TARGET_MAX) {
        try_path(text);
        try_queries(text);
        const char *query = strchr(text, '?');
        if (query != NULL)
            try_queries(query + 1);
        try_format(text, strlen(text));
    }
    free(text);
    return 0;
}
