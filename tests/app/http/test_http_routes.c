/* Paths, methods, ids, and answers to reads, over the stub service. */
#include "http_fixture.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

GROUP_FIXTURE(start, fixture_tear_down);

TEST_THAT(unknown_paths_are_404)
{
    static const char *const paths[] = {"/nothing",      "/v1/items", "/v1/items/1/",
                                        "/v1/items/1/2", "//livez",   "/v1/items//orders/1",
                                        "/V1/guards",    "*"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_call(&fixture, "GET", paths[i], "", "", &reply), 404);
        raw_free(&reply);
    }
}

TEST_THAT(bad_ids_are_400)
{
    static const char *const paths[] = {
        "/v1/items/a%20b",
        "/v1/items/a.b",
        "/v1/items/%",
        "/v1/items/%2",
        "/v1/items/%zz",
        "/v1/items/%00",
        "/v1/items/a%2Fb",
        "/v1/items/",
        "/v1/transactions/%0a",
        "/v1/transactions/%C3%A9",
        "/v1/items/0123456789012345678901234567890123456789012345678901234567890123x"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_call(&fixture, "GET", paths[i], "", "", &reply), 400);
        raw_free(&reply);
    }
}

TEST_THAT(wrong_methods_are_405_with_allow)
{
    static const struct {
        const char *method, *path, *allow;
    } cases[] = {{"DELETE", "/v1/items/1", "PUT, GET, HEAD, PATCH"},
                 {"GET", "/v1/transfers", "POST"},
                 {"POST", "/livez", "GET, HEAD"},
                 {"OPTIONS", "/v1/items/1/orders", "POST"},
                 {"get", "/livez", "GET, HEAD"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct raw_reply reply;
        char header[64];
        assert_int_equal(fixture_call(&fixture, cases[i].method, cases[i].path, "", "", &reply),
                         405);
        assert_string_equal(raw_header(&reply, "Allow", header, sizeof(header)), cases[i].allow);
        raw_free(&reply);
    }
}

TEST_THAT(head_answers_like_get_without_a_body)
{
    static const char *const paths[] = {"/livez", "/v1/items/1", "/metrics", "/openapi.json"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char text[128], header[64];
        int fd = raw_connect(fixture.port);
        struct raw_reply reply;
        snprintf(text, sizeof(text), "HEAD %s HTTP/1.1\r\nHost: t\r\n\r\n", paths[i]);
        raw_send_text(fd, text);
        assert_int_equal(raw_read(fd, 1, RAW_WAIT_MS, &reply), 200);
        assert_true(atoi(raw_header(&reply, "Content-Length", header, sizeof(header))) > 0);
        raw_free(&reply);
        fixture_send(fd, "GET", "/livez", NULL); /* only this answer follows */
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
        assert_string_equal(reply.body, "{\"status\":\"ok\"}\n");
        raw_free(&reply);
        close(fd);
    }
}

TEST_THAT(request_ids_are_echoed_or_made)
{
    struct raw_reply reply;
    char first[128], second[128];
    fixture_call(&fixture, "GET", "/nothing", "X-Request-Id: abc.D-1_2\r\n", "", &reply);
    assert_string_equal(raw_header(&reply, "X-Request-Id", first, sizeof(first)), "abc.D-1_2");
    assert_non_null(strstr(reply.body, "\"request_id\":\"abc.D-1_2\""));
    raw_free(&reply);
    fixture_call(&fixture, "GET", "/livez", "X-Request-Id: not valid\r\n", "", &reply);
    raw_header(&reply, "X-Request-Id", first, sizeof(first));
    raw_free(&reply);
    fixture_call(&fixture, "GET", "/livez", "", "", &reply);
    raw_header(&reply, "X-Request-Id", second, sizeof(second));
    raw_free(&reply);
    assert_int_equal(strlen(first), 16);
    assert_int_equal(strlen(second), 16);
    assert_string_not_equal(first, second);
}

TEST_THAT(audit_takes_a_resource)
{
    struct raw_reply reply;
    struct op op;
    assert_int_equal(
        fixture_call(&fixture, "GET", "/v1/audit?resource=account%3Aa1", "", "", &reply), 200);
    raw_free(&reply);
    stub_last(fixture.service, &op);
    assert_int_equal(op.kind, OP_AUDIT);
    assert_string_equal(op.resource, "account:a1");
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/audit", "", "", &reply), 200);
    raw_free(&reply);
    stub_last(fixture.service, &op);
    assert_string_equal(op.resource, "");
    static const char *const bad[] = {"/v1/audit?resourse=item:1", "/v1/audit?resource=1",
                                      "/v1/audit?resource=item:", "/v1/audit?resource=order:1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fixture_call(&fixture, "GET", bad[i], "", "", &reply), 400);
        raw_free(&reply);
    }
}

TEST_THAT(ledger_takes_a_cursor_and_a_length)
{
    static const struct {
        const char *query;
        const char *after;
        int64_t limit;
    } good[] = {{"", "", 100},
                {"?after=17", "17", 100},
                {"?after=749.17", "749.17", 100},
                {"?limit=1000", "", 1000},
                {"?after=end&limit=1", "end", 1},
                {"?limit=2&after=3", "3", 2}};
    static const char *const bad[] = {"?after=",      "?after=1+2",
                                      "?limit=0",     "?limit=1001",
                                      "?limit=",      "?resource=item:1",
                                      "?after=1&x=2", "?user=u1",
                                      "?after=1%2e2", "?limit=9223372036854775808"};
    struct raw_reply reply;
    struct op op;
    char target[100];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(target, sizeof target, "/v1/ledger%s", good[i].query);
        assert_int_equal(fixture_call(&fixture, "GET", target, "", "", &reply), 200);
        raw_free(&reply);
        stub_last(fixture.service, &op);
        assert_int_equal(op.kind, OP_GET_LEDGER);
        assert_string_equal(op.after, good[i].after);
        assert_int_equal(op.limit, good[i].limit);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(target, sizeof target, "/v1/ledger%s", bad[i]);
        assert_int_equal(fixture_call(&fixture, "GET", target, "", "", &reply), 400);
        raw_free(&reply);
    }
}

