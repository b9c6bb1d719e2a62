/* GET /v1/events: every listener that reads fast enough gets all events in order. */
#include "answer.h"
#include "events.h"
#include "http_events.h"
#include "point.h"
#include "http_fixture.h"
#include "process.h"
#include "sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.events_show_keys = *state != NULL;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static void listen_to(struct sse *sse, const char *path, const char *last_id)
{
    assert_true(sse_open(sse, fixture.port, path, last_id, false));
    assert_true(sse_await(sse, "event: hello", 1));
}

static struct op *order(struct op *op, const char *item, const char *key)
{
    memset(op, 0, sizeof *op);
    op->kind = OP_PLACE_ORDER;
    op->amount = 1;
    strcpy(op->id, item);
    strcpy(op->key, key);
    return op;
}

static void pass_all(struct op *op, int64_t before)
{
    static const enum op_point way[] = {OP_SUBMITTED, OP_WAITING, OP_ACQUIRED,  OP_READ,
                                        OP_DECIDED,   OP_CHECKED, OP_COMMITTED, OP_RELEASED};
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        op->shown_value = way[i] <= OP_READ ? before : before - 1;
        op_pass(op, way[i]);
    }
}

static bool nobody_listens(void *arg)
{
    (void)arg;
    return fixture_metric(&fixture, "seckill_events_listeners") == 0;
}

static const char *text_of(json_t *event, const char *name)
{
    return json_string_value(json_object_get(event, name));
}

static int64_t number_of(json_t *event, const char *name)
{
    return json_integer_value(json_object_get(event, name));
}

/* -- claims ------------------------------------------------------------------------------------ */

/* Runs first, before any test has listened. */
static void without_listeners_nothing_is_noted(void **state)
{
    (void)state;
    struct op op;
    assert_false(events_wanted(now_us()));
    pass_all(order(&op, "quiet", "k"), 5);
    assert_int_equal(op.noted, 0);
    struct sse sse;
    listen_to(&sse, "/v1/events", NULL);
    pass_all(order(&op, "loud", "k"), 5);
    assert_true(sse_await(&sse, "\"point\":\"released\"", 1));
    assert_int_equal(sse_count(&sse, "quiet"), 0);
    sse_close(&sse);
}

static void points_come_in_the_order_in_which_they_were_passed(void **state)
{
    (void)state;
    static const char *const names[] = {"submitted", "waiting", "acquired",  "read",
                                        "decided",   "checked", "committed", "released"};
    struct sse sse;
    struct op op;
    listen_to(&sse, "/v1/events", NULL);
    pass_all(order(&op, "1", "say \"\\\""), 100);
    assert_true(sse_await(&sse, "\"point\":\"released\"", 1));
    json_t *events = sse_events(&sse);
    assert_int_equal(json_array_size(events), 8);
    for (size_t i = 0; i < 8; i++) {
        json_t *event = json_array_get(events, i), *before = json_array_get(events, i - 1);
        assert_string_equal(text_of(event, "point"), names[i]);
        assert_string_equal(text_of(event, "resource"), "item:1");
        assert_string_equal(text_of(event, "key"), "say \"\\\"");
        if (i > 0) {
            assert_int_equal(number_of(event, "id"), number_of(before, "id") + 1);
            assert_true(number_of(event, "t_us") >= number_of(before, "t_us"));
        }
    }
    assert_int_equal(number_of(json_array_get(events, 3), "value"), 100);
    assert_int_equal(number_of(json_array_get(events, 6), "value"), 99);
    assert_true(json_is_null(json_object_get(json_array_get(events, 2), "value")));
    json_decref(events);
    sse_close(&sse);
}

/* Anyone who knows a key can read its answer, or use the key first. */
static void idempotency_keys_are_for_lessons_only(void **state)
{
    (void)state;
    struct sse sse;
    struct op ops[2];
    listen_to(&sse, "/v1/events", NULL);
    for (int i = 0; i < 2; i++)
        pass_all(order(&ops[i], "1", "a-clients-own-secret"), 2 - i);
    assert_true(sse_await(&sse, "\"point\":\"released\"", 2));
    assert_int_equal(sse_count(&sse, "secret"), 0);
    json_t *events = sse_events(&sse);
    const char *first = text_of(json_array_get(events, 0), "key");
    for (size_t i = 0; i < 16; i++) { /* the points of one operation still have the same key */
        const char *key = text_of(json_array_get(events, i), "key");
        assert_int_equal(strcmp(key, first) == 0, i < 8);
    }
    json_decref(events);
    sse_close(&sse);
}

