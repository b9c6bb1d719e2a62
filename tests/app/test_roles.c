/* Who may ask what: every path, every method and every kind of caller, of the real service. */
#include "callers.h"
#include "routes.h"
#include "shop.h"
#include "tests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What is answered. {} in the path stands for a resource of ann; each PUT is of a new one. A wrong
 * token is answered like none. */
struct row {
    const char *method, *path, *body;
    int none, buyer, other, operator;
};
static const struct row rows[] = {
    {"PUT", "/v1/items/{}", "{\"stock\":1000,\"price\":1}", 401, 403, 403, 201},
    {"GET", "/v1/items/{}", NULL, 200, 200, 200, 200},
    {"PATCH", "/v1/items/{}", "{\"price\":1}", 401, 403, 403, 428},         /* no condition */
    {"POST", "/v1/items/{}/reset", "{\"stock\":1000}", 401, 403, 403, 404}, /* needs --demo */
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"ann\"}", 401, 201, 403, 201},
    {"POST", "/v1/items/{}/stock-changes", "{\"delta\":1,\"reason\":\"delivery\"}", 401, 403, 403,
     201},
    {"GET", "/v1/orders/{}", NULL, 401, 200, 404, 200},
    {"POST", "/v1/orders/{}/payment", "", 401, 201, 404, 201},
    {"POST", "/v1/orders/{}/cancellation", "", 401, 201, 404, 201},
    {"POST", "/v1/orders/{}/refund", "", 401, 403, 403, 409}, /* not paid yet */
    {"PUT", "/v1/accounts/{}", "{\"balance\":1000}", 401, 403, 403, 201},
    {"GET", "/v1/accounts/{}", NULL, 401, 200, 404, 200},
    {"PATCH", "/v1/accounts/{}", "{\"fence\":true}", 401, 403, 403, 428}, /* no condition */
    {"POST", "/v1/accounts/{}/reset", "{\"balance\":1000}", 401, 403, 403, 404},
    {"POST", "/v1/accounts/{}/transactions", "{\"amount\":1}", 401, 403, 403, 201},
    {"POST", "/v1/transfers", "{\"from\":\"ann\",\"to\":\"bob\",\"amount\":1}", 401, 403, 403, 201},
    {"GET", "/v1/transactions/{}", NULL, 401, 200, 404, 404},
    {"GET", "/v1/ledger", NULL, 401, 403, 403, 200},
    {"GET", "/v1/items/{}/ledger", NULL, 401, 403, 403, 200},
    {"GET", "/v1/accounts/{}/ledger", NULL, 401, 200, 404, 200},
    {"GET", "/v1/shop/{}/ledger", NULL, 401, 403, 403, 200},
    {"GET", "/v1/orders", NULL, 401, 200, 200, 400},
    {"GET", "/v1/audit", NULL, 401, 403, 403, 200},
    {"GET", "/v1/guards", NULL, 401, 403, 403, 200},
    {"GET", "/metrics", NULL, 401, 403, 403, 200},
    {"GET", "/v1/events", NULL, 401, 403, 403, 200},
    {"GET", "/readyz", NULL, 200, 200, 200, 200},
    {"GET", "/healthz", NULL, 200, 200, 200, 200},
    {"GET", "/livez", NULL, 200, 200, 200, 200},
    {"GET", "/openapi.json", NULL, 200, 200, 200, 200},
    {"GET", "/", NULL, 200, 200, 200, 200},
    {"GET", "/problems/{}", NULL, 200, 200, 200, 200},
    {"GET", "/web/{}", NULL, 200, 200, 200, 200},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* One with tokens, one with --open besides, one without tokens, one whose file has none. */
static struct sandbox_server *closed, *open_too, *open_one, *open_empty;

/* -- the rig ----------------------------------------------------------------------------------- */