TEST_THAT(bodies_of_any_length_leave_the_query_as_it_is)
{
    static const size_t lengths[] = {0, 1, 300, 1000, HTTP_BODY_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char body[HTTP_BODY_MAX + 1];
        struct raw_reply reply;
        struct op op;
        memset(body, 'x', lengths[i]);
        body[lengths[i]] = '\0';
        assert_int_equal(
            fixture_call(&fixture, "GET", "/v1/audit?resource=item:i1", "", body, &reply), 200);
        raw_free(&reply);
        stub_last(fixture.service, &op);
        assert_string_equal(op.resource, "item:i1");
    }
}

TEST_THAT(long_answers_arrive_whole)
{
    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/guards", "", "", &reply), 200);
    assert_int_equal(reply.body_bytes, STUB_LONG_BYTES + 1); /* and a newline */
    assert_int_equal(reply.body[STUB_LONG_BYTES - 1], ']');
    raw_free(&reply);
}

TEST_THAT(metrics_count_what_was_answered)
{
    static const char line[] =
        "seckill_http_requests_total{method=\"GET\",route=\"/v1/orders/{id}\",status=\"200\"}";
    const long before = fixture_metric(&fixture, line);
    struct raw_reply reply;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fixture_call(&fixture, "GET", "/v1/orders/1", "", "", &reply), 200);
        raw_free(&reply);
    }
    assert_int_equal(fixture_metric(&fixture, line), (before < 0 ? 0 : before) + 3);
    assert_int_equal(fixture_metric(&fixture,
                                    "seckill_http_request_duration_seconds_bucket{method=\"GET\","
                                    "route=\"/v1/orders/{id}\",le=\"+Inf\"}"),
                     (before < 0 ? 0 : before) + 3);
    assert_true(fixture_metric(&fixture, "stub_submitted_total") > 0);
    assert_int_equal(fixture_metric(&fixture, "seckill_http_in_flight"), 0);
}
