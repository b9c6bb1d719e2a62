/* All connections are taken: who waits at the door, who gives way there, and how long. */
#include "door_rig.h"

#include <sys/resource.h>

enum {
    TAKEN = 3,          /* --connections */
    BEYOND = 32,        /* let in beyond, but for probes */
    ALL = TAKEN + 1024, /* accepted */
    MANY = ALL + 73,
    SPEAKS_LATE = MANY - 180, /* accepted before the door is full */
    READ_MS = 500,
    ACCEPTED_MS = 600000, /* a busy machine accepts all of them by then */
    LONG_BODY = 15000
};

/* What the service has stays there. */
static int start_small(void **state)
{
    struct rlimit limit;
    fixture_defaults(&fixture);
    fixture.limits.grace_ms = -1;
    fixture.limits.read_ms = fixture.limits.whole_ms = ACCEPTED_MS;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return start_with(TAKEN, state);
}

static int start_impatient(void **state)
{
    fixture_defaults(&fixture);
    fixture.config.wait_ms = 0;
    fixture.limits.grace_ms = READ_MS;
    return start_with(TAKEN, state);
}

static int start_fast(void **state)
{
    fixture_defaults(&fixture);
    fixture.limits.grace_ms = -1;
    fixture.limits.read_ms = READ_MS;
    return start_with(TAKEN, state);
}

/* Reads a 503 whose detail has this text, and the end: a reset could cost other clients the answer.
 */
static void turned_away(int fd, const char *why)
{
    struct raw_reply reply;
    char byte;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    assert_non_null(strstr(reply.body, why));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    raw_free(&reply);
    close(fd);
}

/* More of them than the door has room for: none of them holds up a client that asks something. */
TEST_THAT_WITH(silent_clients_beyond_the_room_at_the_door_give_way, start_small, fixture_tear_down)
{
    static int silent[MANY];
    const int waker = stop_the_loop();
    for (int i = 0; i < MANY; i++) {
        silent[i] = raw_connect(fixture.port);
        assert_true(silent[i] >= 0);
    }
    let_it_turn();
    turned_away(silent[0], "and this one is silent");
    int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/openapi.json", NULL);
    answered(fd, 200);
    for (int i = 1; i < MANY; i++)
        close(silent[i]);
    close(waker);
}

static bool all_are_in(void *arg)
{
    (void)arg;
    return stub_submitted(fixture.service) == TAKEN + BEYOND;
}

static bool gave_way(void *n)
{
    return atomic_load(&n_gave_way) == *(const long *)n;
}

static void is_alive(void)
{
    const int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/livez", NULL);
    answered(fd, 200);
}

/* The lines are full. The last of the longest gives way, so other addresses keep their places. */
TEST_THAT_WITH(lines_that_are_full_hold_up_no_question_for_liveness, start_small, fixture_tear_down)
{
    static int fds[MANY];
    long n = MANY + 1 - ALL;
    const int first = stop_the_loop();
    int silent = -1;
    fixture_send(first, "GET", "/v1/items/1", NULL);
    for (int i = 1; i < MANY; i++) {
        fds[i] = raw_connect(fixture.port);
        assert_true(fds[i] >= 0);
        if (i == SPEAKS_LATE)
            silent = fds[i];
        else
            fixture_send(fds[i], "GET", "/v1/items/1", NULL);
    }
    fds[0] = raw_connect(fixture.port);
    fixture_send(fds[0], "GET", "/v1/items/1", NULL);
    let_it_turn();
    assert_true(wait_until(gave_way, &n, RAW_WAIT_MS));
    fixture_send(silent, "GET", "/livez", NULL);
    answered(silent, 200);
    assert_in_range(atomic_load(&n_gave_way), n, n + 1); /* then idle, it gives way */
    const int others[] = {connect_from("127.0.0.2"), connect_from("127.0.0.3")};
    for (int i = 0; i < 2; i++)
        fixture_send(others[i], "GET", "/v1/items/1", NULL);
    is_alive();
    int more[3];
    for (int i = 0; i < 3; i++) {
        more[i] = raw_connect(fixture.port);
        fixture_send(more[i], "GET", "/v1/items/1", NULL);
    }
    is_alive();
    turned_away(fds[0], "too many wait");
    assert_true(all_are_in(NULL));
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    answered(first, 200);
    for (int i = 0; i < 2; i++)
        answered(others[i], 200);
    for (int i = 0; i < 3; i++)
        close(more[i]);
    for (int i = 1; i < MANY; i++)
        if (fds[i] != silent)
            close(fds[i]);
}

TEST_THAT_WITH(what_waits_at_the_door_for_too_long_is_answered, start_impatient, fixture_tear_down)
{
    static const char began[] = "HTTP/1.1 200";
    int streams[TAKEN + BEYOND];
    char head[sizeof(began) - 1];
    for (int i = 0; i < TAKEN + BEYOND; i++) {
        streams[i] = raw_connect(fixture.port);
        fixture_send(streams[i], "GET", "/v1/events", NULL);
        assert_int_equal(recv(streams[i], head, sizeof(head), MSG_WAITALL), sizeof(head));
        assert_memory_equal(head, began, sizeof(head));
    }
    const int waits = raw_connect(fixture.port), left = raw_connect(fixture.port);
    fixture_send(waits, "GET", "/v1/items/1", NULL);
    fixture_send(left, "GET", "/v1/items/1", NULL);
    shutdown(left, SHUT_WR);
    turned_away(waits, "taken for too long");
    turned_away(left, "taken for too long");
    for (int i = 0; i < TAKEN + BEYOND; i++)
        close(streams[i]);
}

/* The silent client comes later, and its time is over when that of the other would be. */
TEST_THAT_WITH(time_at_the_door_is_not_that_of_the_request, start_fast, fixture_tear_down)
{
    static char body[LONG_BODY + 1];
    int others[TAKEN + BEYOND];
    for (int i = 0; i < TAKEN + BEYOND; i++) {
        others[i] = raw_connect(fixture.port);
        fixture_send(others[i], "GET", "/v1/items/1", NULL);
    }
    assert_true(wait_until(all_are_in, NULL, RAW_WAIT_MS));
    snprintf(body, sizeof(body), "%*s", LONG_BODY, "{\"user_id\":\"u1\"}");
    const int fd = raw_connect(fixture.port);
    raw_send_text(fd, "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\nIdempotency-Key: k\r\n"
                      "Content-Type: application/json\r\nContent-Length: 15000\r\n\r\n");
    raw_send_text(fd, body);
    const int silent = raw_connect(fixture.port);
    answered(silent, 408);
    stub_mode(fixture.service, STUB_ANSWER);
    stub_release(fixture.service);
    answered(fd, 201);
    for (int i = 0; i < TAKEN + BEYOND; i++)
        close(others[i]);
}

static bool three_at_the_door(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 7; /* and the question's */
}

/* When all connections are taken, a silent client waits at the door, and is heard there. */
TEST_THAT_WITH(a_client_that_was_silent_at_the_door_is_heard, start_small, fixture_tear_down)
{
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
