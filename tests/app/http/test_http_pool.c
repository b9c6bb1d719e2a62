/* Memory that a request keeps for the next one, or hands to its answer. */
#include "answer.h"
#include "http_internal.h"
#include "tests.h"

#include <stdint.h>
#include <string.h>

enum { USUAL = 100, EXCEPTIONAL = 16000, KEPT_MAX = 1024 };

static struct http http;

static int pool_end(void **state)
{
    (void)state;
    pool_free(&http);
    memset(&http, 0, sizeof http);
    return 0;
}

static struct request *sent(size_t bytes)
{
    struct request *request = request_get(&http);
    assert_non_null(request);
    assert_true(request_room(request, bytes));
    assert_true(request->sent_room >= bytes);
    memset(request->sent, 'q', bytes);
    return request;
}

TEST_FIXTURE(NULL, pool_end);

TEST_THAT(the_answer_takes_over_the_room_of_the_question)
{
    struct request *request = sent(USUAL);
    const char *const room = request->sent;
    request_give_room(request);
    assert_null(request->sent);
    assert_string_equal(request->call->op.answer.body, "");
    op_answer(&request->call->op, 201, "{\"id\":\"%s\"}", "1");
    assert_ptr_equal(request->call->op.answer.body, room);
    request_put(&http, request);
}

TEST_THAT(no_memory_is_asked_for_from_the_second_order_on)
{
    const char *room = NULL;
    for (int i = 0; i < 10; i++) {
        struct request *request = sent(USUAL);
        assert_true(room == NULL || request->sent == room);
        room = request->sent;
        request_give_room(request);
        op_answer(&request->call->op, 201, "{\"id\":\"%s\"}", "1");
        request_put(&http, request);
    }
}

/* A request that the HTTP side answered itself keeps its buffer; its call keeps another one. */
TEST_THAT(a_request_that_waits_has_one_room_only)
{
    struct request *request = sent(USUAL);
    op_answer(&request->call->op, 200, "{}");
    request_put(&http, request);
    request = sent(USUAL);
    assert_non_null(request->call->op.answer.body);
    request_give_room(request);
    assert_null(request->sent);
    request_put(&http, request);
}

TEST_THAT(exceptional_room_is_not_kept)
{
    struct request *request = sent(EXCEPTIONAL); /* read, and refused */
    request_put(&http, request);
    request = request_get(&http);
    assert_true(request->sent_room <= KEPT_MAX);
    assert_true(request_room(request, EXCEPTIONAL)); /* read, and answered */
    request_give_room(request);
    request_put(&http, request);
    request = request_get(&http);
    assert_true(request->sent_room + request->call->op.answer.body_room <= KEPT_MAX);
    request_put(&http, request);
}
