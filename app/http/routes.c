#include "routes.h"
#include "resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define AT(member)    offsetof(struct op, member)
#define PIECES_MAX    1000000000 /* pieces of one order, or of one user */
#define ROWS_MAX      100        /* of a page that people read */
#define RESERVE_S_MAX 31536000

/* who: ROLE_... without the prefix. A route cannot be written without it. */
#define OPERATION(who, verb, pattern, what, op)                                                    \
    .role = ROLE_##who, .method = (verb), .path = (pattern), .action = ROUTE_OPERATION,            \
    .parameter = (what), .kind = (op)
#define LOCAL(who, pattern, what)                                                                  \
    .role = ROLE_##who, .method = "GET", .path = (pattern), .action = (what)

#define ITEM_FIELDS                                                                                \
    {                                                                                              \
        {"stock", FIELD_INTEGER, AT(amount), true, 0, INT64_MAX, 0},                               \
            {"price", FIELD_INTEGER, AT(price), false, 0, INT64_MAX, 0},                           \
            {"per_user_limit", FIELD_INTEGER, AT(per_user_limit), false, 0, PIECES_MAX, 0},        \
            {"guard", FIELD_NAME, AT(guard), false, 0, 0, 0},                                      \
            {"reserve_s", FIELD_INTEGER, AT(reserve_s), false, 1, RESERVE_S_MAX, 900},             \
        {                                                                                          \
            "fence", FIELD_BOOL, AT(fence), false, 0, 0, 0                                         \
        }                                                                                          \
    }
#define ACCOUNT_FIELDS                                                                             \
    {                                                                                              \
        {"balance", FIELD_INTEGER, AT(amount), true, 0, INT64_MAX, 0},                             \
            {"guard", FIELD_NAME, AT(guard), false, 0, 0, 0},                                      \
        {                                                                                          \
            "fence", FIELD_BOOL, AT(fence), false, 0, 0, 0                                         \
        }                                                                                          \
    }