static void a_moment_is_one_message(void **state)
{
    (void)state;
    enum { OPS = 40 };
    struct sse sse;
    struct op op;
    listen_to(&sse, "/v1/events", NULL);
    for (int i = 0; i < OPS; i++)
        pass_all(order(&op, "1", "k"), OPS - i);
    assert_true(sse_await(&sse, "\"point\":\"released\"", OPS));
    assert_in_range(sse_count(&sse, "event: trace"), 1, OPS / 2);
    sse_close(&sse);
}

static void who_comes_back_with_the_last_id_misses_nothing(void **state)
{
    (void)state;
    struct sse sse;
    struct op op;
    char id[64];
    listen_to(&sse, "/v1/events", NULL);
    pass_all(order(&op, "1", "before"), 3);
    assert_true(sse_await(&sse, "\"point\":\"released\"", 1));
    sse_last_id(&sse, id, sizeof id);
    json_t *events = sse_events(&sse);
    const int64_t last = number_of(json_array_get(events, json_array_size(events) - 1), "id");
    json_decref(events);
    sse_close(&sse);

    pass_all(order(&op, "1", "meanwhile"), 2); /* without a listener */
    listen_to(&sse, "/v1/events", id);
    pass_all(order(&op, "1", "after"), 1);
    assert_true(sse_await(&sse, "\"point\":\"released\"", 2));
    events = sse_events(&sse);
    assert_int_equal(json_array_size(events), 16);
    assert_int_equal(number_of(json_array_get(events, 0), "id"), last + 1);
    assert_string_equal(text_of(json_array_get(events, 0), "key"), "meanwhile");
    json_t *hello = sse_data(&sse, "hello", 0);
    assert_int_equal(number_of(hello, "lost"), 0);
    json_decref(hello);
    json_decref(events);
    sse_close(&sse);

    listen_to(&sse, "/v1/events", "1a-7"); /* an id of another process */
    hello = sse_data(&sse, "hello", 0);
    assert_int_equal(number_of(hello, "lost"), -1);
    json_decref(hello);
    sse_close(&sse);
}

static void only_the_resource_asked_for_is_sent(void **state)
{
    (void)state;
    struct sse sse;
    struct op op;
    listen_to(&sse, "/v1/events?resource=item:b", NULL);
    pass_all(order(&op, "a", "k"), 3);
    pass_all(order(&op, "b", "k"), 3);
    assert_true(sse_await(&sse, "event: counters", 1));
    assert_true(sse_await(&sse, "\"point\":\"released\"", 1));
    assert_int_equal(sse_count(&sse, "item:a"), 0);
    sse_close(&sse);

    struct raw_reply reply;
    assert_int_equal(fixture_call(&fixture, "GET", "/v1/events?resource=nonsense", "", "", &reply),
                     400);
    raw_free(&reply);
}

static void the_counters_say_what_became_of_the_operations(void **state)
{
    (void)state;
    struct sse sse;
    struct op op = {.kind = OP_PUT_ITEM, .id = "counted", .amount = 2};
    listen_to(&sse, "/v1/events?resource=item:counted", NULL);
    op_pass(&op, OP_COMMITTED);
    for (int64_t stock = 2; stock > 0; stock--)
        pass_all(order(&op, "counted", "k"), stock);
    order(&op, "counted", "k");
    op_pass(&op, OP_SUBMITTED);
    op_problem(&op, PROBLEM_SOLD_OUT, "none left");
    op_pass(&op, OP_REJECTED);
    answer_free(&op.answer);
    order(&op, "counted", "k");
    op_pass(&op, OP_SUBMITTED);
    op_problem(&op, PROBLEM_LOCK_TIMEOUT, "not had");
    op_pass(&op, OP_REJECTED);
    answer_free(&op.answer);
    assert_true(sse_await(&sse, "\"failed\":1,", 1));
    json_t *counters = sse_data(&sse, "counters", -1);
    assert_int_equal(number_of(counters, "initial"), 2);
    assert_int_equal(number_of(counters, "value"), 0);
    assert_int_equal(number_of(counters, "accepted"), 2);
    assert_int_equal(number_of(counters, "amount"), 2);
    assert_int_equal(number_of(counters, "decided_no"), 1);
    assert_true(number_of(counters, "p50_us") >= 0);
    assert_true(number_of(counters, "p99_us") <= number_of(counters, "max_us"));
    json_decref(counters);
    sse_close(&sse);
}

