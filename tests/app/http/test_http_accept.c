/* Connections that cannot be accepted at once: too many, or no file descriptor is left. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 3, BEYOND = CONNECTIONS + 32 /* accepted at most */, NOT_YET_MS = 300 };

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.config.connections = CONNECTIONS;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static int status_within(int fd, int64_t wait_ms)
{
    struct raw_reply reply;
    int status = raw_read(fd, 0, wait_ms, &reply);
    raw_free(&reply);
    return status;
}

static bool only_ours_is_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 1;
}

static bool all_are_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == CONNECTIONS + 1;
}

static int connect_and_ask(const char *from, const char *path)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)fixture.port)};
    struct sockaddr_in mine = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, from, &mine.sin_addr), 1);
    assert_int_equal(bind(fd, (const struct sockaddr *)&mine, sizeof(mine)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    fixture_send(fd, "GET", path, NULL);
    return fd;
}

GROUP_FIXTURE(start, fixture_tear_down);

/* Runs first, while no socket is closing. The test's socket uses the last descriptor; the service
 * is in the same process. */
TEST_THAT(without_a_descriptor_it_is_tried_again)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)fixture.port)};
    struct rlimit before, none;
    assert_true(fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int connected = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    fixture_send(fd, "GET", "/livez", NULL);
    int early = status_within(fd, NOT_YET_MS);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(connected, 0);
    assert_int_equal(early, -1);
    assert_int_equal(status_within(fd, RAW_WAIT_MS), 200);
    close(fd);
}

/* When all connections are taken, the one that was idle longest gives way. */
TEST_THAT(an_idle_connection_gives_way)
{
    int fds[CONNECTIONS + 2];
    for (int i = 0; i < CONNECTIONS + 2; i++) {
        fds[i] = raw_connect(fixture.port);
        fixture_send(fds[i], "GET", "/livez", NULL);
        assert_int_equal(status_within(fds[i], RAW_WAIT_MS), 200);
    }
    for (int i = 0; i < CONNECTIONS + 2; i++) {
        if (i < 2) {
            assert_true(raw_closed(fds[i], RAW_WAIT_MS));
        } else {
            fixture_send(fds[i], "GET", "/livez", NULL);
            assert_int_equal(status_within(fds[i], RAW_WAIT_MS), 200);
        }
    }
    for (int i = 0; i < CONNECTIONS + 2; i++)
        close(fds[i]);
    assert_true(wait_until(only_ours_is_open, NULL, RAW_WAIT_MS));
}

/* So does a request that does not arrive, of a second's age. */
TEST_THAT(a_dripping_request_gives_way)
{
    struct raw_reply reply;
    char header[64];
    int slow[CONNECTIONS + 1];
    for (int i = 0; i < CONNECTIONS; i++) {
        slow[i] = raw_connect(fixture.port);
        raw_send_text(slow[i], i == 0 ? "" : "GET /livez HTTP/1.1\r\nHost: t\r\n");
    }
    slow[CONNECTIONS] = raw_connect(fixture.port);
    fixture_send(slow[CONNECTIONS], "GET", "/livez", NULL);
    assert_int_equal(status_within(slow[CONNECTIONS], RAW_WAIT_MS), 200);
    close(slow[CONNECTIONS]);
    const int64_t began_ms = test_now_ms();
    slow[CONNECTIONS] = raw_connect(fixture.port); /* it says nothing: the oldest goes, then it */
    assert_int_equal(raw_read(slow[0], 0, RAW_WAIT_MS, &reply), 503);
    assert_true(test_now_ms() - began_ms < 10000); /* not by its own limit */
    assert_non_null(strstr(reply.body, "overloaded"));
    assert_non_null(strstr(reply.body, "not complete within 1000 ms"));
    assert_string_equal(raw_header(&reply, "Retry-After", header, sizeof(header)), "1");
    raw_free(&reply);
    assert_true(raw_closed(slow[0], RAW_WAIT_MS));
    for (int i = 1; i < CONNECTIONS; i++) {
        raw_send_text(slow[i], "\r\n");
        assert_int_equal(status_within(slow[i], RAW_WAIT_MS), 200);
    }
    for (int i = 0; i <= CONNECTIONS; i++)
        close(slow[i]);
    assert_true(wait_until(only_ours_is_open, NULL, RAW_WAIT_MS));
}

