/* The open model: what is due when, and where latency starts. */
#include "load_asserts.h"

#include <time.h>

static void sleep_us(int64_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&left, NULL);
}

static int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void rate_sends_nothing_before_it_is_due(void **state)
{
    (void)state;
    enum { REQUESTS = 1000, RATE = 2000 };
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = RATE;
    options.requests = REQUESTS;
    options.connections = 32;
    options.threads = 2;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, REQUESTS);
    assert_int_equal(result.dropped, 0);
    for (int64_t i = 0; i < REQUESTS; i++)
        assert_true(probe.entries[i].sent_us >= result.started_us + i * 1000000 / RATE);
    assert_true(result.duration_us >= (REQUESTS - 1) * 1000000LL / RATE);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static void rate_times_duration_is_due_exactly(void **state)
{
    (void)state;
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, 10000);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 3333;
    options.duration_ms = 300; /* 999.9: numbers 0 to 999 */
    options.threads = 3;
    options.connections = 30;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.sent + result.dropped, 1000);
    assert_int_equal(result.completed, result.sent);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

struct pause {
    uint64_t at; /* the request that finds the server paused */
    int64_t us;
    int64_t from_us, to_us; /* when it really was */
};

static void answer_with_pause(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    struct pause *pause = ctx;
    if (request->number == pause->at) {
        pause->from_us = clock_us();
        sleep_us(pause->us);
        pause->to_us = clock_us();
    }
    toy_ok(reply, "ok");
}

/* Of N requests at a steady rate, those due in a pause wait for its end. So the true latency at
 * rank r from the top is the pause less r / rate, whatever the client could send meanwhile. */
static void latency_counts_from_the_intended_start(void **state)
{
    (void)state;
    enum { RATE = 1000, REQUESTS = 1500, CONNECTIONS = 8 };
    struct pause pause = {.at = 400, .us = 500000};
    struct toy_server *server = serve(answer_with_pause, &pause);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = RATE;
    options.requests = REQUESTS;
    options.connections = CONNECTIONS;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, REQUESTS);
    static const double percentiles[] = {99.9, 99, 95, 90, 80};
    double paused_us = (double)(pause.to_us - pause.from_us);
    for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
        double rank = REQUESTS * (100 - percentiles[i]) / 100;
        double truth = paused_us - rank * 1e6 / RATE;
        double got = (double)hist_percentile(&result.latency, percentiles[i]);
        print_message("p%g: %.0f us, true %.0f\n", percentiles[i], got, truth);
        assert_true(got > truth * 0.95 - 2000 && got < truth * 1.05 + 30000);
    }
    /* What a closed-loop client would have seen: only the few that were under way. */
    assert_true(hist_percentile(&result.service, 95) < paused_us / 2);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static void answer_after_a_minute(void *ctx, const struct toy_request *request,
                                  struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "too late");
    reply->delay_us = 60000000;
}

static void unsent_work_is_counted_as_dropped(void **state)
{
    (void)state;
    struct toy_server *server = serve(answer_after_a_minute, NULL);
    struct probe probe;
    probe_init(&probe, 1000);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 100;
    options.duration_ms = 300;
    options.connections = 2;
    options.timeout_ms = 600;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.sent, 2);
    assert_int_equal(result.dropped, 28);
    assert_int_equal(result.ends[LOAD_TIMED_OUT], 2);
    /* A request that got no answer in time has a latency of at least that time. */
    assert_int_equal(result.latency.count, 2);
    assert_true(result.latency.min >= 600000);
    assert_int_equal(result.service.count, 0);
    load_result_free(&result);

    options.mode = LOAD_BURST;
    options.requests = 50;
    options.timeout_ms = 300;
    options.duration_ms = 100;
    result = probe_run(&options, &probe);
    assert_int_equal(result.sent, 2);
    assert_int_equal(result.dropped, 48);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_sends_nothing_before_it_is_due),
        cmocka_unit_test(rate_times_duration_is_due_exactly),
        cmocka_unit_test(latency_counts_from_the_intended_start),
        cmocka_unit_test(unsent_work_is_counted_as_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