static struct sandbox_server *open_without_tokens(void)
{
    char path[CALLERS_TEXT];
    snprintf(path, sizeof path, "%s/no-tokens", sandbox_dir(callers_sandbox));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(fclose(file), 0);
    return callers_service("open-empty", (const char *const[]){"--tokens", path, "--open", NULL});
}

static int open_services(void **state)
{
    (void)state;
    callers_open();
    closed = callers_service("closed", (const char *const[]){"--tokens", callers_file, NULL});
    open_too = callers_service("open-too",
                               (const char *const[]){"--tokens", callers_file, "--open", NULL});
    open_one = callers_service("open", (const char *const[]){NULL});
    open_empty = open_without_tokens();
    callers_fill(closed, OPERATOR);
    callers_fill(open_one, NONE);
    return 0;
}

static int close_services(void **state)
{
    (void)state;
    const bool clean =
        shop_stop(closed) && shop_stop(open_too) && shop_stop(open_one) && shop_stop(open_empty);
    callers_close();
    return clean ? 0 : -1;
}

/* Puts what {} stands for into the path. buyer: a caller who may order for ann. */
static void fill_path(const struct sandbox_server *server, enum who buyer, const char *method,
                      const char *path, char ret[CALLERS_TEXT])
{
    char with[CALLERS_TEXT] = "";
    const char *brace = strstr(path, "{}");
    if (strncmp(path, "/v1/orders/", 11) == 0)
        callers_new_order(server, buyer, with);
    else if (strcmp(method, "PUT") == 0)
        callers_new_key(with);
    else
        strcpy(with, strncmp(path, "/v1/items/", 10) == 0      ? "i1"
                     : strncmp(path, "/v1/accounts/", 13) == 0 ? "ann"
                     : strncmp(path, "/web/", 5) == 0          ? "style.css"
                     : strncmp(path, "/problems/", 10) == 0    ? "sold-out"
                     : strncmp(path, "/v1/shop/", 9) == 0      ? "revenue"
                                                               : "key-of-ann");
    snprintf(ret, CALLERS_TEXT, "%.*s%.100s%s", brace != NULL ? (int)(brace - path) : 500, path,
             brace != NULL ? with : "", brace != NULL ? brace + 2 : "");
}

static int64_t ledger_length(const struct sandbox_server *server, enum who who)
{
    struct raw_reply reply = callers_ask(server, who, "GET", "/v1/ledger?after=end", NULL, NULL);
    json_t *json = json_loads(reply.body, 0, NULL);
    const json_t *end = json_object_get(json, "next"); /* SQLite: the id of the last row */
    assert_true(json_is_string(end));
    const int64_t length = atoll(json_string_value(end));
    json_decref(json);
    raw_free(&reply);
    return length;
}

/* -- the table --------------------------------------------------------------------------------- */

static int expected(const struct row *row, enum who who)
{
    return who == OPERATOR ? row->operator: who == ANN ? row->buyer
                             : who == BOB              ? row->other
                                                       : row->none;
}

static const struct row *row_of(const char *method, const char *path)
{
    const struct row *found = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].path, path) == 0 && strcmp(rows[i].method, method) == 0) {
            assert_null(found); /* each is here once */
            found = &rows[i];
        }
    return found;
}

GROUP_FIXTURE(open_services, close_services);

TEST_THAT(the_table_has_each_route_with_its_role)
{
    for (size_t i = 0; i < n_routes; i++) {
        const struct row *row = row_of(routes[i].method, routes[i].path);
        if (row == NULL)
            fail_msg("%s %s: say above what is answered to whom", routes[i].method, routes[i].path);
        assert_int_equal(row->none == 401, routes[i].role != ROLE_NOBODY);
        assert_int_equal(row->buyer == 403, routes[i].role == ROLE_OPERATOR);
    }
    assert_int_equal(ROWS, n_routes);
}

