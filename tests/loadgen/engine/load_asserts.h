/* What the tests of the engine share: starting a server, and the sums that must agree. */
#ifndef LOAD_ASSERTS_H
#define LOAD_ASSERTS_H

#include "load_probe.h"
#include "tests.h"
#include "toy_server.h"

static inline struct toy_server *serve(toy_answer *answer, void *ctx)
{
    struct toy_server *server = toy_start(&(struct toy_options){.answer = answer, .ctx = ctx});
    assert_non_null(server);
    return server;
}

/* Each number was sent and answered once, and all sums agree. */
static inline void assert_each_once(const struct probe *probe, const struct load_result *result,
                                    uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(probe->entries[i].requests, 1);
        assert_int_equal(probe->entries[i].outcomes, 1);
        assert_int_equal(probe->entries[i].end, LOAD_ANSWERED);
    }
    assert_int_equal(result->sent, n);
    uint64_t sent = 0, answered = 0;
    for (size_t i = 0; i < result->series.n; i++) {
        sent += result->series.points[i].sent;
        answered += result->series.points[i].answered;
    }
    assert_int_equal(sent, n);
    assert_int_equal(answered, n);
    assert_int_equal(result->completed, n);
    assert_int_equal(result->retries, 0);
    assert_int_equal(result->ends[LOAD_ANSWERED], n);
    assert_int_equal(result->status[200], n);
    assert_int_equal(result->latency.count, result->measured);
    assert_int_equal(result->service.count, result->measured);
}

#endif
