/* Work that was due and never sent: an error, and slower than every answer, unless it is allowed.
 */
#include "judged_command.h"
#include "http_load_run.h"
#include "load_asserts.h"
#include "report_rig.h"

enum { SERVED = 20000, DROPPED = 180000 };

/* 200,000 due, 90 % never sent, and the rest answered within 1 ms. */
static void overload(struct run *run, bool allowed)
{
    struct load_result *load = &run->load;
    hist_reset(&load->latency);
    for (int i = 0; i < SERVED; i++)
        hist_record(&load->latency, 1 + i % 1000);
    load->sent = load->completed = load->measured = load->answered = SERVED;
    load->dropped = DROPPED;
    load->dropped_errors = allowed ? 0 : DROPPED;
}

static void threshold(const char *text)
{
    char message[200];
    assert_int_equal(
        threshold_parse(text, &options.thresholds[options.n_thresholds++], message, sizeof message),
        0);
}

TEST_FIXTURE(open_report, close_report);

TEST_THAT(overload_is_no_success)
{
    char headline[1000], verdict[60];
    add_run(&workload_sale, "redis-token", true);
    assert_int_equal(judged_exit_status(report), EXIT_SUCCESS);
    overload(&report->runs[0], false);
    assert_int_equal(judged_exit_status(report), EXIT_FAILURE);
    assert_false(run_is_well(&report->runs[0]));
    assert_string_equal(run_verdict_text(&report->runs[0], verdict, sizeof verdict),
                        "DROPPED 180,000");
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline, "OVERLOADED: sale under redis-token: 180,000 of 200,000 requests "
                                  "(90 %) were due and never sent; they count as errors.");
    overload(&report->runs[0], true);
    assert_int_equal(judged_exit_status(report), EXIT_SUCCESS);
    assert_true(run_is_well(&report->runs[0]));
}

TEST_THAT(load_that_is_cut_short_is_no_success)
{
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].cut_short = true;
    assert_int_equal(judged_exit_status(report), EXIT_FAILURE);
    lose(&report->runs[0]);
    assert_int_equal(judged_exit_status(report), EXIT_BROKEN);
}

TEST_THAT(a_broken_claim_outranks_overload)
{
    char headline[1000];
    add_run(&workload_sale, "redis-token", true);
    overload(&report->runs[0], false);
    lose(&report->runs[0]);
    assert_int_equal(judged_exit_status(report), EXIT_BROKEN);
    report_headline(report, headline, sizeof headline);
    assert_non_null(strstr(headline, "NOT AS CLAIMED"));
    assert_non_null(strstr(headline, "OVERSOLD 73"));
}

TEST_THAT(what_ended_the_load_early_did_not_overload_it)
{
    add_run(&workload_sale, "redis-token", true);
    overload(&report->runs[0], false);
    report->runs[0].interrupted = true;
    assert_int_equal(run_dropped(&report->runs[0]), 0);
    report->runs[0].interrupted = false;
    report->runs[0].aborted_by = &options.thresholds[0];
    assert_int_equal(run_dropped(&report->runs[0]), 0);
    threshold("rate>0");
    assert_int_equal(judged_exit_status(report), EXIT_BROKEN); /* though its figures are good now */
    report->runs[0].aborted_by = NULL;
    overload(&report->runs[0], true);
    assert_int_equal(judged_exit_status(report), EXIT_SUCCESS);
}

/* Nine of ten have no latency at all: only the fastest tenth can be told. */
TEST_THAT(percentiles_are_of_what_was_due)
{
    add_run(&workload_sale, "redis-token", true);
    struct load_result *load = &report->runs[0].load;
    overload(&report->runs[0], false);
    assert_int_equal(load_percentile(load, 50), LOAD_NO_FIGURE);
    assert_int_equal(load_percentile(load, 99.9), LOAD_NO_FIGURE);
    assert_int_equal(load_percentile(load, 5), 500);
    assert_int_equal(load_percentile(load, 10), 1000);
    overload(&report->runs[0], true);
    assert_int_equal(load_percentile(load, 50), 500);
    assert_int_equal(load_percentile(load, 99.9), 999);
    overload(&report->runs[0], false);
    json_t *json = report_to_json(report);
    json_t *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_true(json_is_null(json_object_get(json_object_get(run, "latency_us"), "p50")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(run, "load"), "errors")),
                     DROPPED);
    json_decref(json);
}

