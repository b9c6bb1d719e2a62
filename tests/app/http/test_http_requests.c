/* Bodies, keys and answers of requests that change something, over the stub service. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

#define JSON "Content-Type: application/json\r\n"
#define KEY  "Idempotency-Key: k1\r\n"
#define BUY  "{\"user_id\":\"u1\"}"

/* Sends an order. The answer must have this status and, from 400 on, this problem. */
static void order_is(const char *headers, const char *body, int status, const char *problem)
{
    struct raw_reply reply;
    char type[64];
    assert_int_equal(fixture_call(&fixture, "POST", "/v1/items/1/orders", headers, body, &reply),
                     status);
    raw_header(&reply, "Content-Type", type, sizeof(type));
    if (status >= 400) {
        assert_string_equal(type, "application/problem+json");
        json_t *document = json_loads(reply.body, 0, NULL);
        const char *got = json_string_value(json_object_get(document, "type"));
        assert_non_null(got);
        assert_string_equal(strrchr(got, '/') + 1, problem);
        assert_int_equal(json_integer_value(json_object_get(document, "status")), status);
        json_decref(document);
    }
    raw_free(&reply);
}

GROUP_FIXTURE(start, fixture_tear_down);

TEST_THAT(order_reaches_the_service_whole)
{
    struct raw_reply reply;
    char header[64];
    assert_int_equal(fixture_call(&fixture, "POST", "/v1/items/a%2Db/orders",
                                  JSON "Idempotency-Key: \"q \\\"x\\\"\"\r\n",
                                  "{\"quantity\":3,\"user_id\":\"u1\"}", &reply),
                     201);
    assert_string_equal(raw_header(&reply, "Location", header, sizeof(header)), "/v1/orders/o1");
    assert_string_equal(raw_header(&reply, "Cache-Control", header, sizeof(header)), "no-store");
    assert_string_equal(raw_header(&reply, "Idempotent-Replayed", header, sizeof(header)), "");
    raw_free(&reply);
    struct op op;
    stub_last(fixture.service, &op);
    assert_int_equal(op.kind, OP_PLACE_ORDER);
    assert_string_equal(op.id, "a-b");
    assert_string_equal(op.other, "u1");
    assert_string_equal(op.key, "q \"x\"");
    assert_int_equal(op.amount, 3);
    assert_string_equal(op.request, "order item=a-b user_id=u1 quantity=3");
    assert_true(op.deadline_us > test_now_ms() * 1000);
    assert_true(op.deadline_us <= test_now_ms() * 1000 + 10001000);
}

TEST_THAT(service_problems_pass_through)
{
    order_is(JSON KEY, "{\"user_id\":\"sold-out\"}", 409, "sold-out");
    stub_mode(fixture.service, STUB_REFUSE);
    struct raw_reply reply;
    char header[64];
    assert_int_equal(fixture_call(&fixture, "POST", "/v1/items/1/orders", JSON KEY, BUY, &reply),
                     503);
    assert_string_equal(raw_header(&reply, "Retry-After", header, sizeof(header)), "1");
    assert_non_null(strstr(reply.body, "overloaded"));
    raw_free(&reply);
    stub_mode(fixture.service, STUB_ANSWER);
}

TEST_THAT(replays_are_marked)
{
    struct raw_reply reply;
    char header[64];
    assert_int_equal(fixture_call(&fixture, "POST", "/v1/items/1/orders",
                                  JSON "Idempotency-Key: replay\r\n", BUY, &reply),
                     201);
    assert_string_equal(raw_header(&reply, "Idempotent-Replayed", header, sizeof(header)), "true");
    raw_free(&reply);
}

TEST_THAT(key_is_required_on_every_post)
{
    static const char *const paths[] = {"/v1/items/1/orders", "/v1/orders/1/payment",
                                        "/v1/orders/1/cancellation", "/v1/accounts/1/transactions",
                                        "/v1/transfers"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_call(&fixture, "POST", paths[i], JSON, "{}", &reply), 400);
        assert_non_null(strstr(reply.body, "key-required"));
        raw_free(&reply);
    }
}

