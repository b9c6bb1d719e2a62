/* Many connections at once. libmicrohttpd's own epoll thread stalls if a multiple of 128
 * connections is busy; our loop must not. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_MS = 600000 }; /* a busy machine has served all connections by then */

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.config.connections = 12000;
    fixture.config.wait_ms = BUSY_MS;
    fixture.limits.read_ms = fixture.limits.whole_ms = BUSY_MS;
    fixture.limits.idle_ms = fixture.limits.send_ms = BUSY_MS;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int *connect_all(int n)
{
    int *fds = calloc((size_t)n, sizeof(*fds));
    assert_non_null(fds);
    for (int i = 0; i < n; i++) {
        fds[i] = raw_connect(fixture.port);
        assert_true(fds[i] >= 0);
    }
    return fds;
}

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
    free(fds);
}

static void expect_all(const int *fds, int n, int status)
{
    for (int i = 0; i < n; i++) {
        struct raw_reply reply;
        assert_int_equal(raw_read(fds[i], 0, RAW_WAIT_MS, &reply), status);
        raw_free(&reply);
    }
}

static const char request[] = "GET /livez HTTP/1.1\r\nHost: t\r\n\r\n";

/* Reads answers of `answer` bytes; have[i] counts the bytes so far. After a complete answer it
 * sends the next request on the connection. Returns the number of complete answers. */
static int read_and_send_again(int poller, const int *fds, size_t *have, size_t answer)
{
    struct epoll_event events[1024];
    char bytes[1024];
    int whole = 0;
    int ready = epoll_wait(poller, events, 1024, RAW_WAIT_MS);
    assert_true(ready > 0 && answer < sizeof(bytes));
    for (int e = 0; e < ready; e++) {
        const uint32_t i = events[e].data.u32;
        ssize_t got = recv(fds[i], bytes, answer - have[i], 0);
        assert_true(got > 0);
        have[i] += (size_t)got;
        if (have[i] < answer)
            continue;
        have[i] = 0;
        whole++;
        raw_send(fds[i], request, sizeof(request) - 1);
    }
    return whole;
}

/* Each connection sends its next request as soon as it has its answer, so all are always busy.
 * Returns the time per answer. */
static double answer_us(int n)
{
    enum { SPELLS = 10, ROUNDS = 5 };
    struct raw_reply reply;
    int *fds = connect_all(n);
    raw_send_text(fds[0], request);
    assert_int_equal(raw_read(fds[0], 0, RAW_WAIT_MS, &reply), 200);
    const size_t answer = strlen(reply.head) + reply.body_bytes; /* all have this length */
    raw_free(&reply);

    int poller = epoll_create1(EPOLL_CLOEXEC);
    size_t *have = calloc((size_t)n, sizeof(*have));
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        assert_int_equal(epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event), 0);
        raw_send(fds[i], request, sizeof(request) - 1);
    }
    double quickest_us = 1e9;
    for (int spell = 0; spell < SPELLS; spell++) {
        const int64_t began_us = now_us();
        for (int answers = 0; answers < ROUNDS * n;)
            answers += read_and_send_again(poller, fds, have, answer);
        const double us = (double)(now_us() - began_us) / (ROUNDS * n);
        quickest_us = us < quickest_us ? us : quickest_us;
    }
    free(have);
    close(poller);
    close_all(fds, n);
    return quickest_us;
}

GROUP_FIXTURE(start, fixture_tear_down);

/* A loop that stalls needs at least 500 us per answer with 128 connections, ten times more with
 * 256.
 */
TEST_THAT(full_batches_of_events_do_not_stall)
{
    static const int counts[] = {128, 129, 256, 512};
    const double unit_us = answer_us(127);
    printf("127 connections: %.1f us an answer\n", unit_us);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const double us = answer_us(counts[i]);
        printf("%d connections: %.1f us an answer\n", counts[i], us);
        assert_true(us < 6 * unit_us + 100);
    }
}

static bool all_held(void *arg)
{
    return stub_held(fixture.service) == *(int *)arg;
}

/* Waiting requests hold a connection but no thread. Other requests are served meanwhile. */
TEST_THAT(thousands_can_wait_for_the_service)
{
    int n = (int)test_size(1000, 9000);
    stub_mode(fixture.service, STUB_HOLD);
    int *fds = connect_all(n);
    for (int i = 0; i < n; i++)
        fixture_send(fds[i], "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    assert_true(wait_until(all_held, &n, BUSY_MS / 10));
    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/livez", "", "", &reply), 200);
    raw_free(&reply);
    assert_int_equal(fixture_metric(&fixture, "seckill_http_in_flight"), n);
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    expect_all(fds, n, 201);
    close_all(fds, n);
}

static bool none_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 1; /* this request's */
}

TEST_THAT(thousands_of_idle_connections_are_kept_and_forgotten)
{
    const int n = (int)test_size(1000, 9000);
    int *fds = connect_all(n);
    for (int i = 0; i < n; i++)
        fixture_send(fds[i], "GET", "/livez", NULL);
    expect_all(fds, n, 200);
    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/items/1", "", "", &reply), 200);
    raw_free(&reply);
    close_all(fds, n);
    assert_true(wait_until(none_open, NULL, RAW_WAIT_MS));
}

static bool hung_up(void *arg)
{
    return fixture_metric(&fixture, "seckill_http_abandoned_total") == *(long *)arg;
}

TEST_THAT(who_hangs_up_is_not_counted_as_refused)
{
    enum { GONE = 5 };
    const long refused = fixture_metric(&fixture, "seckill_http_refused_heads_total");
    long gone = fixture_metric(&fixture, "seckill_http_abandoned_total") + GONE;
    int *fds = connect_all(GONE);
    for (int i = 0; i < GONE; i++)
        raw_send_text(fds[i], "POST /v1/items/1/orders HTTP/1.1\r\nHost: x\r\n"
                              "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{");
    close_all(fds, GONE);
    assert_true(wait_until(hung_up, &gone, RAW_WAIT_MS));
    assert_int_equal(fixture_metric(&fixture, "seckill_http_refused_heads_total"), refused);

    struct raw_reply reply;
    assert_int_equal(fixture_ask(&fixture, "GET /livez HTTP/1.1\r\n\r\n", &reply), 400);
    raw_free(&reply);
    assert_int_equal(fixture_metric(&fixture, "seckill_http_refused_heads_total"), refused + 1);
    assert_true(hung_up(&gone));
}

TEST_THAT(descriptors_are_given_back)
{
    assert_true(wait_until(none_open, NULL, RAW_WAIT_MS));
    const int before = process_count_fds();
    for (int i = 0; i < 200; i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_call(&fixture, "GET", "/v1/items/1", "", "", &reply), 200);
        raw_free(&reply);
    }
    assert_true(wait_until(none_open, NULL, RAW_WAIT_MS));
    assert_in_range(process_count_fds(), before - 1, before + 1); /* a metrics request's */
}
