/* What a run writes down is what a checker reads, years later. */
#include "history.h"
#include "steady.h"
#include "tests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS "/v1/items/a/orders"

struct written {
    char path[32];
    struct history_writer *writer;
};

static void begin(struct written *written)
{
    strcpy(written->path, "/tmp/test-history-XXXXXX");
    int fd = mkstemp(written->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(history_create(written->path, &written->writer), 0);
    history_run(written->writer, "sale", "none", "9f01c2aa", 1);
    history_resource(written->writer, "item:a", 10, 1, 2);
}

static void read_back(struct written *written, struct history *ret)
{
    char message[512];
    assert_int_equal(history_close(written->writer), 0);
    int failed = history_read(written->path, ret, message, sizeof message);
    unlink(written->path);
    if (failed)
        fail_msg("%s", message);
}

TEST_THAT(an_order_and_its_answer_are_read_as_they_were_written)
{
    struct written written;
    struct history history;
    begin(&written);
    history_invoke(written.writer, "k1", ORDERS, "{\"user_id\":\"u1\",\"quantity\":2}");
    int64_t asked_by_us = steady_us();
    history_complete(written.writer, "k1",
                     &(struct load_answer){.end = LOAD_ANSWERED,
                                           .status = 201,
                                           .body = "{\"order_id\":\"o\\\"1\",\"stock_before\":10,"
                                                   "\"stock_after\":8,\"version\":2,\"fence\":7}"});
    read_back(&written, &history);
    assert_int_equal(history.n_resources, 1);
    assert_string_equal(history.resources[0].name, "item:a");
    assert_int_equal(history.resources[0].initial, 10);
    assert_int_equal(history.resources[0].version, 1);
    assert_int_equal(history.resources[0].limit, 2);
    assert_int_equal(history.n_ops, 1);
    const struct history_op *op = &history.ops[0];
    assert_string_equal(op->key, "k1");
    assert_string_equal(op->resource, "item:a");
    assert_string_equal(op->order_id, "o\"1");
    assert_int_equal(op->state, HISTORY_ACCEPTED);
    assert_int_equal(op->delta, -2);
    assert_true(op->invoked_us > 0 && op->invoked_us <= asked_by_us);
    assert_true(op->completed_us >= asked_by_us && op->completed_us <= steady_us());
    assert_int_equal(op->before, 10);
    assert_int_equal(op->after, 8);
    assert_int_equal(op->version, 2);
    assert_int_equal(op->fence, 7);
    assert_int_equal(op->open, 0);
    history_free(&history);
}

TEST_THAT(every_end_leaves_what_is_known_after_it)
{
    static const char running[] = "{\"type\":\"/problems/in-flight\",\"title\":\"x\"}";
    static const char other[] = "{\"type\":\"/problems/sold-out\",\"title\":\"x\"}";
    static const struct {
        enum load_end end;
        int status;
        const char *body;
        enum history_state state;
    } cases[] = {
        {LOAD_ANSWERED, 200, "{}", HISTORY_ACCEPTED},
        {LOAD_ANSWERED, 201, "{}", HISTORY_ACCEPTED},
        {LOAD_ANSWERED, 400, "{}", HISTORY_REFUSED},
        {LOAD_ANSWERED, 409, other, HISTORY_REFUSED},
        {LOAD_ANSWERED, 409, running, HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 499, "{}", HISTORY_REFUSED},
        {LOAD_ANSWERED, 408, "{}", HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 429, "{}", HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 500, "{}", HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 503, "{}", HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 404, "<p class=\"x\">\nnot JSON\\", HISTORY_REFUSED},
        {LOAD_ANSWERED, 502, "\xff\xfe not even text", HISTORY_UNKNOWN},
        {LOAD_ANSWERED, 204, "", HISTORY_ACCEPTED},
        {LOAD_NOT_SENT, 0, "", HISTORY_UNSENT},
        {LOAD_ABANDONED, 0, "", HISTORY_UNKNOWN},
        {LOAD_BROKEN, 0, "", HISTORY_UNKNOWN},
        {LOAD_TIMED_OUT, 0, "", HISTORY_UNKNOWN},
        {LOAD_BAD_ANSWER, 0, "", HISTORY_UNKNOWN},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    struct written written;
    struct history history;
    char key[8];
    begin(&written);
    for (int i = 0; i < CASES; i++) {
        snprintf(key, sizeof key, "k%d", i);
        history_invoke(written.writer, key, ORDERS, "{\"quantity\":1}");
        history_complete(written.writer, key,
                         &(struct load_answer){.end = cases[i].end,
                                               .status = cases[i].status,
                                               .body = cases[i].body});
    }
    read_back(&written, &history);
    assert_int_equal(history.n_ops, CASES);
    for (int i = 0; i < CASES; i++) {
        if (history.ops[i].state != cases[i].state)
            fail_msg("%s, status %d: state %d instead of %d", history_end_text(cases[i].end),
                     cases[i].status, history.ops[i].state, cases[i].state);
        bool decided = cases[i].state == HISTORY_ACCEPTED || cases[i].state == HISTORY_REFUSED;
        assert_int_equal(history.ops[i].completed_us != INT64_MAX, decided);
    }
    history_free(&history);
}

TEST_THAT(nothing_is_written_without_a_writer)
{
    history_run(NULL, "sale", "none", "r", 1);
    history_resource(NULL, "item:a", 10, 1, 2);
    history_invoke(NULL, "k", ORDERS, "{}");
    history_complete(NULL, "k", &(struct load_answer){.end = LOAD_BROKEN});
    assert_int_equal(history_close(NULL), 0);
}

TEST_THAT(a_file_that_takes_no_more_is_told)
{
    struct history_writer *writer;
    assert_int_equal(history_create("/nonexistent/x", &writer), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(history_create("/dev/full", &writer), 0);
    history_resource(writer, "item:a", 10, 1, 2);
    assert_int_equal(history_close(writer), -1);
    assert_int_equal(errno, ENOSPC);
}