TEST_THAT(bad_keys_are_400)
{
    char line[320];
    static const char *const bad[] = {"", "\"\"", "\"a", "\"a\"b\"", "\"a\\b\"", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(line, sizeof(line), JSON "Idempotency-Key: %s\r\n", bad[i]);
        order_is(line, BUY, 400, "bad-request");
    }
    int n = snprintf(line, sizeof(line), JSON "Idempotency-Key: ");
    memset(line + n, 'k', 256);
    strcpy(line + n + 256, "\r\n");
    order_is(line, BUY, 400, "bad-request");
    strcpy(line + n + 255, "\r\n");
    order_is(line, BUY, 201, NULL);
    order_is(JSON "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", BUY, 400, "bad-request");
}

TEST_THAT(only_json_is_taken)
{
    static const char *const good[] = {"application/json", "Application/JSON",
                                       "application/json; charset=utf-8",
                                       "application/json;charset=\"UTF-8\""};
    static const char *const bad[] = {"text/plain",
                                      "application/jsonp",
                                      "application/json; charset=latin-1",
                                      "application/json; x=y",
                                      "application/x-www-form-urlencoded",
                                      "application/json;"};
    char line[128];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(line, sizeof(line), KEY "Content-Type: %s\r\n", good[i]);
        order_is(line, BUY, 201, NULL);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(line, sizeof(line), KEY "Content-Type: %s\r\n", bad[i]);
        order_is(line, BUY, 415, "media-type");
    }
    order_is(KEY, BUY, 415, "media-type");
}

TEST_THAT(bodies_up_to_16_kib_are_taken)
{
    static char body[HTTP_BODY_MAX + 2];
    memset(body, ' ', sizeof(body));
    memcpy(body, BUY, strlen(BUY));
    body[HTTP_BODY_MAX] = '\0';
    order_is(JSON KEY, body, 201, NULL);
    body[HTTP_BODY_MAX] = ' ';
    body[HTTP_BODY_MAX + 1] = '\0';
    order_is(JSON KEY, body, 413, "too-large");
}

TEST_THAT(continue_is_sent_for_a_good_head_only)
{
    int fd = raw_connect(fixture.port);
    raw_send_text(fd, "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\n" JSON KEY
                      "Expect: 100-continue\r\nContent-Length: 16\r\n\r\n");
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 1, RAW_WAIT_MS, &reply), 100);
    raw_free(&reply);
    raw_send_text(fd, BUY);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 201);
    raw_free(&reply);
    close(fd);

    fd = raw_connect(fixture.port);
    raw_send_text(fd, "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\n" JSON KEY
                      "Expect: 100-continue\r\nContent-Length: 99999\r\n\r\n");
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 413);
    raw_free(&reply);
    close(fd);
}

TEST_THAT(refused_requests_keep_the_connection)
{
    int fd = raw_connect(fixture.port);
    struct raw_reply reply;
    fixture_send(fd, "POST", "/nothing", "{\"some\":\"body\"}");
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 404);
    raw_free(&reply);
    fixture_send(fd, "POST", "/v1/items/1/orders", "{\"user_id\":5}");
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 400);
    raw_free(&reply);
    fixture_send(fd, "POST", "/v1/items/1/orders", BUY);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 201);
    raw_free(&reply);
    close(fd);
}

TEST_THAT(pipelined_requests_are_answered_in_order)
{
    enum { REQUESTS = 50 };
    int fd = raw_connect(fixture.port);
    for (int i = 0; i < REQUESTS; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/v1/items/i%d", i);
        fixture_send(fd, "GET", path, NULL);
        fixture_send(fd, "GET", "/livez", NULL);
    }
    for (int i = 0; i < REQUESTS; i++) {
        struct raw_reply reply;
        char id[32];
        snprintf(id, sizeof(id), "\"id\":\"i%d\"", i);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
        assert_non_null(strstr(reply.body, id));
        raw_free(&reply);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
        raw_free(&reply);
    }
    close(fd);
}