const struct route routes[] = {
    {OPERATION(OPERATOR, "PUT", "/v1/items/{}", ROUTE_ID, OP_PUT_ITEM), .conditional = true,
     .fields = ITEM_FIELDS},
    {OPERATION(NOBODY, "GET", "/v1/items/{}", ROUTE_ID, OP_GET_ITEM)},
    {OPERATION(OPERATOR, "PATCH", "/v1/items/{}", ROUTE_ID, OP_PATCH_ITEM), .conditional = true,
     .fields = {{"price", FIELD_INTEGER, AT(price), false, 0, INT64_MAX, OP_UNCHANGED},
                {"per_user_limit", FIELD_INTEGER, AT(per_user_limit), false, 0, PIECES_MAX,
                 OP_UNCHANGED},
                {"guard", FIELD_NAME, AT(guard), false, 0, 0, 0},
                {"reserve_s", FIELD_INTEGER, AT(reserve_s), false, 1, RESERVE_S_MAX, OP_UNCHANGED},
                {"fence", FIELD_BOOL, AT(fence), false, 0, 0, 0}}},
    {OPERATION(OPERATOR, "POST", "/v1/items/{}/reset", ROUTE_ID, OP_PUT_ITEM), .lesson = true,
     .fields = ITEM_FIELDS},
    {OPERATION(BUYER, "POST", "/v1/items/{}/orders", ROUTE_ID, OP_PLACE_ORDER),
     .canonical = "order item=",
     .fields = {{"user_id", FIELD_USER, AT(other), false, 0, 0, 0},
                {"quantity", FIELD_INTEGER, AT(amount), false, 1, PIECES_MAX, 1}}},
    {OPERATION(OPERATOR, "POST", "/v1/items/{}/stock-changes", ROUTE_ID, OP_CHANGE_STOCK),
     .canonical = "stock-change item=",
     .fields = {{"delta", FIELD_INTEGER, AT(amount), true, -INT64_MAX, INT64_MAX, 0},
                {"reason", FIELD_NAME, AT(reason), true, 0, 0, 0},
                {"reference", FIELD_TEXT, AT(reference), false, 0, DB_REFERENCE_MAX, 0}}},
    {OPERATION(BUYER, "GET", "/v1/orders/{}", ROUTE_ID, OP_GET_ORDER)},
    {OPERATION(BUYER, "POST", "/v1/orders/{}/payment", ROUTE_ID, OP_PAY_ORDER),
     .canonical = "payment order="},
    {OPERATION(BUYER, "POST", "/v1/orders/{}/cancellation", ROUTE_ID, OP_CANCEL_ORDER),
     .canonical = "cancellation order="},
    {OPERATION(OPERATOR, "POST", "/v1/orders/{}/refund", ROUTE_ID, OP_REFUND_ORDER),
     .canonical = "refund order=",
     .fields = {{"reason", FIELD_TEXT, AT(reason), false, 0, DB_REASON_MAX, 0}}},
    {OPERATION(OPERATOR, "PUT", "/v1/accounts/{}", ROUTE_ID, OP_PUT_ACCOUNT), .conditional = true,
     .fields = ACCOUNT_FIELDS},
    {OPERATION(OPERATOR, "PATCH", "/v1/accounts/{}", ROUTE_ID, OP_PATCH_ACCOUNT),
     .conditional = true,
     .fields = {{"guard", FIELD_NAME, AT(guard), false, 0, 0, 0},
                {"fence", FIELD_BOOL, AT(fence), false, 0, 0, 0}}},
    {OPERATION(OPERATOR, "POST", "/v1/accounts/{}/reset", ROUTE_ID, OP_PUT_ACCOUNT), .lesson = true,
     .fields = ACCOUNT_FIELDS},
    {OPERATION(BUYER, "GET", "/v1/accounts/{}", ROUTE_ID, OP_GET_ACCOUNT)},
    {OPERATION(OPERATOR, "POST", "/v1/accounts/{}/transactions", ROUTE_ID, OP_CHANGE_BALANCE),
     .canonical = "transaction account=",
     .fields = {{"amount", FIELD_INTEGER, AT(amount), true, -INT64_MAX, INT64_MAX, 0},
                {"reason", FIELD_TEXT, AT(reason), false, 0, DB_REASON_MAX, 0}}},
    {OPERATION(OPERATOR, "POST", "/v1/transfers", ROUTE_NONE, OP_TRANSFER), .canonical = "transfer",
     .fields = {{"from", FIELD_ID, AT(id), true, 0, 0, 0},
                {"to", FIELD_ID, AT(other), true, 0, 0, 0},
                {"amount", FIELD_INTEGER, AT(amount), true, 1, INT64_MAX, 0}}},
    {OPERATION(BUYER, "GET", "/v1/transactions/{}", ROUTE_KEY, OP_GET_TRANSACTION)},
    {OPERATION(OPERATOR, "GET", "/v1/ledger", ROUTE_NONE, OP_GET_LEDGER), .rows_max = DB_PAGE_MAX},
    {OPERATION(OPERATOR, "GET", "/v1/items/{}/ledger", ROUTE_ID, OP_GET_ITEM_LEDGER),
     .rows_max = ROWS_MAX},
    {OPERATION(BUYER, "GET", "/v1/accounts/{}/ledger", ROUTE_ID, OP_GET_ACCOUNT_LEDGER),
     .rows_max = ROWS_MAX},
    {OPERATION(OPERATOR, "GET", "/v1/shop/{}/ledger", ROUTE_ID, OP_GET_SHOP_LEDGER),
     .rows_max = ROWS_MAX},
    {OPERATION(BUYER, "GET", "/v1/orders", ROUTE_NONE, OP_LIST_ORDERS), .rows_max = ROWS_MAX,
     .of_user = true},
    {OPERATION(OPERATOR, "GET", "/v1/audit", ROUTE_NONE, OP_AUDIT)},
    {OPERATION(OPERATOR, "GET", "/v1/guards", ROUTE_NONE, OP_GUARDS)},
    {OPERATION(NOBODY, "GET", "/readyz", ROUTE_NONE, OP_READY)},
    {OPERATION(NOBODY, "GET", "/healthz", ROUTE_NONE, OP_READY)},
    {LOCAL(NOBODY, "/livez", ROUTE_LIVE)},
    {LOCAL(OPERATOR, "/metrics", ROUTE_METRICS)},
    {LOCAL(NOBODY, "/openapi.json", ROUTE_OPENAPI)},
    {LOCAL(OPERATOR, "/v1/events", ROUTE_EVENTS)},
    {LOCAL(NOBODY, "/problems/{}", ROUTE_PROBLEM), .parameter = ROUTE_FILE},
    {LOCAL(NOBODY, "/", ROUTE_PAGE)},
    {LOCAL(NOBODY, "/web/{}", ROUTE_PAGE), .parameter = ROUTE_FILE},
};
const size_t n_routes = sizeof(routes) / sizeof(routes[0]);

