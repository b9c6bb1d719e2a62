/* The engine against a server that behaves: bursts, closed loops, targets, counting. */
#include "load_asserts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_THAT(burst_sends_each_number_once)
{
    enum { REQUESTS = 2000 };
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, REQUESTS);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_BURST;
    options.requests = REQUESTS;
    options.connections = 64;
    options.threads = 2;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, REQUESTS);
    assert_int_equal(result.dropped, 0);
    assert_int_equal(result.connects, 64);
    assert_int_equal(atomic_load(&toy_counts(server)->requests), REQUESTS);
    assert_int_equal(atomic_load(&toy_counts(server)->accepted), 64);
    /* All were due at the start: the last one's latency is the whole run. */
    assert_true(result.latency.max == result.duration_us);
    assert_string_equal(probe.entries[7].body, "ok");
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(few_requests_open_few_connections)
{
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, 5);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_BURST;
    options.requests = 5;
    options.connections = 64;
    options.threads = 2;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, 5);
    assert_true(atomic_load(&toy_counts(server)->accepted) <= 10); /* not 64 */
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static void answer_after_5_ms(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "late");
    reply->delay_us = 5000;
}

TEST_THAT(closed_mode_has_one_request_per_connection)
{
    struct toy_server *server = serve(answer_after_5_ms, NULL);
    struct probe probe;
    probe_init(&probe, 100000);
    struct load_options options = probe_options(toy_url(server));
    options.connections = 10;
    options.threads = 2;
    options.duration_ms = 300;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, result.completed);
    assert_int_equal(atomic_load(&toy_counts(server)->owed_max), 10);
    assert_true(result.completed >= 20 && result.completed <= 10 * 300 / 5 + 10);
    assert_true(result.service.min >= 5000);
    assert_int_equal(result.dropped, 0);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(workload_ends_the_run_early)
{
    static const enum load_mode modes[] = {LOAD_BURST, LOAD_RATE, LOAD_CLOSED};
    struct toy_server *server = serve(NULL, NULL);
    for (size_t i = 0; i < 3; i++) {
        struct probe probe;
        probe_init(&probe, 50);
        struct load_options options = probe_options(toy_url(server));
        options.mode = modes[i];
        options.rate = 10000;
        options.requests = 1000000;
        options.threads = 2;
        struct load_result result = probe_run(&options, &probe);
        assert_each_once(&probe, &result, 50);
        assert_int_equal(result.dropped, 0);
        load_result_free(&result);
        probe_free(&probe);
    }
    toy_stop(server);
}

struct watcher {
    atomic_bool stop;
    int calls, unsound;
    struct load_progress last;
};

/* A run that was ended early: what was due and not sent any more may leave gaps. */
static void assert_none_twice(const struct probe *probe, const struct load_result *result)
{
    uint64_t sent = 0;
    for (uint64_t i = 0; i < probe->max; i++) {
        assert_true(probe->entries[i].requests <= 1);
        assert_int_equal(probe->entries[i].outcomes, probe->entries[i].requests);
        sent += (uint64_t)probe->entries[i].requests;
    }
    assert_int_equal(sent, result->sent);
    assert_int_equal(result->completed, result->sent);
    assert_int_equal(result->ends[LOAD_ANSWERED], result->sent);
}

static bool watch(void *ctx, const struct load_progress *now)
{
    struct watcher *watcher = ctx;
    bool sound = now->elapsed_us > watcher->last.elapsed_us && now->due >= watcher->last.due &&
                 now->completed >= watcher->last.completed && now->completed <= now->sent &&
                 load_errors(now->ends, now->failed) == 0 && now->latency->count == now->measured;
    watcher->unsound += !sound;
    watcher->last = *now;
    watcher->last.latency = NULL;
    if (++watcher->calls == 3)
        atomic_store(&watcher->stop, true);
    return true;
}

