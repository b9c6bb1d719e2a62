/* In which order new connections are served. The loop stands while they come. The service keeps the
 * requests of all but the one that matters: how many has it when that one is answered? */
#include "door_rig.h"

enum { OTHERS = 60, PER_TURN = 16 };

static int start(void **state)
{
    fixture_defaults(&fixture);
    return start_with(1000, state);
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

TEST_FIXTURE(start, fixture_tear_down);

TEST_THAT(a_question_for_liveness_overtakes_connections_that_wait)
{
    last_is_not_least("/livez", "127.0.0.1");
}

/* OTHERS send half a question. They wait with their address, and the whole one overtakes them. */
static void half_overtakes_nothing(const char *half)
{
    int others[OTHERS];
    const int waker = stop_the_loop();
    for (int i = 0; i < OTHERS; i++) {
        others[i] = raw_connect(fixture.port);
        raw_send_text(others[i], half);
    }
    const int fd = raw_connect(fixture.port);
    fixture_send(fd, "GET", "/livez", NULL);
    let_it_turn();
    answered(fd, 200);
    assert_true(wait_until(it_was_answered, NULL, RAW_WAIT_MS));
    assert_in_range(atomic_load(&inside), 1, 2 * PER_TURN);
    for (int i = 0; i < OTHERS; i++)
        close(others[i]);
    close(waker);
}

TEST_THAT(a_question_for_liveness_without_its_end_overtakes_nothing)
{
    half_overtakes_nothing("GET /livez HTTP/1.1\r\nHost: t\r\n");
}

TEST_THAT(a_question_for_liveness_without_its_body_overtakes_nothing)
{
    half_overtakes_nothing("GET /livez HTTP/1.1\r\nHost: t\r\ncontent-Length: 1\r\n\r\n");
}

TEST_THAT(a_question_for_liveness_without_its_chunks_overtakes_nothing)
{
    half_overtakes_nothing("GET /readyz HTTP/1.1\r\nHost: t\r\nTransfer-encoding: chunked\r\n\r\n");
}

TEST_THAT(an_address_waits_for_its_own_connections_only)
{
    last_is_not_least("/openapi.json", "127.0.0.2");
}

static bool one_is_open(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_http_connections_open") == 2; /* and the question's */
}

/* The last one has ended its sending side only, and reads its answer. */
TEST_THAT(clients_that_have_left_cost_little_and_are_not_served)
{
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
