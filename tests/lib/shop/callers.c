#include "callers.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MS = 60000 };

const char *const callers_names[WHO_COUNT] = {"no token", "a wrong token", "ann", "bob", "olga"};
struct sandbox *callers_sandbox;
char callers_file[CALLERS_TEXT], callers_tokens[WHO_COUNT][80];
static int made; /* keys so far */

/* -- tokens ------------------------------------------------------------------------------------ */

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
    char out[CALLERS_TEXT], err[CALLERS_TEXT], text[CALLERS_TEXT];
    int status;
    snprintf(out, sizeof out, "%s/token.out", sandbox_dir(callers_sandbox));
    snprintf(err, sizeof err, "%s/token.err", sandbox_dir(callers_sandbox));
    const pid_t pid = program_start(
        (const char *const[]){shop_binary("seckilld"), "token", role, callers_names[who], NULL},
        out, err);
    assert_true(program_ends(pid, ANSWER_MS, &status));
    assert_int_equal(status, 0);
    read_text(out, text, sizeof text);
    fputs(text, file);
    read_text(err, text, sizeof text); /* the token is its second line */
    assert_int_equal(sscanf(text, "%*[^\n] %79[0-9a-f]", callers_tokens[who]), 1);
    assert_int_equal(strlen(callers_tokens[who]), 64);
}

void callers_open(void)
{
    assert_int_equal(sandbox_open(&callers_sandbox), 0);
    snprintf(callers_file, sizeof callers_file, "%s/tokens", sandbox_dir(callers_sandbox));
    FILE *file = fopen(callers_file, "we");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    make_token("buyer", ANN, file);
    make_token("buyer", BOB, file);
    make_token("operator", OPERATOR, file);
    fclose(file);
    strcpy(callers_tokens[WRONG], callers_tokens[OPERATOR]);
    callers_tokens[WRONG][63] ^= 1;
}

void callers_close(void)
{
    sandbox_close(callers_sandbox);
}

/* -- requests ---------------------------------------------------------------------------------- */

struct sandbox_server *callers_service(const char *name, const char *const *more)
{
    char store[CALLERS_TEXT + 16];
    const char *args[16] = {"--guard", "mutex", "--db", store};
    snprintf(store, sizeof store, "sqlite:%s/%s.db", sandbox_dir(callers_sandbox), name);
    for (size_t n = 4; *more != NULL; n++)
        args[n] = *more++;
    struct sandbox_server *server =
        sandbox_seckilld(callers_sandbox, shop_binary("seckilld"), args);
    assert_non_null(server);
    return server;
}

/* key NULL: none; body NULL: none. The caller frees the reply. */
struct raw_reply callers_ask(const struct sandbox_server *server, enum who who, const char *method,
                             const char *path, const char *key, const char *body)
{
    char text[2048], token[128] = "", keyed[CALLERS_TEXT] = "";
    struct raw_reply reply;
    if (who != NONE)
        snprintf(token, sizeof token, "Authorization: Bearer %s\r\n", callers_tokens[who]);
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

int callers_status(const struct sandbox_server *server, enum who who, const char *method,
                   const char *path, const char *key, const char *body)
{
    struct raw_reply reply = callers_ask(server, who, method, path, key, body);
    raw_free(&reply);
    return reply.status;
}

/* Copies a text of a JSON answer. */
void callers_text(const struct raw_reply *reply, const char *name, char ret[CALLERS_TEXT])
{
    json_t *json = json_loads(reply->body != NULL ? reply->body : "", 0, NULL);
    const char *text = json_string_value(json_object_get(json, name));
    snprintf(ret, CALLERS_TEXT, "%s", text != NULL ? text : "");
    json_decref(json);
}

void callers_new_key(char ret[CALLERS_KEY])
{
    snprintf(ret, CALLERS_KEY, "k-%d", ++made);
}

/* -- the shop ---------------------------------------------------------------------------------- */

void callers_fill(const struct sandbox_server *server, enum who who)
{
    assert_int_equal(
        callers_status(server, who, "PUT", "/v1/items/i1", NULL, "{\"stock\":1000,\"price\":1}"),
        201);
    assert_int_equal(
        callers_status(server, who, "PUT", "/v1/accounts/ann", NULL, "{\"balance\":1000}"), 201);
    assert_int_equal(
        callers_status(server, who, "PUT", "/v1/accounts/bob", NULL, "{\"balance\":1000}"), 201);
}

/* A new order of ann. */
void callers_new_order(const struct sandbox_server *server, enum who who, char ret[CALLERS_TEXT])
{
    char key[CALLERS_KEY];
    callers_new_key(key);
    struct raw_reply reply =
        callers_ask(server, who, "POST", "/v1/items/i1/orders", key, "{\"user_id\":\"ann\"}");
    assert_int_equal(reply.status, 201);
    callers_text(&reply, "order_id", ret);
    raw_free(&reply);
}
