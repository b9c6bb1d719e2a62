/* A PUT that is sent again acts once: it names the state that it replaces, and the store tests that
 * on the row as it is at the commit. On both engines, and with two instances on one PostgreSQL. */
#include "load.h"
#include "places.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { RIVALS = 8, RACES = 12 };

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(a_retried_put_sells_nothing_twice)
{
    for (size_t p = 0; p < PLACES; p++) {
        const int port = places[p].ports[0];
        assert_int_equal(ask(port, "PUT", "/v1/items/7", NULL, "{\"stock\":3}"), 201);
        assert_string_equal(reply.etag, "\"1\"");
        for (int buyer = 0; buyer < 3; buyer++)
            assert_int_equal(order(port, "7", buyer), 201);

        assert_int_equal(ask(port, "PUT", "/v1/items/7", NULL, "{\"stock\":3}"), 412);
        assert_problem("precondition-failed");
        assert_string_equal(reply.etag, "\"4\"");
        assert_int_equal(client_number(port, "/v1/items/7", "stock"), 0);
        assert_int_equal(order(port, "7", 3), 409);
        assert_true(shop_audit_ok(port));

        /* a reset is wanted: of the state that the operator has seen, once */
        assert_int_equal(ask(port, "PUT", "/v1/items/7", "If-Match: \"4\"", "{\"stock\":3}"), 200);
        assert_string_equal(reply.etag, "\"5\"");
        assert_int_equal(order(port, "7", 4), 201);
        assert_int_equal(ask(port, "PUT", "/v1/items/7", "If-Match: \"4\"", "{\"stock\":3}"), 412);
        assert_string_equal(reply.etag, "\"6\"");
        assert_int_equal(client_number(port, "/v1/items/7", "stock"), 2);
        assert_true(shop_audit_ok(port));
    }
}

TEST_THAT(a_put_names_the_state_that_it_replaces)
{
    static const struct {
        const char *condition;
        int status;
        const char *problem;
    } cases[] = {
        {"X-None: 1", 428, "condition-required"},
        {"If-Match: *", 428, "condition-required"},
        {"If-None-Match: \"1\"", 428, "condition-required"},
        {"If-Match: 1", 400, "bad-request"},
        {"If-Match: \"1\"\r\nIf-Match: \"1\"", 400, "bad-request"},
        {"If-Match: \"1\"\r\nIf-None-Match: *", 400, "bad-request"},
        {"If-None-Match: *\r\nIf-None-Match: *", 400, "bad-request"},
        {"If-Match: W/\"1\"", 412, "precondition-failed"},
        {"If-Match: \"01\"", 412, "precondition-failed"},
        {"If-Match: \"2\"", 412, "precondition-failed"},
    };
    static const char *const rows[][3] = {
        {"/v1/items/named", "{\"stock\":1}", "/v1/items/absent"},
        {"/v1/accounts/named", "{\"balance\":1}", "/v1/accounts/absent"},
    };
    const int port = places[0].ports[0];
    for (size_t r = 0; r < 2; r++) {
        assert_int_equal(ask(port, "PUT", rows[r][0], NULL, rows[r][1]), 201);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            ask(port, "PUT", rows[r][0], cases[i].condition, rows[r][1]);
            if (reply.status != cases[i].status)
                fail_msg("%s: %d %s", cases[i].condition, reply.status, reply.body);
            assert_problem(cases[i].problem);
            assert_string_equal(reply.etag, reply.status == 412 ? "\"1\"" : "");
        }
        assert_int_equal(client_number(port, rows[r][0], "version"), 1);
        assert_int_equal(ask(port, "PUT", rows[r][2], "If-Match: \"1\"", rows[r][1]), 412);
        assert_string_equal(reply.etag, "");
        assert_int_equal(ask(port, "GET", rows[r][2], NULL, NULL), 404);
        assert_int_equal(
            ask(port, "PUT", rows[r][0], "If-Match: W/\"3\", \"2\" , \"1\"", rows[r][1]), 200);
        assert_string_equal(reply.etag, "\"2\"");
    }
}

/* -- races ------------------------------------------------------------------------------------- */

struct rival {
    pthread_t thread;
    pthread_barrier_t *start;
    struct client client;
    const char *path, *body;
    struct reply reply;
};

static void *put(void *arg)
{
    struct rival *rival = arg;
    pthread_barrier_wait(rival->start);
    client_call(&rival->client, "PUT", rival->path, NULL, rival->body, SHOP_WAIT_MS, &rival->reply);
    return NULL;
}

/* All rivals PUT at once under this condition. Returns how many are answered with this status; the
 * others are refused. */
static int race(const struct place *place, const char *path, const char *body,
                const char *condition, int status)
{
    static struct rival rivals[RIVALS];
    pthread_barrier_t start;
    int won = 0, refused = 0;
    pthread_barrier_init(&start, NULL, RIVALS);
    for (int i = 0; i < RIVALS; i++) {
        rivals[i] = (struct rival){
            .start = &start,
            .client = {.port = place->ports[i % 2], .fd = -1, .condition = condition},
            .path = path,
            .body = body};
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, put, &rivals[i]), 0);
    }
    for (int i = 0; i < RIVALS; i++) {
        pthread_join(rivals[i].thread, NULL);
        client_close(&rivals[i].client);
        won += rivals[i].reply.status == status;
        refused += rivals[i].reply.status == 412;
    }
    pthread_barrier_destroy(&start);
    if (won + refused != RIVALS)
        fail_msg("%s, %s %s: %d of %d answered %d or 412", place->name, path, condition,
                 won + refused, RIVALS, status);
    return won;
}

