/* GET /v1/events: every listener that reads fast enough gets all events in order. */
#include "answer.h"
#include "events_rig.h"

static const char *text_of(json_t *event, const char *name)
{
    return json_string_value(json_object_get(event, name));
}

static int64_t number_of(json_t *event, const char *name)
{
    return json_integer_value(json_object_get(event, name));
}

/* -- claims ------------------------------------------------------------------------------------ */

static int start_with_keys(void **state)
{
    *state = &fixture;
    return start(state);
}

TEST_FIXTURE(start, fixture_tear_down);

/* Runs first, before any test has listened. */
TEST_THAT(without_listeners_nothing_is_noted)
{
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

TEST_THAT_WITH(points_come_in_the_order_in_which_they_were_passed, start_with_keys,
               fixture_tear_down)
{
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
TEST_THAT(idempotency_keys_are_for_lessons_only)
{
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

TEST_THAT(a_moment_is_one_message)
{
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

TEST_THAT_WITH(who_comes_back_with_the_last_id_misses_nothing, start_with_keys, fixture_tear_down)
{
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

TEST_THAT(only_the_resource_asked_for_is_sent)
{
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

TEST_THAT(the_counters_say_what_became_of_the_operations)
{
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
TEST_THAT(counters_of_many_resources_are_each_sent_once)
{
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
