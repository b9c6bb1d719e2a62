/* Requests that go out after they were due: by the generator's fault, or for want of a connection.
 */
#include "load_asserts.h"

#include <time.h>

enum { REQUESTS = 100, RATE = 1000, STALL_MS = 100, ANSWER_US = 20000 };

/* The workload of a probe whose first request holds up its thread. */
static const struct load_workload *stalled;

static size_t stall_once(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                         size_t size)
{
    if (seq == 0)
        nanosleep(&(struct timespec){.tv_nsec = STALL_MS * 1000000L}, NULL);
    return stalled->request(ctx, seq, target, out, size);
}

/* As many connections as requests: one is always free. */
TEST_THAT(a_stalled_generator_is_its_own_fault)
{
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    struct load_workload plain = probe_workload(&probe), workload = plain;
    struct load_result result;
    char message[200];
    stalled = &plain;
    workload.request = stall_once;
    options.mode = LOAD_RATE;
    options.rate = RATE;
    options.requests = options.connections = REQUESTS;
    assert_int_equal(load_run(&options, &workload, &result, message, sizeof message), 0);
    assert_int_equal(result.own_lag.count, REQUESTS);
    /* The second was due a millisecond after the first, and could not be sent before its end. */
    assert_true(result.own_lag.max >= (STALL_MS - 2) * 1000);
    assert_int_equal(result.no_connection.max, 0);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static void answer_slowly(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "ok");
    reply->delay_us = ANSWER_US;
}

/* One connection that is busy for 20 ms with each of ten requests, due within 10 ms. */
TEST_THAT(a_busy_connection_is_not_the_generators_fault)
{
    struct toy_server *server = serve(answer_slowly, NULL);
    struct probe probe;
    probe_init(&probe, 10);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = RATE;
    options.requests = 10;
    options.connections = 1;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.no_connection.count, 10);
    assert_true(result.no_connection.max >= 9 * (ANSWER_US - 1000));
    /* The parts are the whole: what is no latency of the service is one of them. */
    assert_true(result.no_connection.max + result.own_lag.max + result.service.max >=
                result.latency.max);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(closed_load_is_never_late)
{
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, 50);
    struct load_options options = probe_options(toy_url(server));
    options.requests = 50;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.own_lag.count, 0);
    assert_int_equal(result.no_connection.count, 0);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}
