/* What --lab adds to the service: requests are held at a point, killed there, counted; and without
 * it there is nothing of all that. */
#include "process.h"
#include "raw_http.h"
#include "shop.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEN_WITHIN_MS = 10000 };

static const char change[] = "{\"amount\":-200}";
static const char pauses[] = "/v1/lab/pauses";

static struct shop shop;
static struct sandbox_server *lab;   /* its service */
static struct sandbox_server *plain; /* another one, without --lab */
static struct reply reply;

static int open_shop(void **state)
{
    (void)state;
    char db[SANDBOX_TEXT_MAX + 32];
    if (shop_open(&shop, (const char *const[]){"--lab", "--lanes", "off", NULL}) != 0)
        return -1;
    snprintf(db, sizeof db, "sqlite:%s/plain.db", sandbox_dir(shop.sandbox));
    lab = shop.service;
    plain = sandbox_seckilld(shop.sandbox, shop_binary("seckilld"),
                             (const char *const[]){"--db", db, "--guard", "mutex", NULL});
    return plain != NULL ? 0 : -1;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static int ask(int port, const char *method, const char *path, const char *key, const char *body)
{
    struct client client = {.port = port, .fd = -1};
    client_call(&client, method, path, key, body, SHOP_WAIT_MS, &reply);
    client_close(&client);
    return reply.status;
}

static int64_t pause_at(const char *point, const char *match, const char *action)
{
    char body[200];
    snprintf(body, sizeof body, "{\"point\":\"%s\",\"match\":\"%s\",\"action\":\"%s\"}", point,
             match, action);
    assert_int_equal(ask(lab->port, "POST", pauses, NULL, body), 201);
    json_t *json = json_loads(reply.body, 0, NULL);
    int64_t id = json_integer_value(json_object_get(json, "id"));
    json_decref(json);
    assert_true(id > 0);
    return id;
}

struct sight {
    int64_t id;
    const char *name;
    int64_t wanted;
};

static bool shows(void *arg)
{
    const struct sight *sight = arg;
    json_t *json = client_get(lab->port, pauses), *pause;
    bool seen = false;
    size_t i;
    json_array_foreach(json_object_get(json, "pauses"), i, pause)
    {
        if (json_integer_value(json_object_get(pause, "id")) == sight->id)
            seen = json_integer_value(json_object_get(pause, sight->name)) == sight->wanted;
    }
    json_decref(json);
    return seen;
}

static void await(int64_t id, const char *name, int64_t wanted)
{
    struct sight sight = {id, name, wanted};
    assert_true(wait_until(shows, &sight, SEEN_WITHIN_MS));
}

static void let_go(int64_t id)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%d", pauses, (int)id);
    assert_int_equal(ask(lab->port, "DELETE", path, NULL, NULL), 200);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(without_lab_there_are_no_lab_routes)
{
    int port = plain->port;
    assert_int_equal(ask(port, "GET", pauses, NULL, NULL), 404);
    assert_int_equal(ask(port, "POST", pauses, NULL, "{\"point\":\"read\"}"), 404);
    assert_int_equal(ask(port, "DELETE", "/v1/lab/pauses/1", NULL, NULL), 404);
    assert_int_equal(ask(port, "GET", "/v1/lab/trace", NULL, NULL), 404);
}

TEST_THAT(held_request_stands_until_it_is_let_go_and_others_pass)
{
    struct client held = {.port = lab->port, .fd = -1};
    assert_true(shop_put(&shop, "/v1/accounts/hold", "{\"balance\":1000,\"guard\":\"none\"}"));
    int64_t id = pause_at("decided", "first", "hold");
    assert_int_equal(client_send(&held, "POST", "/v1/accounts/hold/transactions", "first", change),
                     0);
    await(id, "n_held", 1);
    assert_int_equal(ask(lab->port, "POST", "/v1/accounts/hold/transactions", "second", change),
                     201);
    assert_int_equal(client_number(lab->port, "/v1/accounts/hold", "balance"), 800);
    let_go(id);
    assert_int_equal(client_read(&held, SHOP_WAIT_MS, &reply), 201);
    client_close(&held);
    assert_int_equal(client_number(lab->port, "/v1/accounts/hold", "balance"), 800); /* one lost */
}

TEST_THAT(pauses_match_by_request_id_user_and_lock_and_count)
{
    assert_true(shop_put(&shop, "/v1/items/match", "{\"stock\":5,\"guard\":\"redis-token\"}"));
    int64_t by_user = pause_at("read", "u7", "note");
    int64_t by_lock = pause_at("lock.acquired", "lock:item:match", "note");
    int64_t by_other = pause_at("read", "somebody-else", "note");
    assert_int_equal(
        ask(lab->port, "POST", "/v1/items/match/orders", "match-1", "{\"user_id\":\"u7\"}"), 201);
    await(by_user, "passed", 1);
    await(by_lock, "passed", 1);
    await(by_other, "passed", 0);
    assert_int_equal(ask(lab->port, "DELETE", pauses, NULL, NULL), 200);
}

TEST_THAT(a_pause_matches_a_resource_and_lets_some_pass_before_it_acts)
{
    struct client held = {.port = lab->port, .fd = -1};
    assert_true(shop_put(&shop, "/v1/items/third", "{\"stock\":5,\"guard\":\"none\"}"));
    assert_true(shop_put(&shop, "/v1/items/other", "{\"stock\":5,\"guard\":\"none\"}"));
    assert_int_equal(ask(lab->port, "POST", pauses, NULL,
                         "{\"point\":\"checked\",\"match\":\"item:third\",\"after\":2}"),
                     201);
    json_t *json = json_loads(reply.body, 0, NULL);
    const int64_t id = json_integer_value(json_object_get(json, "id"));
    json_decref(json);
    static const char *const passing[] = {"other-1", "other-2", "other-3", "third-1", "third-2"};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/items/%.5s/orders", passing[i]);
        assert_int_equal(ask(lab->port, "POST", path, passing[i], "{\"user_id\":\"u1\"}"), 201);
    }
    await(id, "passed", 2);
    await(id, "n_held", 0);
    assert_int_equal(
        client_send(&held, "POST", "/v1/items/third/orders", "third-3", "{\"user_id\":\"u1\"}"), 0);
    await(id, "n_held", 1);
    assert_int_equal(ask(lab->port, "DELETE", pauses, NULL, NULL), 200);
    assert_int_equal(client_read(&held, SHOP_WAIT_MS, &reply), 201);
    client_close(&held);
}