/* A large cookie, which libmicrohttpd copies, leaves less room for the answer than they need. */
static void counters_of_many_resources_are_each_sent_once(void **state)
{
    (void)state;
    struct sse sse;
    struct op op;
    char id[DB_ID_MAX + 1];
    char head[HTTP_HEAD_MAX];
    int n = snprintf(head, sizeof head,
                     "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: a=%07500d\r\n\r\n", 0);
    sse = (struct sse){.fd = raw_connect(fixture.port)};
    assert_int_equal(raw_send(sse.fd, head, (size_t)n), 0);
    assert_true(sse_await(&sse, "event: hello", 1));
    for (int i = 0; i < EVENTS_RESOURCES_MAX; i++) {
        op = (struct op){.kind = OP_PUT_ITEM, .amount = INT64_MAX};
        snprintf(op.id, sizeof op.id, "%064d", i);
        op_pass(&op, OP_COMMITTED);
    }
    assert_true(sse_await(&sse, "event: counters", EVENTS_RESOURCES_MAX));
    snprintf(id, sizeof id, "%064d", EVENTS_RESOURCES_MAX - 1);
    pass_all(order(&op, id, "k"), 1);
    assert_true(sse_await(&sse, "\"accepted\":1,", 1));
    for (int i = 0; i < EVENTS_RESOURCES_MAX - 1; i++) {
        char told[128];
        snprintf(told, sizeof told, "counters\ndata: {\"resource\":\"item:%064d\",", i);
        assert_int_equal(sse_count(&sse, told), 1);
    }
    sse_close(&sse);
}

static void a_slow_reader_is_cut_off_and_counted_others_hear_all(void **state)
{
    (void)state;
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
static void a_listener_that_takes_nothing_is_cut_off(void **state)
{
    (void)state;
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

static void as_many_listeners_as_allowed_hear_the_same_and_no_more(void **state)
{
    (void)state;
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

static void operations_beyond_the_ration_are_left_out_whole_and_said(void **state)
{
    (void)state;
    enum { OPS = 3 * EVENTS_OPS_BURST };
    static struct op ops[OPS];
    struct sse sse;
    size_t noted = 0;
    listen_to(&sse, "/v1/events", NULL);
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

static void an_audience_shares_one_ration(void **state)
{
    (void)state;
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

static void draining_ends_the_streams_also_of_who_does_not_read(void **state)
{
    (void)state;
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

static void stopping_with_streams_open_ends_them(void **state)
{
    (void)state;
    struct sse sse;
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    listen_to(&sse, "/v1/events", NULL);
    fixture_stop(&fixture);
    sse_await(&sse, "never sent", 1);
    assert_true(sse.ended);
    sse_close(&sse);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, fixture_tear_down)
#define LESSON(name)                                                                               \
    cmocka_unit_test_prestate_setup_teardown(name, start, fixture_tear_down, "with keys")
    const struct CMUnitTest tests[] = {
        CASE(without_listeners_nothing_is_noted),
        LESSON(points_come_in_the_order_in_which_they_were_passed),
        CASE(idempotency_keys_are_for_lessons_only),
        CASE(a_moment_is_one_message),
        LESSON(who_comes_back_with_the_last_id_misses_nothing),
        CASE(only_the_resource_asked_for_is_sent),
        CASE(the_counters_say_what_became_of_the_operations),
        CASE(counters_of_many_resources_are_each_sent_once),
        CASE(a_slow_reader_is_cut_off_and_counted_others_hear_all),
        CASE(a_listener_that_takes_nothing_is_cut_off),
        CASE(as_many_listeners_as_allowed_hear_the_same_and_no_more),
        CASE(operations_beyond_the_ration_are_left_out_whole_and_said),
        CASE(an_audience_shares_one_ration),
        CASE(draining_ends_the_streams_also_of_who_does_not_read),
        cmocka_unit_test(stopping_with_streams_open_ends_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