static void refusal_is_as_promised(const struct raw_reply *reply, enum who who)
{
    char header[CALLERS_TEXT], type[CALLERS_TEXT];
    raw_header(reply, "WWW-Authenticate", header, sizeof header);
    if (reply->status != 401) {
        assert_string_equal(header, "");
        return;
    }
    assert_int_equal(strncmp(header, "Bearer ", 7), 0);
    assert_int_equal(strstr(header, "error=\"invalid_token\"") != NULL, who == WRONG);
    if (reply->body_bytes > 0) {
        callers_text(reply, "type", type);
        assert_string_equal(type, "/problems/unauthorized");
    }
}

static void ask_and_compare(const struct row *row, const char *method, enum who who, int wanted)
{
    char path[CALLERS_TEXT], key[CALLERS_KEY];
    fill_path(closed, ANN, method, row->path, path);
    callers_new_key(key);
    const int64_t before = ledger_length(closed, OPERATOR);
    struct raw_reply reply = callers_ask(closed, who, method, path, key, row->body);
    if (reply.status != wanted)
        fail_msg("%s %s with %s: %d, not %d: %s", method, path, callers_names[who], reply.status,
                 wanted, reply.body != NULL ? reply.body : "");
    refusal_is_as_promised(&reply, who);
    raw_free(&reply);
    if (wanted >= 400)
        assert_int_equal(ledger_length(closed, OPERATOR), before);
}

TEST_THAT(every_route_method_and_caller_is_answered_as_the_table_says)
{
    static const char *const methods[] = {"GET",   "HEAD",   "PUT",    "POST",
                                          "PATCH", "DELETE", "OPTIONS"};
    assert_int_equal(callers_status(closed, ANN, "POST", "/v1/items/i1/orders", "key-of-ann", ""),
                     201);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
            const bool head = strcmp(methods[m], "HEAD") == 0;
            const struct row *row = row_of(head ? "GET" : methods[m], rows[i].path);
            for (int who = NONE; who < WHO_COUNT; who++)
                ask_and_compare(row != NULL ? row : &rows[i], methods[m], who,
                                row != NULL ? expected(row, who) : 405);
        }
}

/* -- the open service -------------------------------------------------------------------------- */

static void first_line_has(const struct sandbox_server *server, const char *what)
{
    char line[1024], end[64];
    FILE *file = fopen(server->log, "re");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    snprintf(end, sizeof end, " access=%s\n", what);
    assert_non_null(strstr(line, "event=start"));
    if (strstr(line, end) == NULL)
        fail_msg("%s: not %s", line, end);
}

TEST_THAT(loopback_without_tokens_is_open_and_says_so)
{
    first_line_has(open_one, "open");
    first_line_has(open_too, "tokens,open");
    first_line_has(open_empty, "open"); /* nobody can have a token */
    first_line_has(closed, "tokens");
    for (size_t i = 0; i < ROWS; i++) {
        char path[CALLERS_TEXT], key[CALLERS_KEY];
        fill_path(open_one, NONE, rows[i].method, rows[i].path, path);
        callers_new_key(key);
        const int status = callers_status(open_one, NONE, rows[i].method, path, key, rows[i].body);
        if (status != rows[i].operator)
            fail_msg("%s %s: %d", rows[i].method, path, status);
    }
    assert_int_equal(callers_status(open_one, WRONG, "GET", "/v1/audit", NULL, NULL), 200);
}

TEST_THAT(an_open_service_with_tokens_looks_at_what_is_sent)
{
    assert_int_equal(callers_status(open_too, NONE, "GET", "/v1/audit", NULL, NULL), 200);
    assert_int_equal(callers_status(open_too, WRONG, "GET", "/v1/audit", NULL, NULL), 401);
    assert_int_equal(callers_status(open_too, ANN, "GET", "/v1/audit", NULL, NULL), 403);
    assert_int_equal(callers_status(open_too, OPERATOR, "GET", "/v1/audit", NULL, NULL), 200);
}
