/* The plain workload: what is sent, and what is said of it. */
#include "http_load_run.h"
#include "text_width.h"
#include "load_asserts.h"

#include <stdlib.h>
#include <string.h>

static void remember_request(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    snprintf(ctx, LOAD_REQUEST_MAX, "%s", request->text);
    toy_ok(reply, "");
}

TEST_THAT(http_load_sends_the_request_asked_for)
{
    static const char *const headers[] = {"X-One: 1", "Accept: */*", NULL};
    struct http_load_request request = {.body = "payload", .headers = headers};
    char seen[LOAD_REQUEST_MAX] = "";
    struct toy_server *server = serve(remember_request, seen);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.requests = 20;
    FILE *out = tmpfile();
    assert_int_equal(http_load_main(&request, &options, out, &result), 0);
    assert_int_equal(result.status[200], 20);
    assert_true(ftell(out) > 100);
    fclose(out);
    load_result_free(&result);
    toy_stop(server);
    assert_int_equal(strncmp(seen, "POST / HTTP/1.1\r\nX-One: 1\r\nAccept: */*\r\nHost: 127.", 49),
                     0);
    assert_non_null(strstr(seen, "\r\nContent-Length: 7\r\n\r\npayload"));
}

/* Each body "u0 <uuid>", "u1 <uuid>" ..., of the length that its head says. */
struct templated {
    bool seen[20], wrong;
};

static void check_templated(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    struct templated *templated = ctx;
    const char *length = strstr(request->text, "Content-Length: ");
    const char *header = strstr(request->text, "X-Number: ");
    int number = -1;
    sscanf(request->body, "u%d ", &number);
    bool right = number >= 0 && number < 20 && length != NULL && header != NULL &&
                 strtoul(length + 16, NULL, 10) == strlen(request->body) &&
                 atoi(header + 10) == number && strlen(strchr(request->body, ' ')) == 37;
    templated->wrong = templated->wrong || !right || templated->seen[number];
    if (right)
        templated->seen[number] = true;
    toy_ok(reply, "x");
}

TEST_THAT(http_load_fills_in_placeholders)
{
    static const char *const headers[] = {"X-Number: {{seq}}", NULL};
    struct http_load_request request = {.body = "u{{seq}} {{uuid}}", .headers = headers};
    struct templated templated = {0};
    struct toy_server *server = serve(check_templated, &templated);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.requests = 20;
    assert_int_equal(http_load_main(&request, &options, NULL, &result), 0);
    assert_int_equal(result.status[200], 20);
    load_result_free(&result);
    toy_stop(server);
    assert_false(templated.wrong);
    for (int i = 0; i < 20; i++)
        assert_true(templated.seen[i]);
}

