/* No client may hold a connection, and no request may wait, beyond its limit. The limits are
 * shortened for the test. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_MS = 600,
    IDLE_MS = 900,
    SEND_MS = 700,
    GRACE_MS = 200,
    AUDIT_MS = 1500,
    WAIT_MS = 500,
    SLACK_MS = 3000
};

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.limits = (struct http_limits){.read_ms = READ_MS,
                                          .whole_ms = READ_MS,
                                          .idle_ms = IDLE_MS,
                                          .send_ms = SEND_MS,
                                          .grace_ms = GRACE_MS,
                                          .audit_ms = AUDIT_MS};
    fixture.config.wait_ms = WAIT_MS;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static void took(int64_t began_ms, int64_t at_least_ms)
{
    const int64_t ms = test_now_ms() - began_ms;
    assert_true(ms >= at_least_ms - 1); /* both clocks are rounded down to milliseconds */
    assert_true(ms < at_least_ms + SLACK_MS);
}

/* Sends text byte by byte until there is an answer; waits 20 ms for it after each byte. */
static int drip(int fd, const char *text, struct raw_reply *reply)
{
    for (const char *c = text; *c != '\0'; c++) {
        raw_send(fd, c, 1);
        int status = raw_read(fd, 0, 20, reply);
        if (status != -1)
            return status;
        raw_free(reply);
    }
    return raw_read(fd, 0, RAW_WAIT_MS, reply);
}

GROUP_FIXTURE(start, fixture_tear_down);

TEST_THAT(dripped_heads_are_408)
{
    const int64_t began_ms = test_now_ms();
    int fd = raw_connect(fixture.port);
    struct raw_reply reply;
    char header[64];
    assert_int_equal(
        drip(fd, "GET /livez HTTP/1.1\r\nHost: t\r\nA: 0123456789012345678901234567890", &reply),
        408);
    took(began_ms, READ_MS);
    assert_string_equal(raw_header(&reply, "Connection", header, sizeof(header)), "close");
    assert_non_null(strstr(reply.body, "request-timeout"));
    assert_true(raw_closed(fd, RAW_WAIT_MS));
    raw_free(&reply);
    close(fd);
}

TEST_THAT(dripped_bodies_are_408)
{
    int fd = raw_connect(fixture.port);
    const int64_t began_ms = test_now_ms();
    raw_send_text(fd, "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\nIdempotency-Key: k\r\n"
                      "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n");
    struct raw_reply reply;
    assert_int_equal(
        drip(fd, "{                                                              ", &reply), 408);
    took(began_ms, READ_MS);
    assert_true(raw_closed(fd, RAW_WAIT_MS));
    raw_free(&reply);
    close(fd);
}

TEST_THAT(silent_connections_are_shut)
{
    const int64_t began_ms = test_now_ms();
    int fd = raw_connect(fixture.port);
    assert_true(raw_closed(fd, RAW_WAIT_MS));
    took(began_ms, READ_MS);
    close(fd);
}

TEST_THAT(idle_kept_connections_are_shut)
{
    int fd = raw_connect(fixture.port);
    struct raw_reply reply;
    fixture_send(fd, "GET", "/livez", NULL);
    const int64_t began_ms = test_now_ms();
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
    assert_true(raw_closed(fd, RAW_WAIT_MS));
    took(began_ms, IDLE_MS);
    raw_free(&reply);
    close(fd);
}

/* A later request has a new deadline, although the connection is older. */
TEST_THAT(each_request_has_its_own_deadline)
{
    int fd = raw_connect(fixture.port);
    const int64_t began_ms = test_now_ms();
    for (int i = 0; i < 4; i++) {
        struct raw_reply reply;
        raw_send_text(fd, "GET /livez HTTP/1.1\r\n");
        assert_int_equal(raw_read(fd, 0, READ_MS / 3, &reply),
                         -1); /* not before the head is complete */
        raw_send_text(fd, "Host: t\r\n\r\n");
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
        raw_free(&reply);
    }
    assert_true(test_now_ms() - began_ms > READ_MS);
    close(fd);
}

