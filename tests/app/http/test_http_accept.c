/* Connections that cannot be accepted at once: too many, or no file descriptor is left. */
#include "http_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONNECTIONS = 3, NOT_YET_MS = 300 };

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

static void who_comes_beyond_the_limit_waits_until_another_goes(void **state)
{
    (void)state;
    int fds[CONNECTIONS + 1];
    for (int i = 0; i <= CONNECTIONS; i++) {
        fds[i] = raw_connect(fixture.port);
        assert_true(fds[i] >= 0);
        fixture_send(fds[i], "GET", "/livez", NULL);
        if (i < CONNECTIONS)
            assert_int_equal(status_within(fds[i], RAW_WAIT_MS), 200);
    }
    assert_int_equal(status_within(fds[CONNECTIONS], NOT_YET_MS), -1);
    close(fds[0]);
    assert_int_equal(status_within(fds[CONNECTIONS], RAW_WAIT_MS), 200);
    for (int i = 1; i <= CONNECTIONS; i++)
        close(fds[i]);
}

/* The test's socket uses the last descriptor; the service is in the same process. */
static void without_a_descriptor_it_is_tried_again(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_descriptor_it_is_tried_again), /* first: no socket is closing */
        cmocka_unit_test(who_comes_beyond_the_limit_waits_until_another_goes),
    };
    return cmocka_run_group_tests(tests, start, fixture_tear_down);
}
