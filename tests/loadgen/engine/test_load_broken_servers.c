/* Servers that break, dawdle or talk nonsense: each outcome has its name, none stops the run. */
#include "load_asserts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK_LINE "HTTP/1.1 200 OK\r\n"

enum { REQUESTS = 40, LARGE = 300000, HEAD_TOO_LARGE = 100000, HEAD_LARGE = 12000 };

/* What a server answers to everything, and how that must count. */
struct behaviour {
    const char *name, *bytes;
    enum load_end end;
    const char *body;
    size_t length; /* of bytes, when they hold more than a string; 0: strlen */
    size_t piece;
    int64_t gap_us;
    enum toy_then then;
    bool reconnects;    /* a connection for each request */
    size_t body_length; /* when it is not that of body */
};

static const struct behaviour behaviours[] = {
    {.name = "proper", .bytes = OK_LINE "Content-Length: 2\r\n\r\nok", .body = "ok"},
    {.name = "byte by byte",
     .bytes = OK_LINE "Content-Length: 5\r\n\r\nhello",
     .body = "hello",
     .piece = 1},
    {.name = "chunks with extensions and trailers, in pieces of 3",
     .bytes = OK_LINE
     "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2 ;c\r\nde\r\n0\r\nT: 1\r\n\r\n",
     .body = "abcde",
     .piece = 3},
    {.name = "continue first",
     .bytes = "HTTP/1.1 100 Continue\r\n\r\n" OK_LINE "Content-Length: 2\r\n\r\nok",
     .body = "ok"},
    {.name = "continue first, byte by byte",
     .bytes = "HTTP/1.1 100 Continue\r\n\r\n" OK_LINE "Content-Length: 2\r\n\r\nok",
     .body = "ok",
     .piece = 1},
    {.name = "up to the close",
     .bytes = OK_LINE "\r\nto the end",
     .body = "to the end",
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "HTTP/1.0",
     .bytes = "HTTP/1.0 200 OK\r\n\r\nold",
     .body = "old",
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "HTTP/1.0 in pieces",
     .bytes = "HTTP/1.0 200 OK\r\n\r\nold",
     .body = "old",
     .piece = 7,
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "announced close",
     .bytes = OK_LINE "Connection: close\r\nContent-Length: 2\r\n\r\nok",
     .body = "ok",
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "announced close that does not come",
     .bytes = OK_LINE "Connection: close\r\nContent-Length: 2\r\n\r\nok",
     .body = "ok",
     .reconnects = true},
    {.name = "surplus bytes",
     .bytes = OK_LINE "Content-Length: 2\r\n\r\nok and more",
     .body = "ok",
     .reconnects = true},
    {.name = "no content", .bytes = "HTTP/1.1 204 No Content\r\n\r\n", .body = ""},

    {.name = "closed without a byte",
     .bytes = "",
     .end = LOAD_BROKEN,
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "reset without a byte",
     .bytes = "",
     .end = LOAD_BROKEN,
     .then = TOY_RESET,
     .reconnects = true},
    {.name = "half a head",
     .bytes = OK_LINE "Content-Le",
     .end = LOAD_BROKEN,
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "half a body",
     .bytes = OK_LINE "Content-Length: 10\r\n\r\nhalf",
     .end = LOAD_BROKEN,
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "half a body, then reset",
     .bytes = OK_LINE "Content-Length: 10\r\n\r\nhalf",
     .end = LOAD_BROKEN,
     .then = TOY_RESET,
     .reconnects = true},
    {.name = "chunks without an end",
     .bytes = OK_LINE "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
     .end = LOAD_BROKEN,
     .then = TOY_CLOSE,
     .reconnects = true},
    {.name = "garbage",
     .bytes = "\x01\x02 what is this?\r\n\r\n",
     .end = LOAD_BAD_ANSWER,
     .reconnects = true},
    {.name = "another protocol",
     .bytes = "220 mail ESMTP\r\n",
     .end = LOAD_BAD_ANSWER,
     .reconnects = true},
    {.name = "bad chunk",
     .bytes = OK_LINE "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
     .end = LOAD_BAD_ANSWER,
     .reconnects = true},
    {.name = "two lengths",
     .bytes = OK_LINE "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
     .end = LOAD_BAD_ANSWER,
     .reconnects = true},
};

static void answer_so(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    const struct behaviour *behaviour = ctx;
    (void)request;
    reply->bytes = behaviour->bytes;
    reply->length = behaviour->length > 0 ? behaviour->length : strlen(behaviour->bytes);
    reply->piece = behaviour->piece;
    reply->gap_us = behaviour->gap_us;
    reply->then = behaviour->then;
}