static void answer_404(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    static const char no[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    (void)ctx;
    (void)request;
    reply->bytes = no;
    reply->length = sizeof no - 1;
}

/* An error is an error however quickly it is answered, and nobody's refusals are no rate. */
TEST_THAT(server_that_fails_everything_keeps_no_threshold)
{
    struct toy_server *server = serve(answer_404, NULL);
    struct threshold errors, rate;
    char message[200];
    assert_int_equal(threshold_parse("errors<0.1%", &errors, message, sizeof message), 0);
    assert_int_equal(threshold_parse("rate>0", &rate, message, sizeof message), 0);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.requests = 20;
    assert_int_equal(
        http_load_main(&(struct http_load_request){.thresholds = &errors, .n_thresholds = 1},
                       &options, NULL, &result),
        EXIT_BROKEN);
    assert_int_equal(result.failed, 20);
    assert_true(load_rate(&result) > 0); /* they are answers */
    load_result_free(&result);
    toy_stop(server); /* from now on connections are refused */
    struct threshold_figures figures;
    double value;
    http_load_main(&(struct http_load_request){0}, &options, NULL, &result);
    assert_int_equal(result.ends[LOAD_NOT_SENT], 20);
    assert_true(load_rate(&result) == 0);
    figures = threshold_figures_at_end(&result, NULL);
    assert_false(threshold_kept(&rate, &figures, &value));
    load_result_free(&result);
}

TEST_THAT(http_load_refuses_a_malformed_request)
{
    static const char *const smuggled[] = {"X: y\r\nZ: 1", NULL}, *const nameless[] = {"x", NULL};
    char large[LOAD_REQUEST_MAX + 1], message[256];
    memset(large, 'b', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    struct load_options options = probe_options("http://127.0.0.1:1/");
    struct http_load *load;
    const struct http_load_request bad[] = {{.method = "get it"},  {.method = ""},
                                            {.headers = smuggled}, {.headers = nameless},
                                            {.body = "{{now}}"},   {.body = large}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(http_load_open(&bad[i], &options, &load, message, sizeof message),
                         EXIT_USAGE);
}

/* The text of a load that ends with that status. */
static const char *said(const struct load_options *options, int status, struct load_result *result)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_int_equal(http_load_main(&(struct http_load_request){0}, options, out, result), status);
    fclose(out);
    return text;
}

/* Times have units, and no line is wider than a terminal of 80 columns. */
TEST_THAT(figures_have_units_and_fit_80_columns)
{
    struct toy_server *server = serve(NULL, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.mode = LOAD_RATE;
    options.rate = 2000;
    options.requests = 400;
    const char *text = said(&options, 0, &result);
    assert_int_equal(strncmp(text, "400 answers in ", 15), 0);
    assert_non_null(strstr(text, " per second, "));
    const char *latency = strstr(text, "\n  latency ") + strlen("\n  latency ");
    double figure;
    char unit[4];
    assert_int_equal(sscanf(latency, "%lf %3s", &figure, unit), 2);
    assert_true(strcmp(unit, "us") == 0 || strcmp(unit, "ms") == 0 || strcmp(unit, "s") == 0);
    if (columns_of(text) > 80)
        fail_msg("wider than 80 columns:\n%s", text);
    load_result_free(&result);
    toy_stop(server);
}

static json_t *run_of(json_t *report)
{
    return json_array_get(json_object_get(report, "runs"), 0);
}

TEST_THAT(load_without_an_answer_has_no_latency)
{
    struct toy_server *server = serve(answer_404, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.requests = 10;
    toy_stop(server);
    const char *text = said(&options, 1, &result);
    static const char none[] = "         -         -         -         -         -\n";
    char line[80];
    assert_non_null(strstr(text, strcat(strcpy(line, "  latency "), none)));
    assert_non_null(strstr(text, strcat(strcpy(line, "  service "), none)));
    json_t *report = http_load_to_json(&(struct http_load_request){0}, &options, "", &result);
    const json_t *latency = json_object_get(run_of(report), "latency_us");
    const json_t *service = json_object_get(run_of(report), "service_us");
    assert_true(json_is_null(json_object_get(latency, "p50")));
    assert_true(json_is_null(json_object_get(latency, "max")));
    assert_true(json_is_null(json_object_get(service, "p99_9")));
    json_decref(report);
    load_result_free(&result);
}

static void answer_in_400_ms(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "ok");
    reply->delay_us = 400000;
}

TEST_THAT(answers_after_the_end_are_told)
{
    struct toy_server *server = serve(answer_in_400_ms, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.duration_ms = 200;
    assert_non_null(strstr(said(&options, 0, &result), "outside: 4 answers after the end, not in"));
    load_result_free(&result);
    options.duration_ms = 0;
    options.requests = 4;
    assert_null(strstr(said(&options, 0, &result), "outside"));
    load_result_free(&result);
    toy_stop(server);
}

/* Parses one threshold, and runs with --abort-after. Returns the exit status. */
static int run_with_abort(const char *text, int64_t abort_after_ms, struct load_options *options,
                          struct load_result *result)
{
    struct threshold threshold;
    char message[200];
    assert_int_equal(threshold_parse(text, &threshold, message, sizeof message), 0);
    const struct http_load_request request = {
        .thresholds = &threshold, .n_thresholds = 1, .abort_after_ms = abort_after_ms};
    return http_load_main(&request, options, NULL, result);
}

/* Right after the warm-up nothing is measured yet: no answer, in hardly any time. */
TEST_THAT(healthy_load_is_not_ended_after_its_warm_up)
{
    struct toy_server *server = serve(NULL, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.mode = LOAD_CLOSED;
    options.warmup_ms = 300;
    options.duration_ms = 1000;
    assert_int_equal(run_with_abort("rate>1", 100, &options, &result), 0);
    assert_true(result.measured_us > 500000);
    load_result_free(&result);
    toy_stop(server);
}

static void answer_others_late(void *ctx, const struct toy_request *request,
                               struct toy_reply *reply)
{
    (void)ctx;
    toy_ok(reply, "");
    reply->delay_us = request->number == 0 ? 1000 : 3000000;
}

/* Answers that come after the end mend the figure, and not the run. */
TEST_THAT(load_that_a_threshold_ended_is_no_success)
{
    struct toy_server *server = serve(answer_others_late, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    options.mode = LOAD_CLOSED;
    options.connections = 2;
    options.duration_ms = 60000;
    assert_int_equal(run_with_abort("max>1s", 100, &options, &result), EXIT_BROKEN);
    assert_true(result.latency.max > 1000000);
    assert_true(result.duration_us < 60000000);
    load_result_free(&result);
    toy_stop(server);
}

static bool stop_soon(void *ctx, const struct load_progress *now)
{
    if (now->answered > 0)
        atomic_store((atomic_bool *)ctx, true);
    return true;
}

TEST_THAT(interrupted_load_says_so)
{
    struct toy_server *server = serve(NULL, NULL);
    struct load_options options = probe_options(toy_url(server));
    struct load_result result;
    atomic_bool stop = false;
    options.stop = &stop;
    for (int stopped = 0; stopped < 2; stopped++) {
        options.requests = stopped ? 0 : 10;
        options.progress = stopped ? stop_soon : NULL;
        options.progress_ctx = &stop;
        const char *text = said(&options, 0, &result);
        assert_int_equal(strncmp(text, "INTERRUPTED: ", 13) == 0, stopped);
        json_t *report = http_load_to_json(&(struct http_load_request){0}, &options, "", &result);
        const json_t *interrupted = json_object_get(run_of(report), "interrupted");
        assert_true(stopped ? json_is_true(interrupted) : json_is_false(interrupted));
        json_decref(report);
        load_result_free(&result);
    }
    toy_stop(server);
}
