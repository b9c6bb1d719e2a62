/* GET /v1/events: how many listen, how much they are told, and when a stream ends. */
#include "events_rig.h"

TEST_FIXTURE(start, fixture_tear_down);

TEST_THAT(a_slow_reader_is_cut_off_and_counted_others_hear_all)
{
    enum { ROUND = 500, ROUNDS_MAX = 400 };
    struct sse slow, good;
    struct op op;
    size_t passed = 0;
    assert_true(sse_open(&slow, fixture.port, "/v1/events", NULL, true));
    listen_to(&good, "/v1/events", NULL);
    op_pass(order(&op, "1", "flood"), OP_SUBMITTED);
    assert_true(op.noted != 0);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        for (int k = 0; k < ROUND; k++)
            op_pass(&op, OP_WAITING);
        passed += ROUND;
        assert_true(sse_await(&good, "\"point\":\"waiting\"", passed));
        if (fixture_metric(&fixture, "seckill_events_dropped_readers_total") == 1)
            break;
    }
    assert_int_equal(fixture_metric(&fixture, "seckill_events_dropped_readers_total"), 1);
    assert_int_equal(fixture_metric(&fixture, "seckill_events_listeners"), 1);
    assert_true(raw_closed(slow.fd, RAW_WAIT_MS));
    json_t *events = sse_events(&good);
    assert_int_equal(json_array_size(events), passed + 1);
    json_decref(events);
    sse_close(&slow);
    sse_close(&good);
}

static bool one_was_dropped(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_events_dropped_readers_total") == 1;
}

/* What it has not taken fits the ring, so that the ring does not overtake it. */
TEST_THAT(a_listener_that_takes_nothing_is_cut_off)
{
    enum { EVENTS = HTTP_EVENTS_KEPT - 1000, ROUND = 500, SEND_MS = 500 };
    struct sse slow, good;
    struct op op;
    fixture_stop(&fixture);
    fixture.limits.send_ms = SEND_MS;
    fixture_start(&fixture);
    assert_true(sse_open(&slow, fixture.port, "/v1/events", NULL, true));
    listen_to(&good, "/v1/events", NULL);
    op_pass(order(&op, "1", "flood"), OP_SUBMITTED);
    for (int i = 0; i < EVENTS; i += ROUND) {
        for (int k = 0; k < ROUND; k++)
            op_pass(&op, OP_WAITING);
        assert_true(sse_await(&good, "\"point\":\"waiting\"", (size_t)(i + ROUND)));
    }
    assert_true(wait_until(one_was_dropped, NULL, RAW_WAIT_MS)); /* it does not read yet */
    assert_true(raw_closed(slow.fd, RAW_WAIT_MS));
    assert_int_equal(fixture_metric(&fixture, "seckill_events_listeners"), 1);
    pass_all(order(&op, "1", "k"), 5); /* the other one goes on */
    assert_true(sse_await(&good, "\"point\":\"released\"", 1));
    sse_close(&slow);
    sse_close(&good);
}

TEST_THAT(as_many_listeners_as_allowed_hear_the_same_and_no_more)
{
    static struct sse all[HTTP_EVENTS_LISTENERS_MAX];
    struct op op;
    for (int i = 0; i < HTTP_EVENTS_LISTENERS_MAX; i++)
        listen_to(&all[i], "/v1/events", NULL);
    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/events", "", "", &reply), 503);
    raw_free(&reply);
    for (int i = 0; i < 5; i++)
        pass_all(order(&op, "1", "k"), 5 - i);
    for (int i = 0; i < HTTP_EVENTS_LISTENERS_MAX; i++) {
        assert_true(sse_await(&all[i], "\"point\":\"released\"", 5));
        json_t *events = sse_events(&all[i]);
        assert_int_equal(json_array_size(events), 40);
        json_decref(events);
    }
    for (int i = 0; i < HTTP_EVENTS_LISTENERS_MAX; i++)
        sse_close(&all[i]);
    pass_all(order(&op, "1", "k"), 5); /* a failed send shows that the listeners are gone */
    assert_true(wait_until(nobody_listens, NULL, RAW_WAIT_MS));
}

TEST_THAT(operations_beyond_the_ration_are_left_out_whole_and_said)
{
    enum { OPS = 3 * EVENTS_OPS_BURST, PER_S = 20 }; /* slower than any machine */
    static struct op ops[OPS];
    struct sse sse;
    size_t noted = 0;
    listen_to(&sse, "/v1/events", NULL);
    events_listen(EVENTS_SENT_PER_S / PER_S, now_us()); /* the ration of so many listeners */
    for (int i = 0; i < OPS; i++) {
        op_pass(order(&ops[i], "many", "k"), OP_SUBMITTED);
        noted += ops[i].noted != 0;
    }
    for (int i = 0; i < OPS; i++)
        op_pass(&ops[i], OP_RELEASED);
    assert_in_range(noted, 1, OPS - 1);
    assert_true(sse_await(&sse, "\"point\":\"released\"", noted));
    assert_true(sse_await(&sse, "event: limits", 1));
    json_t *events = sse_events(&sse);
    assert_int_equal(json_array_size(events), 2 * noted);
    json_decref(events);
    sse_close(&sse);
}

TEST_THAT(an_audience_shares_one_ration)
{
    enum { AUDIENCE = 120 };
    static struct sse all[AUDIENCE];
    static struct op ops[EVENTS_OPS_BURST];
    size_t noted = 1;
    for (int i = 0; i < AUDIENCE; i++)
        listen_to(&all[i], "/v1/events", NULL);
    const int64_t begun_us = now_us();
    do /* the previous test may have used up the ration */
        op_pass(order(&ops[0], "many", "k"), OP_SUBMITTED);
    while (ops[0].noted == 0);
    for (int i = 1; i < EVENTS_OPS_BURST; i++) {
        op_pass(order(&ops[i], "many", "k"), OP_SUBMITTED);
        noted += ops[i].noted != 0;
    }
    const int64_t took_us = now_us() - begun_us, per_s = EVENTS_SENT_PER_S / AUDIENCE;
    assert_true((int64_t)noted <= per_s / 2 + took_us * per_s / 1000000 + 1);
    for (int i = 0; i < AUDIENCE; i++) {
        assert_true(sse_await(&all[i], "\"point\":\"submitted\"", noted));
        sse_close(&all[i]);
    }
}

TEST_THAT(draining_ends_the_streams_also_of_who_does_not_read)
{
    struct sse reads, stuck;
    struct op op;
    listen_to(&reads, "/v1/events", NULL);
    assert_true(sse_open(&stuck, fixture.port, "/v1/events", NULL, true));
    op_pass(order(&op, "1", "flood"), OP_SUBMITTED);
    for (int i = 0; i < 4000; i++) /* more than the socket buffers hold, less than is kept */
        op_pass(&op, OP_WAITING);
    assert_true(sse_await(&reads, "\"point\":\"waiting\"", 4000));
    const int64_t begun_ms = test_now_ms();
    http_drain(fixture.http);
    assert_true(http_drained(fixture.http, RAW_WAIT_MS));
    assert_true(test_now_ms() - begun_ms < RAW_WAIT_MS / 2);
    sse_await(&reads, "never sent", 1);
    assert_true(reads.ended);
    sse_close(&reads);
    sse_close(&stuck);
}

TEST_THAT_WITH(stopping_with_streams_open_ends_them, NULL, NULL)
{
    struct sse sse;
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    listen_to(&sse, "/v1/events", NULL);
    fixture_stop(&fixture);
    sse_await(&sse, "never sent", 1);
    assert_true(sse.ended);
    sse_close(&sse);
}