/* No lock helps: guard none. Only the store's own test keeps the second one out. */
TEST_THAT(of_rivals_one_creates_and_one_resets)
{
    static const char *const kinds[][2] = {{"items", "{\"stock\":1,\"guard\":\"none\"}"},
                                           {"accounts", "{\"balance\":1,\"guard\":\"none\"}"}};
    for (size_t p = 0; p < PLACES; p++) {
        for (int round = 0; round < RACES; round++) {
            const char *const *kind = kinds[round % 2];
            char path[64];
            snprintf(path, sizeof path, "/v1/%s/race%d", kind[0], round);
            assert_int_equal(race(&places[p], path, kind[1], "If-None-Match: *", 201), 1);
            assert_int_equal(race(&places[p], path, kind[1], "If-Match: \"1\"", 200), 1);
            assert_int_equal(client_number(places[p].ports[0], path, "version"), 2);
        }
        assert_true(shop_audit_ok(places[p].ports[0]));
    }
}

/* -- reads and resets -------------------------------------------------------------------------- */

/* The connection ends with the answer: a 304 tells the length of a body that it does not send. */
static int get(int port, const char *path, const char *header)
{
    struct client client = {.port = port, .fd = -1};
    char text[256], *out = reply.body;
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n", path,
                     header);
    assert_int_equal(client_send_text(&client, text, (size_t)n), 0);
    for (n = 0; n < CLIENT_BODY_MAX - 1; n++) {
        if (recv(client.fd, out + n, 1, 0) != 1)
            break;
    }
    out[n] = '\0';
    client_close(&client);
    const char *tag = strstr(out, "\r\nETag: ");
    reply.status = atoi(out + strlen("HTTP/1.1 "));
    snprintf(reply.etag, sizeof reply.etag, "%.*s", tag ? (int)strcspn(tag + 8, "\r") : 0,
             tag ? tag + 8 : "");
    const char *end = strstr(out, "\r\n\r\n");
    assert_non_null(end);
    assert_int_equal(reply.status == 304, end[4] == '\0'); /* no body */
    return reply.status;
}

TEST_THAT(a_get_tells_the_tag_and_takes_conditions)
{
    static const char *const rows[][2] = {{"/v1/items/tag", "{\"stock\":1}"},
                                          {"/v1/accounts/tag", "{\"balance\":1}"}};
    static const struct {
        const char *header;
        int status;
    } cases[] = {
        {"If-None-Match: \"1\"", 304}, {"If-None-Match: W/\"1\"", 304}, {"If-None-Match: *", 304},
        {"If-None-Match: \"2\"", 200}, {"If-Match: \"1\"", 200},        {"If-Match: *", 200},
        {"If-Match: \"2\"", 412},      {"If-Match: W/\"1\"", 412},
    };
    const int port = places[0].ports[0];
    for (size_t r = 0; r < 2; r++) {
        assert_int_equal(ask(port, "PUT", rows[r][0], NULL, rows[r][1]), 201);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            if (get(port, rows[r][0], cases[i].header) != cases[i].status)
                fail_msg("%s: %d", cases[i].header, reply.status);
            assert_string_equal(reply.etag, "\"1\"");
        }
        assert_int_equal(ask(port, "GET", rows[r][0], NULL, NULL), 200);
        assert_string_equal(reply.etag, "\"1\"");
    }
}

TEST_THAT(only_a_lesson_resets_without_a_condition)
{
    static const char *const rows[][3] = {
        {"/v1/items/again", "/v1/items/again/reset", "{\"stock\":2}"},
        {"/v1/accounts/again", "/v1/accounts/again/reset", "{\"balance\":2}"},
    };
    for (size_t r = 0; r < 2; r++) {
        const int port = places[0].ports[0];
        assert_int_equal(ask(port, "POST", rows[r][1], NULL, rows[r][2]), 404);
        assert_int_equal(ask(port, "GET", rows[r][0], NULL, NULL), 404);
        assert_int_equal(ask(demo->port, "POST", rows[r][1], NULL, rows[r][2]), 200);
        assert_int_equal(ask(demo->port, "POST", rows[r][1], NULL, rows[r][2]), 200);
        assert_int_equal(client_number(demo->port, rows[r][0], "version"), 2);
    }
    assert_true(shop_audit_ok(demo->port));
}

TEST_THAT(loadgen_puts_whatever_is_there)
{
    char url[64], message[256], *answer;
    struct load_target target;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", places[0].ports[0]);
    assert_int_equal(load_target_parse(url, &target, message, sizeof message), 0);
    static const int statuses[] = {201, 200, 200};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        int status =
            load_put(NULL, &target, "/v1/items/load", "", "{\"stock\":4}", SHOP_WAIT_MS, &answer);
        if (status != statuses[i])
            fail_msg("%d %s", status, answer);
        free(answer);
    }
    assert_int_equal(client_number(places[0].ports[0], "/v1/items/load", "version"), 3);
    assert_int_equal(
        load_put(NULL, &target, "/v1/items/load", "", "{\"stock\":-4}", SHOP_WAIT_MS, &answer),
        400);
    free(answer);
}