static void check_behaviour(const struct behaviour *behaviour)
{
    struct toy_server *server = serve(answer_so, (void *)behaviour);
    struct probe probe;
    print_message("%s\n", behaviour->name);
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.requests = REQUESTS;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.ends[behaviour->end], REQUESTS);
    assert_int_equal(result.sent, REQUESTS);
    assert_int_equal(result.completed, REQUESTS);
    for (int i = 0; i < REQUESTS && behaviour->end == LOAD_ANSWERED; i++) {
        size_t length =
            behaviour->body_length > 0 ? behaviour->body_length : strlen(behaviour->body);
        assert_int_equal(probe.entries[i].body_length, length);
        assert_memory_equal(probe.entries[i].body, behaviour->body, strlen(behaviour->body));
    }
    assert_int_equal(result.connects, behaviour->reconnects ? REQUESTS : 4);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(every_behaviour_has_its_outcome)
{
    for (size_t i = 0; i < sizeof behaviours / sizeof behaviours[0]; i++)
        check_behaviour(&behaviours[i]);
}

/* OK_LINE, a header line of `head` bytes in lines of 1000, and a body of `body` bytes. */
static char *large_answer(size_t head, size_t body, size_t *ret_length)
{
    char *text = malloc(head + body + 1000), *to = stpcpy(text, OK_LINE);
    assert_non_null(text);
    for (size_t left = head; left > 0; left -= left < 1000 ? left : 1000)
        to += sprintf(to, "X-Filler: %0986d\r\n", 7);
    to += sprintf(to, "Content-Length: %zu\r\n\r\n", body);
    memset(to, 'b', body);
    *ret_length = (size_t)(to - text) + body;
    return text;
}

TEST_THAT(large_answers_are_read_to_the_end)
{
    struct behaviour behaviour = {.name = "large", .body = "bbbb", .body_length = LOAD_KEPT_MAX};
    char *answer = large_answer(HEAD_LARGE, LARGE, &behaviour.length);
    static const size_t pieces[] = {0, 1000, 70000};
    behaviour.bytes = answer;
    for (size_t i = 0; i < 3; i++) {
        behaviour.piece = pieces[i];
        check_behaviour(&behaviour);
    }
    free(answer);
}

TEST_THAT(huge_headers_are_a_bad_answer)
{
    struct behaviour behaviour = {
        .name = "huge headers", .end = LOAD_BAD_ANSWER, .reconnects = true};
    char *answer = large_answer(HEAD_TOO_LARGE, 10, &behaviour.length);
    behaviour.bytes = answer;
    check_behaviour(&behaviour);
    free(answer);
}

/* Runs REQUESTS requests; returns how many ended as `end`. */
static uint64_t count_ends(const struct load_options *options, enum load_end end)
{
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_result result = probe_run(options, &probe);
    uint64_t n = result.ends[end];
    assert_int_equal(result.completed, REQUESTS);
    load_result_free(&result);
    probe_free(&probe);
    return n;
}

TEST_THAT(refused_connection_is_not_sent)
{
    struct toy_server *server = serve(NULL, NULL);
    struct load_options options = probe_options(toy_url(server));
    toy_stop(server); /* nobody listens there any more */
    options.requests = REQUESTS;
    options.threads = 2;
    assert_int_equal(count_ends(&options, LOAD_NOT_SENT), REQUESTS);
    options = probe_options("http+unix:///nonexistent/socket");
    options.requests = REQUESTS;
    assert_int_equal(count_ends(&options, LOAD_NOT_SENT), REQUESTS);
}

TEST_THAT(closing_on_accept_answers_nothing)
{
    struct toy_server *server = toy_start(&(struct toy_options){.close_on_accept = true});
    assert_non_null(server);
    struct load_options options = probe_options(toy_url(server));
    options.requests = REQUESTS;
    assert_int_equal(count_ends(&options, LOAD_ANSWERED), 0);
    assert_int_equal(count_ends(&options, LOAD_TIMED_OUT), 0);
    toy_stop(server);
}

/* The close comes while the connection is idle: nobody must notice. */
TEST_THAT(connection_closed_between_requests_is_reopened_silently)
{
    const struct behaviour behaviour = {.bytes = OK_LINE "Content-Length: 2\r\n\r\nok",
                                        .then = TOY_CLOSE};
    struct toy_server *server = serve(answer_so, (void *)&behaviour);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 100;
    options.requests = REQUESTS;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.ends[LOAD_ANSWERED], REQUESTS);
    assert_int_equal(result.connects, REQUESTS);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static void answer_never(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "");
    reply->delay_us = 3600000000LL;
}

static void check_timeouts(struct toy_server *server)
{
    enum { TIMEOUT_MS = 200 };
    struct probe probe;
    probe_init(&probe, 8);
    struct load_options options = probe_options(toy_url(server));
    options.requests = 8;
    options.timeout_ms = TIMEOUT_MS;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.ends[LOAD_TIMED_OUT], 8);
    assert_true(result.latency.min >= TIMEOUT_MS * 1000);
    assert_true(result.latency.max < TIMEOUT_MS * 1000 + 250000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(silence_times_out_when_it_should)
{
    check_timeouts(serve(answer_never, NULL));
}

/* A byte now and then keeps no request alive. */
TEST_THAT(dripping_bytes_time_out_when_they_should)
{
    const struct behaviour behaviour = {
        .bytes = OK_LINE "Content-Length: 5\r\n\r\nhello", .piece = 1, .gap_us = 20000};
    check_timeouts(serve(answer_so, (void *)&behaviour));
}