TEST_THAT(clients_that_do_not_read_are_shut)
{
    const long before = fixture_metric(&fixture, "seckill_http_timeouts_total");
    int fd = raw_connect(fixture.port);
    const int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int i = 0; i < 40; i++) /* 12 MB of answers: more than the buffers between us hold */
        fixture_send(fd, "GET", "/v1/guards", NULL);
    const int64_t until_ms = test_now_ms() + RAW_WAIT_MS;
    while (fixture_metric(&fixture, "seckill_http_timeouts_total") == before)
        assert_true(test_now_ms() < until_ms);
    close(fd);
}

static bool nothing_in_flight(void *arg)
{
    return fixture_metric(arg, "seckill_http_in_flight") == 0;
}

static void let_all_end(void)
{
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    assert_true(wait_until(nothing_in_flight, &fixture, RAW_WAIT_MS));
}

TEST_THAT(operations_that_take_too_long_are_answered_503)
{
    stub_mode(fixture.service, STUB_HOLD);
    int fd = raw_connect(fixture.port);
    const int64_t began_ms = test_now_ms();
    struct raw_reply reply;
    char header[64];
    fixture_send(fd, "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    took(began_ms, WAIT_MS + GRACE_MS);
    assert_non_null(strstr(reply.body, "unavailable"));
    assert_string_equal(raw_header(&reply, "Retry-After", header, sizeof(header)), "1");
    raw_free(&reply);
    assert_int_equal(fixture_metric(&fixture, "seckill_http_in_flight"), 1);

    /* the late answer is discarded: the next request on this connection gets its own answer */
    let_all_end();
    fixture_send(fd, "GET", "/v1/items/mine", NULL);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
    assert_non_null(strstr(reply.body, "\"id\":\"mine\""));
    raw_free(&reply);
    close(fd);
}

/* Each write may still happen after the timeout. */
TEST_THAT(of_a_write_that_takes_too_long_the_outcome_is_unknown)
{
    static const struct {
        const char *method, *path, *body;
    } writes[] = {{"POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}"},
                  {"PUT", "/v1/items/1", "{\"stock\":1,\"price\":1}"},
                  {"PUT", "/v1/accounts/1", "{\"balance\":1}"}};
    stub_mode(fixture.service, STUB_HOLD);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        int fd = raw_connect(fixture.port);
        struct raw_reply reply;
        fixture_send(fd, writes[i].method, writes[i].path, writes[i].body);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
        assert_non_null(strstr(reply.body, "the outcome is unknown"));
        bool has_key = strcmp(writes[i].method, "POST") == 0;
        assert_int_equal(strstr(reply.body, "with the same key") != NULL, has_key);
        raw_free(&reply);
        close(fd);
    }
    let_all_end();
}

TEST_THAT(an_audit_may_take_longer_than_an_order)
{
    stub_mode(fixture.service, STUB_HOLD);
    int fd = raw_connect(fixture.port);
    const int64_t began_ms = test_now_ms();
    struct raw_reply reply;
    fixture_send(fd, "GET", "/v1/audit", NULL);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    took(began_ms, AUDIT_MS);
    assert_non_null(strstr(reply.body, "nothing was changed"));
    raw_free(&reply);
    close(fd);
    let_all_end();
}

TEST_THAT(clients_that_vanish_while_waiting_cost_nothing)
{
    enum { CLIENTS = 20 };
    stub_mode(fixture.service, STUB_HOLD);
    const long before = stub_submitted(fixture.service);
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = raw_connect(fixture.port);
        fixture_send(fds[i], "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    }
    while (stub_submitted(fixture.service) < before + CLIENTS)
        usleep(1000);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    let_all_end();
    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/items/1", "", "", &reply), 200);
    raw_free(&reply);
}