TEST_THAT(few_values_tell_no_high_percentile)
{
    static const struct {
        double percentile;
        int needed;
    } cases[] = {{50, 5}, {90, 29}, {99, 299}, {99.9, 2995}, {99.99, 29956}};
    struct hist hist;
    assert_int_equal(hist_init(&hist), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hist_reset(&hist);
        for (int n = 1; n < cases[i].needed; n++) {
            hist_record(&hist, n);
            assert_false(hist_tells(&hist, cases[i].percentile));
        }
        hist_record(&hist, 1);
        assert_true(hist_tells(&hist, cases[i].percentile));
    }
    hist_free(&hist);
}

TEST_THAT(report_of_200_answers_shows_no_p99_9)
{
    add_run(&workload_sale, "redis-token", true);
    struct hist *latency = &report->runs[0].load.latency;
    hist_reset(latency);
    for (int i = 1; i <= 200; i++)
        hist_record(latency, i);
    json_t *json = report_to_json(report);
    json_t *us = json_object_get(json_array_get(json_object_get(json, "runs"), 0), "latency_us");
    assert_int_equal(json_integer_value(json_object_get(us, "p90")), 180);
    assert_true(json_is_null(json_object_get(us, "p99")));
    assert_true(json_is_null(json_object_get(us, "p99_9")));
    assert_int_equal(json_integer_value(json_object_get(us, "max")), 200);
    json_decref(json);
    char *text = written(report_text), *csv = written(report_to_csv);
    assert_non_null(strstr(text, "100 us    -\n"));
    assert_non_null(strstr(text, "-: too few answers"));
    assert_non_null(strstr(csv, ",100,180,,,,200\n"));
    free(text);
    free(csv);
}

TEST_THAT(thresholds_count_what_was_never_sent)
{
    static const char *const texts[] = {"errors<0.1%", "p(99)<50ms", "p(9)<50ms", "max<50ms",
                                        "avg<50ms"};
    static const bool kept[] = {false, false, true, false, false};
    double value;
    for (int i = 0; i < 5; i++)
        threshold(texts[i]);
    add_run(&workload_sale, "redis-token", true);
    overload(&report->runs[0], false);
    for (int i = 0; i < 5; i++)
        assert_int_equal(run_keeps_threshold(&report->runs[0], i, &value), kept[i]);
    assert_int_equal(judged_exit_status(report), EXIT_BROKEN);
    json_t *json = report_to_json(report);
    json_t *entry = json_array_get(
        json_object_get(json_array_get(json_object_get(json, "runs"), 0), "thresholds"), 1);
    assert_true(json_is_null(json_object_get(entry, "value")));
    json_decref(json);
    char *text = written(report_text);
    assert_non_null(strstr(text, "p(99)<50ms is never"));
    free(text);
    overload(&report->runs[0], true);
    for (int i = 0; i < 5; i++)
        assert_true(run_keeps_threshold(&report->runs[0], i, &value));
    assert_int_equal(judged_exit_status(report), EXIT_SUCCESS);
}

static void answer_after_50_ms(void *ctx, const struct toy_request *request,
                               struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "ok");
    reply->delay_us = 50000;
}

/* 400 due in 200 ms over two connections that take 50 ms for each: at most a few are sent. */
TEST_THAT(plain_load_that_was_too_much_is_a_failure)
{
    static char text[4096];
    struct toy_server *server = serve(answer_after_50_ms, NULL);
    struct load_options load = probe_options(toy_url(server));
    struct load_result result;
    load.mode = LOAD_RATE;
    load.rate = 2000;
    load.duration_ms = 200;
    load.connections = 2;
    for (int allowed = 0; allowed < 2; allowed++) {
        load.allow_dropped = allowed;
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_int_equal(http_load_main(&(struct http_load_request){0}, &load, out, &result),
                         !allowed);
        fclose(out);
        assert_true(result.dropped > 350);
        assert_int_equal(strncmp(text, "OVERLOADED: ", 12) == 0, !allowed);
        load_result_free(&result);
    }
    toy_stop(server);
}