static bool is_key(const char *text)
{
    size_t length = 0;
    for (; text[length] != '\0'; length++)
        if (text[length] < ' ' || text[length] > '~')
            return false;
    return length >= 1 && length <= OP_KEY_MAX;
}

/* Compares path[0..length) with a pattern. A {} matches one segment, which is not decoded yet. */
static bool matches(const char *pattern, const char *path, size_t length, const char **ret_segment,
                    size_t *ret_length)
{
    const char *brace = strstr(pattern, "{}");
    size_t before = brace != NULL ? (size_t)(brace - pattern) : strlen(pattern);
    if (length < before || memcmp(pattern, path, before) != 0)
        return false;
    if (brace == NULL)
        return length == before;
    const char *slash = memchr(path + before, '/', length - before);
    size_t segment = slash != NULL ? (size_t)(slash - path) - before : length - before;
    const char *rest = brace + 2;
    if (length - before - segment != strlen(rest) ||
        memcmp(path + before + segment, rest, strlen(rest)) != 0)
        return false;
    *ret_segment = path + before;
    *ret_length = segment;
    return true;
}

static void add_allow(char allow[ROUTE_ALLOW_MAX], const char *method)
{
    size_t used = strlen(allow);
    int n = snprintf(allow + used, ROUTE_ALLOW_MAX - used, "%s%s%s", used > 0 ? ", " : "", method,
                     strcmp(method, "GET") == 0 ? ", HEAD" : "");
    assert(n > 0 && (size_t)n < ROUTE_ALLOW_MAX - used);
}

/* Returns the path of a target, also of an absolute one ("http://host/path"). */
static const char *skip_authority(const char *target)
{
    static const char scheme[] = "http://";
    if (strncmp(target, scheme, sizeof(scheme) - 1) != 0)
        return target;
    return target + sizeof(scheme) - 1 + strcspn(target + sizeof(scheme) - 1, "/?");
}

/* A request's path, and the segment of it that {} matched. */
struct search {
    const char *method; /* HEAD is answered like GET */
    const char *path;
    size_t length;
    const char *segment; /* at {}, not decoded yet */
    size_t segment_length;
};

/* True: path and method match. If only the path does, adds the method to ret->allow. */
static bool found(struct search *search, const char *pattern, const char *method,
                  struct route_match *ret)
{
    if (!matches(pattern, search->path, search->length, &search->segment, &search->segment_length))
        return false;
    if (strcmp(method, search->method) == 0)
        return true;
    add_allow(ret->allow, method);
    return false;
}

static void search_extras(struct search *search, const struct extra_routes *extra,
                          struct route_match *ret)
{
    for (size_t i = 0; i < extra->n && ret->extra == NULL; i++)
        if (found(search, extra->list[i].path, extra->list[i].method, ret))
            ret->extra = &extra->list[i];
}

enum route_outcome route_find(const char *method, const char *target,
                              const struct extra_routes *const extras[EXTRAS_MAX],
                              struct route_match *ret)
{
    const char *path = skip_authority(target);
    struct search search = {.method = strcmp(method, "HEAD") == 0 ? "GET" : method,
                            .path = path,
                            .length = strcspn(path, "?")};
    ret->route = NULL;
    ret->extra = NULL;
    ret->parameter[0] = ret->allow[0] = '\0';
    ret->query = path[search.length] == '?' ? (size_t)(path - target) + search.length + 1 : 0;
    for (size_t i = 0; i < n_routes && ret->route == NULL; i++)
        if (found(&search, routes[i].path, routes[i].method, ret))
            ret->route = &routes[i];
    for (size_t i = 0; i < EXTRAS_MAX && ret->route == NULL && ret->extra == NULL; i++)
        if (extras[i] != NULL)
            search_extras(&search, extras[i], ret);
    if (ret->route == NULL && ret->extra == NULL)
        return ret->allow[0] != '\0' ? ROUTE_WRONG_METHOD : ROUTE_UNKNOWN;
    if (search.segment == NULL)
        return ROUTE_FOUND;
    if (percent_decode(search.segment, search.segment_length, ret->parameter,
                       sizeof(ret->parameter)) < 0)
        return ROUTE_BAD_PARAMETER;
    const bool id = ret->route != NULL && ret->route->parameter == ROUTE_ID;
    return (id ? is_id(ret->parameter, DB_ID_MAX) : is_key(ret->parameter)) ? ROUTE_FOUND
                                                                            : ROUTE_BAD_PARAMETER;
}