TEST_THAT(trace_tells_points_in_order_with_values)
{
    static const char *const points[] = {"submitted", "waiting", "lock.acquired", "acquired",
                                         "read",      "decided", "checked",       "committed"};
    assert_true(
        shop_put(&shop, "/v1/accounts/trace", "{\"balance\":1000,\"guard\":\"redis-token\"}"));
    assert_int_equal(ask(lab->port, "DELETE", "/v1/lab/trace", NULL, NULL), 200);
    assert_int_equal(ask(lab->port, "POST", "/v1/accounts/trace/transactions", "trace-1", change),
                     201);
    json_t *json = client_get(lab->port, "/v1/lab/trace"), *event;
    size_t i, at = 0;
    int64_t before_us = 0;
    json_array_foreach(json_object_get(json, "events"), i, event)
    {
        const char *point = json_string_value(json_object_get(event, "point"));
        int64_t t_us = json_integer_value(json_object_get(event, "t_us"));
        json_t *value = json_object_get(event, "value");
        assert_true(t_us >= before_us);
        before_us = t_us;
        if (at < sizeof points / sizeof points[0] && strcmp(point, points[at]) == 0)
            at++;
        if (strcmp(point, "read") == 0)
            assert_int_equal(json_integer_value(value), 1000);
        if (strcmp(point, "committed") == 0)
            assert_int_equal(json_integer_value(value), 800);
    }
    assert_int_equal(at, sizeof points / sizeof points[0]);
    json_decref(json);
}

TEST_THAT(malformed_pauses_are_refused)
{
    static const char *const bodies[] = {"{}",
                                         "{\"point\":\"nowhere\"}",
                                         "{\"point\":\"read\",\"action\":\"dance\"}",
                                         "{\"point\":\"read\",\"count\":0}",
                                         "{\"point\":\"submitted\"}",
                                         "{\"point\":\"read\",\"x\":1}",
                                         "[",
                                         ""};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_int_equal(ask(lab->port, "POST", pauses, NULL, bodies[i]), 400);
    assert_int_equal(ask(lab->port, "DELETE", "/v1/lab/pauses/999", NULL, NULL), 404);
    assert_int_equal(ask(lab->port, "GET", "/v1/lab/nothing", NULL, NULL), 404);
}

