/* Requests that are sent again, and requests whose answer is not waited for. */
#include "load_asserts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS_MAX = 4096 };

/* Refuses each number a few times before it answers. */
struct refusals {
    unsigned wanted;
    unsigned seen[NUMBERS_MAX];
};

static void refuse_first(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    static const char refusal[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"
                                  "Content-Length: 4\r\n\r\nbusy";
    struct refusals *refusals = ctx;
    unsigned long number = strtoul(request->text + strlen("GET /"), NULL, 10);
    if (number < NUMBERS_MAX && refusals->seen[number]++ < refusals->wanted) {
        reply->bytes = refusal;
        reply->length = sizeof refusal - 1;
        return;
    }
    toy_ok(reply, "done");
}

TEST_THAT(retry_keeps_the_number_and_its_intended_start)
{
    enum { REQUESTS = 200, RETRY_MS = 20 };
    struct refusals refusals = {.wanted = 2};
    struct toy_server *server = serve(refuse_first, &refusals);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    probe.retry_ms = RETRY_MS;
    probe.sendings_max = 10;
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 2000;
    options.requests = REQUESTS;
    options.threads = 2;
    struct load_result result = probe_run(&options, &probe);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(refusals.seen[i], 3);
        assert_int_equal(probe.entries[i].outcomes, 3);
        assert_string_equal(probe.entries[i].body, "done");
        assert_true(probe.entries[i].sent_us - probe.entries[i].first_sent_us >=
                    2 * RETRY_MS * 1000);
    }
    assert_int_equal(result.sent, 3 * REQUESTS);
    assert_int_equal(result.retries, 2 * REQUESTS);
    assert_int_equal(result.completed, REQUESTS);
    assert_int_equal(result.unfinished, 0);
    assert_int_equal(result.dropped, 0);
    assert_int_equal(result.status[503], 2 * REQUESTS);
    assert_int_equal(result.status[200], REQUESTS);
    assert_int_equal(result.failed, 0); /* refused twice, and then not */
    assert_int_equal(result.answered, REQUESTS);
    assert_int_equal(result.latency.count, REQUESTS);
    assert_int_equal(result.service.count, 3 * REQUESTS);
    assert_true(result.latency.min >= 2 * RETRY_MS * 1000);
    assert_true(result.service.min < RETRY_MS * 1000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

/* Nothing else happens meanwhile that would wake the thread. */
TEST_THAT(lone_retry_comes_when_it_is_due)
{
    enum { RETRIES = 6, RETRY_MS = 20 };
    struct refusals refusals = {.wanted = RETRIES};
    struct toy_server *server = serve(refuse_first, &refusals);
    struct probe probe;
    probe_init(&probe, 1);
    probe.retry_ms = RETRY_MS;
    probe.sendings_max = 10;
    struct load_options options = probe_options(toy_url(server));
    options.requests = 1;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.retries, RETRIES);
    assert_true(result.latency.max >= RETRIES * RETRY_MS * 1000);
    assert_true(result.latency.max < RETRIES * RETRY_MS * 1000 * 3);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(retry_after_reaches_the_workload)
{
    struct refusals refusals = {.wanted = 1};
    struct toy_server *server = serve(refuse_first, &refusals);
    struct probe probe;
    probe_init(&probe, 1);
    struct load_options options = probe_options(toy_url(server));
    options.requests = 1;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(probe.entries[0].status, 503);
    assert_int_equal(probe.entries[0].retry_after_ms, 2000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(retries_finish_after_the_duration_has_ended)
{
    struct refusals refusals = {.wanted = 1};
    struct toy_server *server = serve(refuse_first, &refusals);
    struct probe probe;
    probe_init(&probe, NUMBERS_MAX);
    probe.retry_ms = 300;
    probe.sendings_max = 10;
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 500;
    options.duration_ms = 200;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.completed + result.dropped, 100); /* a busy machine drops some */
    assert_true(result.completed > 0);
    assert_int_equal(result.sent, 2 * result.completed);
    assert_int_equal(result.unfinished, 0);
    assert_true(result.duration_us >= probe.retry_ms * 1000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

/* Nobody listens: each client knocks with its one request until it gives up. */
TEST_THAT(closed_client_waits_for_its_retry_before_it_asks_anew)
{
    enum { CLIENTS = 8, RETRY_MS = 20, SENDINGS = 5 };
    struct toy_server *server = serve(NULL, NULL);
    struct load_options options = probe_options(toy_url(server));
    toy_stop(server);
    for (int threads = 1; threads <= 2; threads++) {
        struct probe probe;
        probe_init(&probe, NUMBERS_MAX);
        probe.retry_ms = RETRY_MS;
        probe.sendings_max = SENDINGS;
        options.connections = CLIENTS;
        options.threads = threads;
        options.duration_ms = 200;
        struct load_result result = probe_run(&options, &probe);
        uint64_t begun = result.sent - result.retries;
        /* 80 ms for each: three at most in the time */
        assert_in_range(begun, CLIENTS, 3 * CLIENTS);
        assert_int_equal(result.completed, begun);
        assert_int_equal(result.sent, begun * SENDINGS);
        load_result_free(&result);
        probe_free(&probe);
    }
}

TEST_THAT(retries_beyond_the_grace_are_unfinished)
{
    struct refusals refusals = {.wanted = 1000};
    struct toy_server *server = serve(refuse_first, &refusals);
    struct probe probe;
    probe_init(&probe, NUMBERS_MAX);
    probe.retry_ms = 60000;
    probe.sendings_max = 10;
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 500;
    options.duration_ms = 200;
    options.timeout_ms = 300;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.sent + result.dropped, 100);
    assert_true(result.sent > 0);
    assert_int_equal(result.completed, 0);
    assert_int_equal(result.unfinished, result.sent);
    assert_int_equal(result.failed, result.sent); /* "not now" was their last answer */
    assert_true(load_rate(&result) == 0);
    assert_int_equal(result.latency.count, 0);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

/* Waits until the server has read n requests: what the client left behind is still on its way. */
static void await_requests(struct toy_server *server, uint64_t n)
{
    for (int ms = 0; atomic_load(&toy_counts(server)->requests) < n && ms < 10000; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(atomic_load(&toy_counts(server)->requests), n);
}

static void run_abandoning(uint64_t seed, struct probe *probe, int threads)
{
    enum { REQUESTS = 1000 };
    struct toy_server *server = serve(NULL, NULL);
    probe_init(probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.requests = REQUESTS;
    options.connections = 8;
    options.threads = threads;
    options.abandon_pct = 30;
    options.seed = seed;
    struct load_result result = probe_run(&options, probe);
    assert_int_equal(result.completed, REQUESTS);
    assert_int_equal(result.ends[LOAD_ABANDONED] + result.ends[LOAD_ANSWERED], REQUESTS);
    assert_in_range(result.ends[LOAD_ABANDONED], 240, 360);
    assert_int_equal(result.latency.count, result.ends[LOAD_ANSWERED]);
    assert_true(result.connects > result.ends[LOAD_ABANDONED] / 2); /* a new one after each */
    await_requests(server, REQUESTS); /* abandoned or not, the server got them all */
    load_result_free(&result);
    toy_stop(server);
}

TEST_THAT(abandoned_requests_are_chosen_by_the_seed)
{
    struct probe first, again, other;
    run_abandoning(42, &first, 1);
    run_abandoning(42, &again, 4);
    run_abandoning(43, &other, 1);
    int different = 0, at_once = 0, abandoned = 0;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(first.entries[i].end, again.entries[i].end);
        different += first.entries[i].end != other.entries[i].end;
        if (first.entries[i].end != LOAD_ABANDONED)
            continue;
        abandoned++;
        at_once += first.entries[i].answered_us - first.entries[i].sent_us < 1;
    }
    assert_true(different > 100);
    assert_in_range(at_once, abandoned / 4, abandoned * 3 / 4);
    probe_free(&first);
    probe_free(&again);
    probe_free(&other);
}

TEST_THAT(only_the_first_sending_is_abandoned)
{
    enum { REQUESTS = 300 };
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    probe.retry_ms = 1;
    probe.sendings_max = 5;
    struct load_options options = probe_options(toy_url(server));
    options.requests = REQUESTS;
    options.abandon_pct = 100;
    struct load_result result = probe_run(&options, &probe);
    assert_int_equal(result.ends[LOAD_ABANDONED], REQUESTS);
    assert_int_equal(result.ends[LOAD_ANSWERED], REQUESTS);
    assert_int_equal(result.completed, REQUESTS);
    await_requests(server, 2 * REQUESTS);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}