TEST_THAT(progress_is_reported_and_stop_ends_the_run)
{
    struct toy_server *server = serve(NULL, NULL);
    struct watcher watcher = {0};
    struct probe probe;
    probe_init(&probe, 1000000);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 1000;
    options.threads = 2;
    options.stop = &watcher.stop;
    options.progress = watch;
    options.progress_ctx = &watcher;
    struct load_result result = probe_run(&options, &probe);
    assert_none_twice(&probe, &result);
    assert_true(watcher.calls >= 3);
    assert_int_equal(watcher.unsound, 0);
    assert_true(watcher.last.due >= 500 && watcher.last.sent > 0);
    assert_true(result.duration_us >= 500000 && result.duration_us < 5000000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

static bool refuse_at_third_call(void *ctx, const struct load_progress *now)
{
    int *calls = ctx;
    (void)now;
    return ++*calls < 3;
}

TEST_THAT(progress_that_says_no_ends_the_run)
{
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    int calls = 0;
    probe_init(&probe, 1000000);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_RATE;
    options.rate = 1000;
    options.duration_ms = 60000;
    options.progress = refuse_at_third_call;
    options.progress_ctx = &calls;
    struct load_result result = probe_run(&options, &probe);
    assert_none_twice(&probe, &result);
    assert_true(result.duration_us >= 500000 && result.duration_us < 30000000);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(connections_are_spread_over_targets)
{
    struct toy_server *servers[3];
    struct probe probe;
    probe_init(&probe, 600);
    struct load_options options = {0};
    for (int i = 0; i < 3; i++) {
        servers[i] = serve(NULL, NULL);
        struct load_options one = probe_options(toy_url(servers[i]));
        if (i == 0)
            options = one;
        options.targets[i] = one.targets[0];
    }
    options.n_targets = 3;
    options.connections = 12;
    options.threads = 2;
    options.mode = LOAD_RATE;
    options.rate = 3000;
    options.requests = 600;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, 600);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(atomic_load(&toy_counts(servers[i])->accepted), 4);
        /* the longest idle one is next: each of the 4 has had a turn, however slow the server */
        assert_true(atomic_load(&toy_counts(servers[i])->requests) >= 4);
        toy_stop(servers[i]);
    }
    load_result_free(&result);
    probe_free(&probe);
}

TEST_THAT(unix_socket_serves_as_target)
{
    char directory[] = "/tmp/test_load.XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/s", directory);
    struct toy_server *server = toy_start(&(struct toy_options){.unix_path = path, .backlog = 1});
    assert_non_null(server);
    struct probe probe;
    probe_init(&probe, 500);
    struct load_options options = probe_options(toy_url(server));
    options.mode = LOAD_BURST;
    options.requests = 500;
    options.connections = 100;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, 500);
    assert_int_equal(result.connects, 100);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
    rmdir(directory);
}

TEST_THAT(many_connections_all_carry_requests)
{
    int connections = getenv("TEST_FULL") != NULL ? 9000 : 1000;
    uint64_t requests = (uint64_t)connections * 5;
    struct toy_server *server = serve(NULL, NULL);
    struct probe probe;
    probe_init(&probe, requests);
    struct load_options options = probe_options(toy_url(server));
    options.connections = connections;
    options.threads = 2;
    options.requests = requests;
    options.timeout_ms = 60000;
    struct load_result result = probe_run(&options, &probe);
    assert_each_once(&probe, &result, requests);
    assert_int_equal(atomic_load(&toy_counts(server)->open_max), connections);
    load_result_free(&result);
    probe_free(&probe);
    toy_stop(server);
}

TEST_THAT(wrong_options_are_refused)
{
    struct probe probe;
    struct load_result result;
    char message[256];
    probe_init(&probe, 1);
    struct load_options good = probe_options("http://127.0.0.1:1/");
    good.requests = 1;
    struct load_options bad[8];
    for (int i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].n_targets = 0;
    bad[1].threads = 0;
    bad[2].threads = 5; /* more than connections */
    bad[3].timeout_ms = 0;
    bad[4].mode = LOAD_RATE; /* without a rate */
    bad[5].mode = LOAD_BURST, bad[5].requests = 0;
    bad[6].requests = 0; /* no bound at all */
    bad[7].abandon_pct = 101;
    for (int i = 0; i < 8; i++) {
        struct load_workload workload = probe_workload(&probe);
        message[0] = '\0';
        assert_int_equal(load_run(&bad[i], &workload, &result, message, sizeof message), -1);
        assert_true(strlen(message) > 10);
    }
    probe_free(&probe);
}
