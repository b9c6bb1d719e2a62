/* Shutdown of the HTTP side: accepted requests are answered, and nothing else delays it. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRAIN_MS = 20000 };

static struct fixture fixture;

static int start(void **state)
{
    (void)state;
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    return 0;
}

static bool refuses_connections(void *arg)
{
    (void)arg;
    int fd = raw_connect(fixture.port);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static bool one_held(void *arg)
{
    (void)arg;
    return stub_held(fixture.service) == 1;
}

TEST_FIXTURE(start, NULL);

TEST_THAT(accepted_operations_are_answered_idle_connections_closed)
{
    struct raw_reply reply;
    char header[64];
    stub_mode(fixture.service, STUB_HOLD);
    int idle = raw_connect(fixture.port), waiting = raw_connect(fixture.port),
        half = raw_connect(fixture.port);
    fixture_send(idle, "GET", "/livez", NULL);
    assert_int_equal(raw_read(idle, 0, RAW_WAIT_MS, &reply), 200);
    raw_free(&reply);
    raw_send_text(half, "GET /readyz HTTP/1.1\r\nHost: t\r\n");
    fixture_send(waiting, "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    assert_true(wait_until(one_held, NULL, RAW_WAIT_MS));

    http_drain(fixture.http);
    assert_true(raw_closed(idle, RAW_WAIT_MS));
    assert_true(wait_until(refuses_connections, NULL, RAW_WAIT_MS));
    assert_false(http_drained(fixture.http, 1));

    raw_send_text(half, "\r\n"); /* it began before the drain, so it is answered: not ready */
    assert_int_equal(raw_read(half, 0, RAW_WAIT_MS, &reply), 503);
    assert_non_null(strstr(reply.body, "draining"));
    assert_true(raw_closed(half, RAW_WAIT_MS));
    raw_free(&reply);

    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    assert_int_equal(raw_read(waiting, 0, RAW_WAIT_MS, &reply), 201);
    assert_string_equal(raw_header(&reply, "Connection", header, sizeof(header)), "close");
    assert_true(raw_closed(waiting, RAW_WAIT_MS));
    raw_free(&reply);
    assert_true(service_drain(fixture.service, DRAIN_MS));
    assert_true(http_drained(fixture.http, DRAIN_MS));
    close(idle);
    close(half);
    close(waiting);
    fixture_stop(&fixture);
}

TEST_THAT(draining_without_connections_ends_at_once)
{
    http_drain(fixture.http);
    assert_true(http_drained(fixture.http, DRAIN_MS));
    fixture_stop(&fixture);
}

/* Shutdown does not wait for ever for the service; the open requests are answered so. */
TEST_THAT(stop_answers_what_the_service_has_not)
{
    stub_mode(fixture.service, STUB_HOLD);
    int fd = raw_connect(fixture.port);
    fixture_send(fd, "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    assert_true(wait_until(one_held, NULL, RAW_WAIT_MS));
    http_stop(fixture.http);
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    assert_non_null(strstr(reply.body, "unavailable"));
    raw_free(&reply);
    close(fd);
    service_close(fixture.service); /* calls done() of the held operation */
    http_free(fixture.http);
}