static bool is_past(void *until_ms)
{
    return test_now_ms() > *(const int64_t *)until_ms;
}

/* A client that has sent nothing loses less than one that may be about to ask again. */
TEST_THAT(a_silent_connection_gives_way_before_an_idle_one)
{
    int silent[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        silent[i] = raw_connect(fixture.port);
    assert_true(wait_until(all_are_open, NULL, RAW_WAIT_MS));
    int64_t until_ms = test_now_ms() + 1000;
    assert_true(wait_until(is_past, &until_ms, RAW_WAIT_MS));
    int kept = raw_connect(fixture.port);
    for (int i = 0; i < 2; i++) {
        fixture_send(kept, "GET", "/livez", NULL);
        assert_int_equal(status_within(kept, RAW_WAIT_MS), 200);
    }
    assert_int_equal(status_within(silent[0], RAW_WAIT_MS), 503);
    fixture_send(kept, "GET", "/livez", NULL);
    assert_int_equal(status_within(kept, RAW_WAIT_MS), 200);
    for (int i = 0; i < CONNECTIONS; i++)
        close(silent[i]);
    close(kept);
    assert_true(wait_until(only_ours_is_open, NULL, RAW_WAIT_MS));
}

static bool all_held(void *arg)
{
    return stub_held(fixture.service) == *(const int *)arg;
}

/* Requests that wait for the service do not. A few more are let in, then others wait, but for
 * questions for liveness. */
TEST_THAT(waiting_requests_keep_their_connections)
{
    int fds[BEYOND], held = BEYOND;
    stub_mode(fixture.service, STUB_HOLD);
    for (int i = 0; i < BEYOND; i++) {
        fds[i] = raw_connect(fixture.port);
        fixture_send(fds[i], "GET", "/v1/items/1", NULL);
    }
    assert_true(wait_until(all_held, &held, RAW_WAIT_MS));
    int next = raw_connect(fixture.port);
    fixture_send(next, "GET", "/v1/items/1", NULL);
    const int probe = raw_connect(fixture.port);
    fixture_send(probe, "GET", "/livez", NULL);
    assert_int_equal(status_within(probe, RAW_WAIT_MS), 200);
    close(probe);
    assert_int_equal(status_within(next, NOT_YET_MS), -1);
    assert_int_equal(stub_held(fixture.service), held);
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    for (int i = 0; i < BEYOND; i++) {
        assert_int_equal(status_within(fds[i], RAW_WAIT_MS), 200);
        close(fds[i]);
    }
    assert_int_equal(status_within(next, RAW_WAIT_MS), 200);
    close(next);
}

static bool is_let_in(void *from)
{
    int fd = connect_and_ask(from, "/livez");
    bool let_in = status_within(fd, RAW_WAIT_MS) == 200;
    close(fd);
    return let_in;
}

static int start_per_address(void **state)
{
    fixture_defaults(&fixture);
    fixture.config.connections_per_address = CONNECTIONS;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

TEST_GROUP("per_address", start_per_address, fixture_tear_down);

TEST_THAT(an_address_has_so_many_and_others_do_not_feel_it)
{
    int fds[CONNECTIONS], more;
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = connect_and_ask("127.0.0.2", "/livez");
        assert_int_equal(status_within(fds[i], RAW_WAIT_MS), 200);
    }
    for (int i = 0; i < 3; i++) {
        more = connect_and_ask("127.0.0.2", "/livez");
        assert_true(raw_closed(more, RAW_WAIT_MS));
        close(more);
    }
    assert_int_equal(fixture_metric(&fixture, "seckill_http_refused_connections_total"), 3);
    more = connect_and_ask("127.0.0.3", "/livez");
    assert_int_equal(status_within(more, RAW_WAIT_MS), 200);
    close(more);

    close(fds[0]); /* its place is free again */
    assert_true(wait_until(is_let_in, "127.0.0.2", RAW_WAIT_MS));
    for (int i = 1; i < CONNECTIONS; i++)
        close(fds[i]);
}
