/* In which order new connections are served. The loop stands while they come. The service keeps the
 * requests of all but the one that matters: how many has it when that one is answered? */
#include "http_fixture.h"
#include "http_internal.h"
#include "process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { OTHERS = 60, PER_TURN = 16, SILENT = 1100 };

static struct fixture fixture;
static sem_t may_turn;
static atomic_bool is_to_stand, stands;
static atomic_long overtook_by; /* operations submitted when it had its answer; -1: not yet */

static bool any_answered(const struct http_metrics *metrics)
{
    for (size_t route = 0; route <= n_routes; route++)
        for (size_t status = 0; status < METRICS_STATUS_MAX; status++)
            if (metrics->requests[route][status] > 0)
                return true;
    return false;
}

/* Called at the end of each turn, by the loop. */
static void look(void)
{
    if (atomic_load(&overtook_by) < 0 && any_answered(&fixture.http->metrics))
        atomic_store(&overtook_by, stub_submitted(fixture.service));
    if (!atomic_load(&is_to_stand))
        return;
    atomic_store(&stands, true);
    sem_wait(&may_turn);
    atomic_store(&stands, false);
}

static int start_with(int64_t connections, void **state)
{
    static const struct extra_routes extra = {.tick = look};
    fixture_defaults(&fixture);
    fixture.extra = &extra;
    fixture.config.connections = connections;
    sem_init(&may_turn, 0, 0);
    atomic_store(&is_to_stand, false);
    atomic_store(&stands, false);
    atomic_store(&overtook_by, -1);
    fixture_start(&fixture);
    stub_mode(fixture.service, STUB_HOLD);
    *state = &fixture;
    return 0;
}

static int start(void **state)
{
    return start_with(1000, state);
}

static int start_small(void **state)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return start_with(3, state);
}

static bool loop_stands(void *arg)
{
    (void)arg;
    return atomic_load(&stands);
}

/* Returns a connection that has woken the loop for its last turn. */
static int stop_the_loop(void)
{
    atomic_store(&is_to_stand, true);
    const int waker = raw_connect(fixture.port);
    assert_true(wait_until(loop_stands, NULL, RAW_WAIT_MS));
    return waker;
}

static void let_it_turn(void)
{
    atomic_store(&is_to_stand, false);
    sem_post(&may_turn);
}

static int connect_from(const char *from)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)fixture.port)};
    struct sockaddr_in mine = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, from, &mine.sin_addr), 1);
    assert_int_equal(bind(fd, (const struct sockaddr *)&mine, sizeof(mine)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void answered(int fd, int status)
{
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), status);
    raw_free(&reply);
    close(fd);
}

static bool it_was_answered(void *arg)
{
    (void)arg;
    return atomic_load(&overtook_by) >= 0;
}

/* OTHERS connect and ask for an item, then the one that matters asks for path, from an address. */
static void last_is_not_least(const char *path, const char *from)
{
    int others[OTHERS];
    const int waker = stop_the_loop();
    for (int i = 0; i < OTHERS; i++) {
        others[i] = connect_from("127.0.0.1");
        fixture_send(others[i], "GET", "/v1/items/1", NULL);
    }
    const int fd = connect_from(from);
    fixture_send(fd, "GET", path, NULL);
    let_it_turn();
    assert_true(wait_until(it_was_answered, NULL, RAW_WAIT_MS));
    answered(fd, 200);
    assert_in_range(atomic_load(&overtook_by), 0, PER_TURN);
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    for (int i = 0; i < OTHERS; i++)
        answered(others[i], 200);
    close(waker);
}

static void a_question_for_liveness_overtakes_connections_that_wait(void **state)
{
    (void)state;
    last_is_not_least("/livez", "127.0.0.1");
}

static void an_address_waits_for_its_own_connections_only(void **state)
{
    (void)state;
    last_is_not_least("/openapi.json", "127.0.0.2");
}

static bool one_is_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 2; /* and the question's */
}

/* The last one has ended its sending side only, and reads its answer. */
static void clients_that_have_left_cost_little_and_are_not_served(void **state)
{
    (void)state;
    const int waker = stop_the_loop();
    for (int i = 0; i < OTHERS; i++) {
        const int fd = raw_connect(fixture.port);
        fixture_send(fd, "GET", "/v1/items/1", NULL);
        close(fd);
    }
    const int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/livez", NULL);
    shutdown(fd, SHUT_WR);
    let_it_turn();
    answered(fd, 200);
    assert_true(wait_until(one_is_open, NULL, RAW_WAIT_MS));
    assert_int_equal(stub_submitted(fixture.service), 0);
    assert_int_equal(fixture_metric(&fixture, "seckill_http_abandoned_total"), OTHERS);
    close(waker);
}

/* More of them than the door has room for: none of them holds up a client that asks something. */
static void silent_clients_beyond_the_room_at_the_door_give_way(void **state)
{
    (void)state;
    static int silent[SILENT];
    for (int i = 0; i < SILENT; i++) {
        silent[i] = raw_connect(fixture.port);
        assert_true(silent[i] >= 0);
    }
    int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/openapi.json", NULL);
    answered(fd, 200);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

static bool three_at_the_door(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 7; /* and the question's */
}

/* When all connections are taken, a silent client waits at the door, and is heard there. */
static void a_client_that_was_silent_at_the_door_is_heard(void **state)
{
    (void)state;
    int taken[3], silent[3];
    for (int i = 0; i < 3; i++) {
        taken[i] = raw_connect(fixture.port);
        fixture_send(taken[i], "GET", "/v1/items/1", NULL);
    }
    for (int i = 0; i < 3; i++)
        silent[i] = raw_connect(fixture.port);
    assert_true(wait_until(three_at_the_door, NULL, RAW_WAIT_MS));
    fixture_send(silent[1], "GET", "/openapi.json", NULL);
    answered(silent[1], 200);
    close(silent[0]);
    fixture_send(silent[2], "GET", "/livez", NULL);
    answered(silent[2], 200);
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    for (int i = 0; i < 3; i++)
        answered(taken[i], 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_question_for_liveness_overtakes_connections_that_wait,
                                        start, fixture_tear_down),
        cmocka_unit_test_setup_teardown(an_address_waits_for_its_own_connections_only, start,
                                        fixture_tear_down),
        cmocka_unit_test_setup_teardown(clients_that_have_left_cost_little_and_are_not_served,
                                        start, fixture_tear_down),
        cmocka_unit_test_setup_teardown(silent_clients_beyond_the_room_at_the_door_give_way,
                                        start_small, fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_was_silent_at_the_door_is_heard, start_small,
                                        fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
