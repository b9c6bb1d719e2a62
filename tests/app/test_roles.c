/* Who may ask what: every path, every method and every kind of caller, of the real service; and
 * that neither keys nor orders tell one buyer of another. The tokens are those that `seckilld
 * token` makes. */
#include "program.h"
#include "raw_http.h"
#include "routes.h"
#include "shop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANSWER_MS = 60000, PATH_BYTES = 128, ID_BYTES = 32, TEXT_BYTES = 512 };

enum who { NONE, WRONG, BUYER, OTHER, OPERATOR, WHO_COUNT };
static const char *const names[WHO_COUNT] = {"no token", "a wrong token", "ann", "bob", "olga"};

/* What is answered. {} in the path stands for a resource of ann; each PUT is of a new one. A wrong
 * token is answered like none. */
struct row {
    const char *method, *path, *body;
    int none, buyer, other, operator;
};
static const struct row rows[] = {
    {"PUT", "/v1/items/{}", "{\"stock\":1000,\"price\":1}", 401, 403, 403, 200},
    {"GET", "/v1/items/{}", NULL, 200, 200, 200, 200},
    {"POST", "/v1/items/{}/orders", "{\"user_id\":\"ann\"}", 401, 201, 403, 201},
    {"GET", "/v1/orders/{}", NULL, 401, 200, 404, 200},
    {"POST", "/v1/orders/{}/payment", "", 401, 201, 404, 201},
    {"POST", "/v1/orders/{}/cancellation", "", 401, 201, 404, 201},
    {"PUT", "/v1/accounts/{}", "{\"balance\":1000}", 401, 403, 403, 200},
    {"GET", "/v1/accounts/{}", NULL, 401, 200, 404, 200},
    {"POST", "/v1/accounts/{}/transactions", "{\"amount\":1}", 401, 403, 403, 201},
    {"POST", "/v1/transfers", "{\"from\":\"ann\",\"to\":\"bob\",\"amount\":1}", 401, 403, 403, 201},
    {"GET", "/v1/transactions/{}", NULL, 401, 200, 404, 404},
    {"GET", "/v1/ledger", NULL, 401, 403, 403, 200},
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

static struct sandbox *sandbox;
/* One with tokens, one with --open besides, one without tokens. */
static struct sandbox_server *closed, *open_too, *open_one;
static char tokens[WHO_COUNT][80]; /* by caller; "": none */
static int made;                   /* ids and keys so far */

/* -- the rig ----------------------------------------------------------------------------------- */

static void read_text(const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    ret[fread(ret, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* `seckilld token ROLE NAME`; appends its line to the file. */
static void make_token(const char *role, enum who who, FILE *file)
{
    char out[PATH_BYTES], err[PATH_BYTES], text[TEXT_BYTES];
    int status;
    snprintf(out, sizeof out, "%s/token.out", sandbox_dir(sandbox));
    snprintf(err, sizeof err, "%s/token.err", sandbox_dir(sandbox));
    const pid_t pid = program_start(
        (const char *const[]){shop_binary("seckilld"), "token", role, names[who], NULL}, out, err);
    assert_true(program_ends(pid, ANSWER_MS, &status));
    assert_int_equal(status, 0);
    read_text(out, text, sizeof text);
    fputs(text, file);
    read_text(err, text, sizeof text); /* the token is its second line */
    assert_int_equal(sscanf(text, "%*[^\n] %79[0-9a-f]", tokens[who]), 1);
    assert_int_equal(strlen(tokens[who]), 64);
}

static struct sandbox_server *start_service(const char *name, const char *const *more)
{
    char store[PATH_BYTES + 16];
    const char *args[16] = {"--guard", "mutex", "--db", store};
    snprintf(store, sizeof store, "sqlite:%s/%s.db", sandbox_dir(sandbox), name);
    for (size_t n = 4; *more != NULL; n++)
        args[n] = *more++;
    struct sandbox_server *server = sandbox_seckilld(sandbox, shop_binary("seckilld"), args);
    assert_non_null(server);
    return server;
}

static struct raw_reply ask(const struct sandbox_server *server, enum who who, const char *method,
                            const char *path, const char *key, const char *body);
static int status_of(const struct sandbox_server *server, enum who who, const char *method,
                     const char *path, const char *key, const char *body)
{
    struct raw_reply reply = ask(server, who, method, path, key, body);
    raw_free(&reply);
    return reply.status;
}

static void fill_shop(const struct sandbox_server *server, enum who who)
{
    assert_int_equal(status_of(server, who, "PUT", "/v1/items/i1", NULL, rows[0].body), 200);
    assert_int_equal(status_of(server, who, "PUT", "/v1/accounts/ann", NULL, "{\"balance\":1000}"),
                     200);
    assert_int_equal(status_of(server, who, "PUT", "/v1/accounts/bob", NULL, "{\"balance\":1000}"),
                     200);
}

static int open_services(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/tokens", sandbox_dir(sandbox));
    FILE *file = fopen(path, "we");
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    make_token("buyer", BUYER, file);
    make_token("buyer", OTHER, file);
    make_token("operator", OPERATOR, file);
    fclose(file);
    strcpy(tokens[WRONG], tokens[OPERATOR]);
    tokens[WRONG][63] ^= 1;
    closed = start_service("closed", (const char *const[]){"--tokens", path, NULL});
    open_too = start_service("open-too", (const char *const[]){"--tokens", path, "--open", NULL});
    open_one = start_service("open", (const char *const[]){NULL});
    fill_shop(closed, OPERATOR);
    fill_shop(open_too, OPERATOR);
    fill_shop(open_one, NONE);
    return 0;
}

static int close_services(void **state)
{
    (void)state;
    const bool clean = shop_stop(closed) && shop_stop(open_too) && shop_stop(open_one);
    sandbox_close(sandbox);
    return clean ? 0 : -1;
}

/* key NULL: none; body NULL: none. The caller frees the reply. */
static struct raw_reply ask(const struct sandbox_server *server, enum who who, const char *method,
                            const char *path, const char *key, const char *body)
{
    char text[2048], token[128] = "", keyed[TEXT_BYTES] = "";
    struct raw_reply reply;
    if (who != NONE)
        snprintf(token, sizeof token, "Authorization: Bearer %s\r\n", tokens[who]);
    if (key != NULL)
        snprintf(keyed, sizeof keyed, "Idempotency-Key: %s\r\n", key);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s%s%s"
             "Content-Length: %zu\r\n\r\n%s",
             method, path, token, keyed, strcmp(method, "PUT") == 0 ? "If-None-Match: *\r\n" : "",
             body != NULL ? strlen(body) : 0, body != NULL ? body : "");
    const int fd = raw_connect(server->port);
    assert_true(fd >= 0);
    raw_send_text(fd, text);
    /* the stream of events does not end */
    const bool head_only = strcmp(method, "HEAD") == 0 || strcmp(path, "/v1/events") == 0;
    raw_read(fd, head_only, ANSWER_MS, &reply);
    close(fd);
    return reply;
}

/* Copies a text of a JSON answer. */
static void text_of(const struct raw_reply *reply, const char *name, char ret[TEXT_BYTES])
{
    json_t *json = json_loads(reply->body != NULL ? reply->body : "", 0, NULL);
    const char *text = json_string_value(json_object_get(json, name));
    snprintf(ret, TEXT_BYTES, "%s", text != NULL ? text : "");
    json_decref(json);
}

static void new_key(char ret[ID_BYTES])
{
    snprintf(ret, ID_BYTES, "k-%d", ++made);
}

/* A new order of ann. */
static void new_order(const struct sandbox_server *server, enum who who, char ret[TEXT_BYTES])
{
    char key[ID_BYTES];
    new_key(key);
    struct raw_reply reply =
        ask(server, who, "POST", "/v1/items/i1/orders", key, "{\"user_id\":\"ann\"}");
    assert_int_equal(reply.status, 201);
    text_of(&reply, "order_id", ret);
    raw_free(&reply);
}

/* Puts what {} stands for into the path. buyer: a caller who may order for ann. */
static void fill_path(const struct sandbox_server *server, enum who buyer, const char *method,
                      const char *path, char ret[TEXT_BYTES])
{
    char with[TEXT_BYTES] = "";
    const char *brace = strstr(path, "{}");
    if (strncmp(path, "/v1/orders/", 11) == 0)
        new_order(server, buyer, with);
    else if (strcmp(method, "PUT") == 0)
        snprintf(with, sizeof with, "new-%d", ++made);
    else
        strcpy(with, strncmp(path, "/v1/items/", 10) == 0      ? "i1"
                     : strncmp(path, "/v1/accounts/", 13) == 0 ? "ann"
                     : strncmp(path, "/web/", 5) == 0          ? "style.css"
                     : strncmp(path, "/problems/", 10) == 0    ? "sold-out"
                                                               : "key-of-ann");
    snprintf(ret, TEXT_BYTES, "%.*s%.100s%s", brace != NULL ? (int)(brace - path) : 500, path,
             brace != NULL ? with : "", brace != NULL ? brace + 2 : "");
}

static int64_t ledger_length(const struct sandbox_server *server, enum who who)
{
    struct raw_reply reply = ask(server, who, "GET", "/v1/ledger?limit=1", NULL, NULL);
    json_t *json = json_loads(reply.body, 0, NULL);
    const json_t *last = json_object_get(json, "last");
    assert_true(json_is_integer(last));
    const int64_t length = json_integer_value(last);
    json_decref(json);
    raw_free(&reply);
    return length;
}

/* -- the table --------------------------------------------------------------------------------- */

static int expected(const struct row *row, enum who who)
{
    return who == OPERATOR ? row->operator: who == BUYER ? row->buyer
                             : who == OTHER              ? row->other
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

static void the_table_has_each_route_with_its_role(void **state)
{
    (void)state;
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
    char header[TEXT_BYTES], type[TEXT_BYTES];
    raw_header(reply, "WWW-Authenticate", header, sizeof header);
    if (reply->status != 401) {
        assert_string_equal(header, "");
        return;
    }
    assert_int_equal(strncmp(header, "Bearer ", 7), 0);
    assert_int_equal(strstr(header, "error=\"invalid_token\"") != NULL, who == WRONG);
    if (reply->body_bytes > 0) {
        text_of(reply, "type", type);
        assert_string_equal(type, "/problems/unauthorized");
    }
}

static void ask_and_compare(const struct row *row, const char *method, enum who who, int wanted)
{
    char path[TEXT_BYTES], key[ID_BYTES];
    fill_path(closed, BUYER, method, row->path, path);
    new_key(key);
    const int64_t before = ledger_length(closed, OPERATOR);
    struct raw_reply reply = ask(closed, who, method, path, key, row->body);
    if (reply.status != wanted)
        fail_msg("%s %s with %s: %d, not %d: %s", method, path, names[who], reply.status, wanted,
                 reply.body != NULL ? reply.body : "");
    refusal_is_as_promised(&reply, who);
    raw_free(&reply);
    if (wanted >= 400)
        assert_int_equal(ledger_length(closed, OPERATOR), before);
}

static void every_route_method_and_caller_is_answered_as_the_table_says(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET",   "HEAD",   "PUT",    "POST",
                                          "PATCH", "DELETE", "OPTIONS"};
    assert_int_equal(status_of(closed, BUYER, "POST", "/v1/items/i1/orders", "key-of-ann", ""),
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

static void loopback_without_tokens_is_open_and_says_so(void **state)
{
    (void)state;
    first_line_has(open_one, "open");
    first_line_has(open_too, "tokens,open");
    first_line_has(closed, "tokens");
    for (size_t i = 0; i < ROWS; i++) {
        char path[TEXT_BYTES], key[ID_BYTES];
        fill_path(open_one, NONE, rows[i].method, rows[i].path, path);
        new_key(key);
        const int status = status_of(open_one, NONE, rows[i].method, path, key, rows[i].body);
        if (status != rows[i].operator)
            fail_msg("%s %s: %d", rows[i].method, path, status);
    }
    assert_int_equal(status_of(open_one, WRONG, "GET", "/v1/audit", NULL, NULL), 200);
}

static void an_open_service_with_tokens_looks_at_what_is_sent(void **state)
{
    (void)state;
    assert_int_equal(status_of(open_too, NONE, "GET", "/v1/audit", NULL, NULL), 200);
    assert_int_equal(status_of(open_too, WRONG, "GET", "/v1/audit", NULL, NULL), 401);
    assert_int_equal(status_of(open_too, BUYER, "GET", "/v1/audit", NULL, NULL), 403);
    assert_int_equal(status_of(open_too, OPERATOR, "GET", "/v1/audit", NULL, NULL), 200);
}

/* -- one's own --------------------------------------------------------------------------------- */

static void same_text(enum who who, const char *method, const char *format, const char *order)
{
    char path[TEXT_BYTES], key[ID_BYTES], detail[TEXT_BYTES], wanted[TEXT_BYTES];
    snprintf(path, sizeof path, format, order);
    new_key(key);
    struct raw_reply reply = ask(closed, who, method, path, key, NULL);
    assert_int_equal(reply.status, 404);
    text_of(&reply, "detail", detail);
    snprintf(wanted, sizeof wanted, "order %.100s does not exist", order);
    assert_string_equal(detail, wanted);
    raw_free(&reply);
}

static void another_order_is_answered_like_one_that_does_not_exist(void **state)
{
    (void)state;
    char order[TEXT_BYTES];
    new_order(closed, BUYER, order);
    const char *const of[] = {order, "nothing"};
    for (size_t i = 0; i < 2; i++) {
        same_text(OTHER, "GET", "/v1/orders/%.100s", of[i]);
        same_text(OTHER, "POST", "/v1/orders/%.100s/payment", of[i]);
        same_text(OTHER, "POST", "/v1/orders/%.100s/cancellation", of[i]);
    }
}

static void an_order_is_for_the_user_of_the_token(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "{}", "{\"quantity\":1}", "{\"user_id\":\"bob\"}"};
    for (size_t i = 0; i < 4; i++) {
        char key[ID_BYTES], user[TEXT_BYTES];
        new_key(key);
        struct raw_reply reply = ask(closed, OTHER, "POST", "/v1/items/i1/orders", key, bodies[i]);
        assert_int_equal(reply.status, 201);
        text_of(&reply, "user_id", user);
        assert_string_equal(user, "bob");
        raw_free(&reply);
        /* the user may be said or not: it is the same request */
        assert_int_equal(
            status_of(closed, OTHER, "POST", "/v1/items/i1/orders", key, bodies[3 - i]), 201);
    }
    assert_int_equal(status_of(closed, OPERATOR, "POST", "/v1/items/i1/orders", "no-user", "{}"),
                     400);
}

/* -- keys -------------------------------------------------------------------------------------- */

/* Another request under a key that others have used: none of them learns of the others. */
static void a_key_belongs_to_its_caller(void **state)
{
    (void)state;
    static const enum who callers[] = {BUYER, OTHER, OPERATOR};
    static const char *const bodies[] = {"{\"quantity\":1}", "{\"quantity\":2}",
                                         "{\"user_id\":\"cara\",\"quantity\":3}"};
    static const char *const users[] = {"ann", "bob", "cara"};
    char replayed[TEXT_BYTES], user[TEXT_BYTES];
    for (size_t i = 0; i < 3; i++) {
        struct raw_reply reply =
            ask(closed, callers[i], "GET", "/v1/transactions/same", NULL, NULL);
        assert_int_equal(reply.status, 404);
        raw_free(&reply);
        reply = ask(closed, callers[i], "POST", "/v1/items/i1/orders", "same", bodies[i]);
        assert_int_equal(reply.status, 201);
        assert_string_equal(raw_header(&reply, "Idempotent-Replayed", replayed, sizeof replayed),
                            "");
        raw_free(&reply);
    }
    for (size_t i = 0; i < 3; i++) {
        struct raw_reply reply =
            ask(closed, callers[i], "GET", "/v1/transactions/same", NULL, NULL);
        assert_int_equal(reply.status, 200);
        text_of(&reply, "user_id", user);
        assert_string_equal(user, users[i]);
        raw_free(&reply);
        reply = ask(closed, callers[i], "POST", "/v1/items/i1/orders", "same", bodies[i]);
        assert_string_equal(raw_header(&reply, "Idempotent-Replayed", replayed, sizeof replayed),
                            "true");
        raw_free(&reply);
    }
}

/* A key with the name and the tab of another caller cannot be sent. */
static void no_key_has_a_tab(void **state)
{
    (void)state;
    assert_int_equal(status_of(closed, OPERATOR, "POST", "/v1/items/i1/orders", "ann\tsame",
                               "{\"user_id\":\"ann\"}"),
                     400);
    assert_int_equal(
        status_of(open_too, NONE, "GET", "/v1/transactions/ann%09key-of-ann", NULL, NULL), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_each_route_with_its_role),
        cmocka_unit_test(every_route_method_and_caller_is_answered_as_the_table_says),
        cmocka_unit_test(loopback_without_tokens_is_open_and_says_so),
        cmocka_unit_test(an_open_service_with_tokens_looks_at_what_is_sent),
        cmocka_unit_test(another_order_is_answered_like_one_that_does_not_exist),
        cmocka_unit_test(an_order_is_for_the_user_of_the_token),
        cmocka_unit_test(a_key_belongs_to_its_caller),
        cmocka_unit_test(no_key_has_a_tab),
    };
    return cmocka_run_group_tests(tests, open_services, close_services);
}