/* 0 means all of them; so 2^32 must not. */
TEST_THAT(number_of_no_pause_lets_nobody_go)
{
    char target[80];
    const long long id = pause_at("read", "nobody", "hold"), wrap = 1LL << 32;
    const struct {
        long long number;
        const char *more;
    } rows[] = {{wrap, ""}, {wrap + id, ""}, {wrap / 2, ""}, {wrap, "0000000000000"}, {id, "x"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(target, sizeof target, "/v1/lab/pauses/%lld%s", rows[i].number, rows[i].more);
        assert_int_equal(ask(lab->port, "DELETE", target, NULL, NULL), 404);
        assert_int_equal(ask(lab->port, "POST", target, NULL, ""), 404);
    }
    assert_int_equal(ask(lab->port, "DELETE", pauses, NULL, NULL), 200);
}

/* A browser sends this for any page without asking; application/json it does not. */
TEST_THAT(page_of_another_site_kills_nobody)
{
    static const char body[] = "{\"point\":\"read\",\"action\":\"kill\"}";
    char text[400];
    struct raw_reply refused;
    int fd = raw_connect(lab->port);
    assert_true(fd >= 0);
    snprintf(text, sizeof text,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             pauses, strlen(body), body);
    assert_int_equal(raw_send_text(fd, text), 0);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &refused), 415);
    raw_free(&refused);
    close(fd);
    json_t *json = client_get(lab->port, pauses);
    assert_int_equal(json_array_size(json_object_get(json, "pauses")), 0);
    json_decref(json);
}

static bool has_died(void *server)
{
    return !sandbox_alive(server);
}

TEST_THAT(killed_at_a_point_after_the_commit_the_retry_replays)
{
    struct client client = {.port = lab->port, .fd = -1};
    assert_true(shop_put(&shop, "/v1/accounts/kill", "{\"balance\":1000,\"guard\":\"none\"}"));
    pause_at("committed", "kill-1", "kill");
    client_send(&client, "POST", "/v1/accounts/kill/transactions", "kill-1", change);
    assert_true(wait_until(has_died, lab, SEEN_WITHIN_MS));
    client_close(&client);
    assert_int_equal(sandbox_restart(lab), 0);
    client_close(&shop.client);
    assert_int_equal(ask(lab->port, "POST", "/v1/accounts/kill/transactions", "kill-1", change),
                     201);
    assert_true(reply.replayed);
    assert_int_equal(client_number(lab->port, "/v1/accounts/kill", "balance"), 800);
}

/* The page cuts nothing where nobody holds the wire; who holds it says so, and learns the wish. */
TEST_THAT(only_a_wire_that_somebody_holds_can_be_wished_cut)
{
    static const char wire[] = "/v1/lab/wire";
    assert_int_equal(ask(lab->port, "GET", wire, NULL, NULL), 200);
    assert_string_equal(reply.body, "{\"wished\":false,\"cut\":null}\n");
    assert_int_equal(ask(lab->port, "POST", wire, NULL, "{\"wished\":true}"), 503);
    assert_int_equal(ask(lab->port, "POST", wire, NULL, "{\"cut\":false}"), 201);
    assert_string_equal(reply.body, "{\"wished\":false,\"cut\":false}\n");
    assert_int_equal(ask(lab->port, "POST", wire, NULL, "{\"wished\":true}"), 201);
    assert_int_equal(ask(lab->port, "POST", wire, NULL, "{\"cut\":true}"), 201);
    assert_string_equal(reply.body, "{\"wished\":true,\"cut\":true}\n");
    static const char *const bad[] = {"{}", "{\"cut\":1}", "{\"cut\":true,\"wished\":true}", "["};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(ask(lab->port, "POST", wire, NULL, bad[i]), 400);
    assert_int_equal(ask(plain->port, "GET", wire, NULL, NULL), 404);
}

/* Last: a held request does not keep the service from ending well. */
TEST_THAT(draining_lets_everybody_go)
{
    struct client held = {.port = lab->port, .fd = -1};
    assert_true(shop_put(&shop, "/v1/accounts/drain", "{\"balance\":1000,\"guard\":\"none\"}"));
    int64_t id = pause_at("decided", "drain-1", "hold");
    assert_int_equal(
        client_send(&held, "POST", "/v1/accounts/drain/transactions", "drain-1", change), 0);
    await(id, "n_held", 1);
    assert_true(shop_stop(lab));
    assert_int_equal(client_read(&held, SHOP_WAIT_MS, &reply), 201);
    client_close(&held);
}
