/* Extra routes beside the routes of every service, over the stub service. */
#include "http_fixture.h"
#include "answer.h"
#include "process.h"
#include "tests.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JSON "Content-Type: application/json\r\n"

static struct fixture fixture;
static struct raw_reply reply;
static atomic_int ticks, ends, calls;

/* -- a table ----------------------------------------------------------------------------------- */

static bool echo(const struct extra_request *request, struct op *op)
{
    atomic_fetch_add(&calls, 1);
    op_answer(op, 201, "{\"at\":\"%s\",\"body\":\"%.*s\",\"url\":\"%s\"}", request->parameter,
              (int)request->body_bytes, request->body, request->url);
    return true;
}

static bool ask_service(const struct extra_request *request, struct op *op)
{
    atomic_fetch_add(&calls, 1);
    op->kind = OP_GET_LOCK;
    snprintf(op->resource, sizeof op->resource, "%s", request->parameter);
    return false;
}

static void tick(void)
{
    atomic_fetch_add(&ticks, 1);
}

static void end(void)
{
    atomic_fetch_add(&ends, 1);
}

static const struct extra_route list[] = {
    {"POST", "/extra", echo},
    {"POST", "/extra/{}", echo},
    {"GET", "/extra/{}", ask_service},
};
static const struct extra_routes extra = {
    .list = list, .n = sizeof list / sizeof list[0], .tick = tick, .end = end};

static int start(void **state)
{
    fixture_defaults(&fixture);
    fixture.extra = &extra;
    atomic_store(&calls, 0);
    atomic_store(&ends, 0);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static int start_without(void **state)
{
    fixture_defaults(&fixture);
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

static int call(const char *method, const char *path, const char *headers, const char *body)
{
    return fixture_call(&fixture, method, path, headers, body, &reply);
}

static bool is_called(void *arg)
{
    atomic_int *count = arg;
    return atomic_load(count) > 0;
}

/* -- claims ------------------------------------------------------------------------------------ */

TEST_FIXTURE(start, fixture_tear_down);

TEST_THAT(a_route_is_answered_in_place)
{
    char expected[128];
    assert_int_equal(call("POST", "/extra/a%3Ab?x=y", JSON, "hi"), 201);
    snprintf(expected, sizeof expected, "{\"at\":\"a:b\",\"body\":\"hi\",\"url\":\"%s\"}",
             http_url(fixture.http));
    assert_memory_equal(reply.body, expected, strlen(expected));
    raw_free(&reply);
    assert_int_equal(call("POST", "/extra", JSON, ""), 201);
    assert_non_null(strstr(reply.body, "{\"at\":\"\",\"body\":\"\""));
    raw_free(&reply);
    assert_int_equal(stub_submitted(fixture.service), 0);
    assert_true(wait_until(is_called, &ticks, RAW_WAIT_MS));
}

TEST_THAT(a_question_goes_to_the_service)
{
    struct op op;
    assert_int_equal(call("GET", "/extra/item:1", "", ""), 200);
    raw_free(&reply);
    stub_last(fixture.service, &op);
    assert_int_equal(op.kind, OP_GET_LOCK);
    assert_string_equal(op.resource, "item:1");
}

TEST_THAT(another_method_is_405_and_told_which_would_do)
{
    assert_int_equal(call("DELETE", "/extra/1", "", ""), 405);
    assert_non_null(strstr(reply.head, "Allow: POST, GET, HEAD"));
    raw_free(&reply);
    assert_int_equal(atomic_load(&calls), 0);
}

/* A browser sends text/plain for any site's page, but application/json only for ours. */
TEST_THAT(a_post_of_another_type_is_415)
{
    assert_int_equal(call("POST", "/extra", "Content-Type: text/plain\r\n", "hi"), 415);
    raw_free(&reply);
    assert_int_equal(call("POST", "/extra", "", ""), 415);
    raw_free(&reply);
    assert_int_equal(atomic_load(&calls), 0);
}

TEST_THAT(its_end_is_called_when_the_service_drains)
{
    http_drain(fixture.http);
    assert_true(wait_until(is_called, &ends, RAW_WAIT_MS));
    assert_true(http_drained(fixture.http, RAW_WAIT_MS));
}

TEST_THAT_WITH(without_the_table_there_is_no_such_route, start_without, fixture_tear_down)
{
    assert_int_equal(call("POST", "/extra", JSON, ""), 404);
    raw_free(&reply);
    assert_int_equal(call("GET", "/extra/1", "", ""), 404);
    raw_free(&reply);
}
