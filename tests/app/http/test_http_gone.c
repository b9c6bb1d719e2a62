/* A client that goes away while its request waits ends the request and its connection, and nobody
 * else's. */
#include "http_fixture.h"
#include "process.h"
#include "sse.h"
#include "tests.h"

#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 20 };

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.config.wait_ms = 600000;
    fixture_start(&fixture);
    stub_mode(fixture.service, STUB_QUEUE);
    *state = &fixture;
    return 0;
}

static bool all_held(void *arg)
{
    return stub_held(fixture.service) == *(const int *)arg;
}

static bool all_withdrawn(void *arg)
{
    return stub_withdrawn(fixture.service) == *(const int *)arg;
}

static bool one_in_flight(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_in_flight") == 1 &&
           fixture_metric(&fixture, "seckill_http_connections_open") == 2; /* and the question's */
}

/* The clients leave as `leave` does it; one stays. */
static void the_gone_are_withdrawn(const char *method, const char *path, const char *body,
                                   void (*leave)(int fd))
{
    int fds[CLIENTS], held = CLIENTS + 1, gone = CLIENTS;
    const int stays = raw_connect(fixture.port);
    fixture_send(stays, "POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}");
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = raw_connect(fixture.port);
        fixture_send(fds[i], method, path, body);
    }
    assert_true(wait_until(all_held, &held, RAW_WAIT_MS));
    for (int i = 0; i < CLIENTS; i++)
        leave(fds[i]);
    assert_true(wait_until(all_withdrawn, &gone, RAW_WAIT_MS));
    assert_true(wait_until(one_in_flight, NULL, RAW_WAIT_MS));
    assert_int_equal(stub_held(fixture.service), 1);

    struct raw_reply reply;
    stub_release(fixture.service);
    assert_int_equal(raw_read(stays, 0, RAW_WAIT_MS, &reply), 201);
    raw_free(&reply);
    close(stays);
}

static void leave_by_close(int fd)
{
    close(fd);
}

static void leave_by_reset(int fd)
{
    const struct linger none = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(fd);
}

static int half_closed[CLIENTS], n_half_closed;

static void leave_by_half(int fd)
{
    shutdown(fd, SHUT_WR);
    half_closed[n_half_closed++] = fd;
}

TEST_FIXTURE(start, fixture_tear_down);

TEST_THAT(a_client_that_closes_is_gone)
{
    the_gone_are_withdrawn("POST", "/v1/items/1/orders", "{\"user_id\":\"u1\"}", leave_by_close);
}

TEST_THAT(so_is_one_that_resets)
{
    the_gone_are_withdrawn("GET", "/v1/items/1", NULL, leave_by_reset);
}

TEST_THAT(and_one_that_sends_no_more)
{
    the_gone_are_withdrawn("GET", "/v1/audit", NULL, leave_by_half);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(raw_closed(half_closed[i], RAW_WAIT_MS));
        close(half_closed[i]);
    }
}

/* -- a client that has gone before its request is read -- */

static sem_t may_turn;
static atomic_bool is_to_stand, stands;

/* Called in each round of the service's loop. */
static void wait_for_leave(void)
{
    if (!atomic_load(&is_to_stand))
        return;
    atomic_store(&stands, true);
    sem_wait(&may_turn);
}

static bool loop_stands(void *arg)
{
    (void)arg;
    return atomic_load(&stands);
}

static int start_with_a_stop(void **state)
{
    static const struct extra_routes extra = {.tick = wait_for_leave};
    fixture_defaults(&fixture);
    fixture.extra = &extra;
    fixture_start(&fixture);
    sem_init(&may_turn, 0, 0);
    *state = &fixture;
    return 0;
}

static bool one_was_abandoned(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_abandoned_total") == 1;
}

/* All of it has arrived when the loop turns again. An audit costs so much that it is worth a look.
 */
TEST_THAT_WITH(an_audit_of_one_that_has_gone_is_not_begun, start_with_a_stop, fixture_tear_down)
{
    atomic_store(&is_to_stand, true);
    const int waker = raw_connect(fixture.port);
    assert_true(wait_until(loop_stands, NULL, RAW_WAIT_MS));
    const int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/v1/audit", NULL);
    close(fd);
    atomic_store(&is_to_stand, false);
    sem_post(&may_turn);
    assert_true(wait_until(one_was_abandoned, NULL, RAW_WAIT_MS));
    assert_int_equal(stub_submitted(fixture.service), 0);
    close(waker);
}

/* -- event streams -- */

static bool one_listens(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_events_listeners") == 1;
}

/* Who stays has listened longest, so that no heartbeat comes to the others before it has one. True
 * if the others are gone before. */
static bool gone_listeners_end_without_a_heartbeat(void)
{
    struct sse stays, gone[CLIENTS];
    assert_true(sse_open(&stays, fixture.port, "/v1/events", NULL, false));
    assert_true(sse_await(&stays, "event: hello", 1));
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(sse_open(&gone[i], fixture.port, "/v1/events", NULL, false));
        assert_true(sse_await(&gone[i], "event: hello", 1));
    }
    for (int i = 0; i < CLIENTS; i++)
        sse_close(&gone[i]);
    assert_true(wait_until(one_listens, NULL, RAW_WAIT_MS));
    sse_read(&stays, 100);
    const bool without = sse_count(&stays, "heartbeat") == 0;
    sse_close(&stays);
    return without;
}

/* A failed heartbeat ends a stream, too, but seconds later. On a machine so busy that a heartbeat
 * is due meanwhile, it is tried again. */
TEST_THAT(a_listener_that_has_gone_is_not_kept_until_a_heartbeat)
{
    bool without = false;
    for (int i = 0; i < 5 && !without; i++)
        without = gone_listeners_end_without_a_heartbeat();
    assert_true(without);
}

/* A client whose machine has vanished closes nothing. The kernel asks it for life; /proc/net/tcp
 * shows the timer (2: keepalive) of the service's end of the connection, which is established (01).
 */
static bool asks_for_life(void *arg)
{
    char line[256];
    unsigned local, remote, state, timer;
    bool asks = false;
    FILE *file = fopen("/proc/net/tcp", "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        asks = asks || (sscanf(line, " %*d: %*x:%x %*x:%x %x %*x:%*x %x", &local, &remote, &state,
                               &timer) == 4 &&
                        (int)local == fixture.port && (int)remote == *(const int *)arg &&
                        state == 1 && timer == 2);
    fclose(file);
    return asks;
}

TEST_THAT(one_that_vanishes_is_asked_for_life)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    const int fd = raw_connect(fixture.port);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    int port = ntohs(address.sin_port);
    fixture_send(fd, "GET", "/v1/audit", NULL);
    assert_true(wait_until(asks_for_life, &port, RAW_WAIT_MS));
    close(fd);
}
