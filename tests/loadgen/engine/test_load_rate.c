/* The open model: what is due when, and where latency starts. */
#include "load_asserts.h"

#include <stdlib.h>
#include <string.h>
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

TEST_THAT(rate_sends_nothing_before_it_is_due)
{
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

TEST_THAT(what_is_due_in_the_warm_up_is_done_but_not_measured)
{
    enum { REQUESTS = 400, RATE = 1000, WARMUP_MS = 100 };
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = RATE;
    options.requests = REQUESTS;
    options.warmup_ms = WARMUP_MS;
    options.threads = 2;
    options.connections = 32;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, REQUESTS);
    assert_int_equal(result.completed - result.measured, RATE * WARMUP_MS / 1000);
    assert_int_equal(result.duration_us - result.measured_us, WARMUP_MS * 1000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(rate_times_duration_is_due_exactly)
{
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

/* The second request's answer comes long after the end of the duration. */
static void answer_second_late(void *ctx, const struct toy_request *request,
                               struct toy_reply *reply)
{
    (void)ctx;
    toy_ok(reply, "ok");
    reply->delay_us = request->number == 1 ? 1500000 : 5000;
}

static bool note_elapsed(void *ctx, const struct load_progress *now)
{
    *(int64_t *)ctx = now->elapsed_us;
    return true;
}

TEST_THAT(straggler_does_not_divide_the_rate)
{
    enum { DURATION_MS = 300 };
    struct toy_server *server = serve(answer_second_late, NULL);
    struct probe probe;
    probe_init(&probe, 10000);
    struct load_options options = probe_options(toy_url(server));
    options.duration_ms = DURATION_MS;
    int64_t elapsed_us = 0;
    options.progress = note_elapsed;
    options.progress_ctx = &elapsed_us;
    struct load_result result = probe_run(&options, &probe);
    assert_true(result.duration_us >= 1500000);
    assert_int_equal(elapsed_us, DURATION_MS * 1000); /* nor does it under way */
    assert_int_equal(result.measured_us, DURATION_MS * 1000);
    assert_true(result.answered < result.completed && result.answered + 4 >= result.completed);
    assert_true(load_rate(&result) == (double)result.answered * 1000 / DURATION_MS);
    load_result_free(&result);
    options.requests = 10; /* done before the duration has ended */
    options.connections = 1;
    options.duration_ms = 60000;
    result = probe_run(&options, &probe);
    assert_int_equal(result.measured_us, result.duration_us);
    assert_int_equal(result.answered, 10);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

enum { PAUSE_RATE = 1000, PAUSE_REQUESTS = 1500 };

struct pause {
    int64_t us;
    int64_t real_us;
    int64_t answered_us[PAUSE_REQUESTS]; /* by the server's own watch */
};

static void answer_with_pause(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    struct pause *pause = ctx;
    uint64_t seq = strtoull(request->text + strlen("GET /"), NULL, 10);
    int64_t now_us = clock_us();
    if (request->number == 400) {
        sleep_us(pause->us);
        pause->real_us = clock_us() - now_us;
    }
    if (seq < PAUSE_REQUESTS)
        pause->answered_us[seq] = clock_us();
    toy_ok(reply, "ok");
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of requests at a steady rate, those due in a pause wait for its end, whatever the client could
 * send meanwhile: at rank r from the top the latency is at least the pause less r / rate. What it
 * really was, the server knows. */
TEST_THAT(latency_counts_from_the_intended_start)
{
    static struct pause pause = {.us = 500000};
    struct toy_server *server = serve(answer_with_pause, &pause);
    struct probe probe;
    probe_init(&probe, PAUSE_REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = PAUSE_RATE;
    options.requests = PAUSE_REQUESTS;
    options.connections = 8;
    struct load_result result = probe_run(&options, &probe);
    toy_stop(server);
    assert_each_once(&probe, &result, PAUSE_REQUESTS);
    int64_t real_us[PAUSE_REQUESTS];
    for (int64_t i = 0; i < PAUSE_REQUESTS; i++)
        real_us[i] = pause.answered_us[i] - (result.started_us + i * 1000000 / PAUSE_RATE);
    qsort(real_us, PAUSE_REQUESTS, sizeof real_us[0], compare);

    static const int ranks[] = {2, 15, 75, 150, 300}; /* p99.9 (nearly), p99, p95, p90, p80 */
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        double percentile = 100.0 * (PAUSE_REQUESTS - ranks[i]) / PAUSE_REQUESTS;
        double bound_us = (double)pause.real_us - ranks[i] * 1e6 / PAUSE_RATE;
        double real = (double)real_us[PAUSE_REQUESTS - 1 - ranks[i]];
        double got = (double)hist_percentile(&result.latency, percentile);
        print_message("p%g: %.0f us, real %.0f, at least %.0f\n", percentile, got, real, bound_us);
        assert_true(got > bound_us * 0.98);
        assert_true(got > real * 0.999 && got < real * 1.05 + 30000);
    }
    /* A client that waits for answers before it sends would have seen the pause a few times only.
     */
    assert_true((double)hist_percentile(&result.service, 95) < (double)pause.real_us / 2);
    load_result_free(&result);
    probe_free(&probe);
}

static void answer_after_a_minute(void *ctx, const struct toy_request *request,
                                  struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "too late");
    reply->delay_us = 60000000;
}

TEST_THAT(unsent_work_is_counted_as_dropped)
{
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
