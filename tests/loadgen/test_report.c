/* What comes out: the JSON that others rely on, the table, the page. */
#include "../../loadgen/compare.h"
#include "../../loadgen/report.h"
#include "../../loadgen/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static struct options options;
static struct report *report;

/* One run as it comes out of run_once(), without the network. */
static void add_run(const struct workload *workload, const char *guard, bool claims_safe)
{
    struct run *run = &report->runs[report->n_runs++];
    *run = (struct run){.workload = workload,
                        .options = &options,
                        .id = "00c0ffee",
                        .claims_safe = claims_safe,
                        .instances = 2,
                        .accepted = 100,
                        .refused = 1900,
                        .initial = 100,
                        .expected = 100,
                        .actual = 100};
    snprintf(run->guard, sizeof run->guard, "%s", guard);
    assert_int_equal(hist_init(&run->load.latency), 0);
    assert_int_equal(hist_init(&run->load.service), 0);
    for (int i = 1; i <= 100; i++)
        hist_record(&run->load.latency, i * 10);
    run->load.sent = run->load.completed = run->load.measured = 2000;
    run->load.duration_us = run->load.measured_us = 1200000;
    run->load.status[201] = 100;
    run->load.status[409] = 1900;
    run->has_load = true;
    assert_int_equal(tally_init(&run->tally, 1, 1, 0, 1000), 0);
    for (int i = 0; i < 1900; i++)
        tally_count_problem(&run->tally, "sold-out");
}

static void lose(struct run *run)
{
    run->verdict = (struct verdict){.oversold = 73, .lost_updates = 61, .lost_amount = 61};
    run->actual = 173;
    run->has_counterexample = true;
    for (int i = 0; i < 2; i++)
        run->counterexample[i] = (struct ledger_row){.resource = "item:1",
                                                     .txn_id = "txn-a",
                                                     .instance = "shop-1",
                                                     .delta = -1,
                                                     .before = 37,
                                                     .after = 36,
                                                     .version_before = 63,
                                                     .at_us = 5 + i};
    strcpy(run->counterexample[1].txn_id, "txn-b");
}

static int open_report(void **state)
{
    (void)state;
    options = (struct options){.seed = 42, .connections = 64, .accounts = 4, .no_color = true};
    strcpy(options.command, "loadgen sale <&>");
    report = calloc(1, sizeof *report);
    if (report == NULL)
        return -1;
    report->options = &options;
    report->workload = "sale";
    environment_read(&report->environment);
    return 0;
}

static int close_report(void **state)
{
    (void)state;
    report_free(report);
    free(report);
    return 0;
}

/* What one of the writers wrote; to be freed. */
static char *written(void (*writer)(const struct report *report, FILE *out))
{
    static char *text;
    static size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    writer(report, out);
    fclose(out);
    return text;
}

/* "runs/0/verdict/oversold" */
static const json_t *at(const json_t *json, const char *path)
{
    char text[200];
    snprintf(text, sizeof text, "%s", path);
    for (char *name = strtok(text, "/"); name != NULL; name = strtok(NULL, "/"))
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(name))
                                   : json_object_get(json, name);
    if (json == NULL)
        print_error("%s is missing\n", path);
    return json;
}

static void json_has_the_shape_of_the_contract(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        json_int_t value;
    } integers[] = {
        {"seed", 42},
        {"runs/0/instances", 2},
        {"runs/0/verdict/oversold", 73},
        {"runs/0/verdict/undersold", 0},
        {"runs/0/verdict/lost_updates", 61},
        {"runs/0/verdict/lost_amount", 61},
        {"runs/0/verdict/duplicates", 0},
        {"runs/0/verdict/negative", 0},
        {"runs/0/verdict/unknown", 0},
        {"runs/0/counterexample/1/before", 37},
        {"runs/0/counterexample/1/after", 36},
        {"runs/0/counterexample/1/version_before", 63},
        {"runs/0/counterexample/1/at_us", 6},
        {"runs/0/load/connections", 64},
        {"runs/0/load/sent", 2000},
        {"runs/0/load/completed", 2000},
        {"runs/0/load/dropped", 0},
        {"runs/0/accepted", 100},
        {"runs/0/latency_us/p50", 500},
        {"runs/0/latency_us/p90", 900},
        {"runs/0/latency_us/p99", 990},
        {"runs/0/latency_us/p99_9", 1000},
        {"runs/0/latency_us/max", 1000},
        {"runs/0/service_us/max", 0},
        {"runs/0/status/201", 100},
        {"runs/0/status/409", 1900},
        {"runs/0/problems/sold-out", 1900},
    };
    static const struct {
        const char *path, *value;
    } texts[] = {
        {"command", "loadgen sale <&>"},
        {"workload", "sale"},
        {"runs/0/guard", "none"},
        {"runs/0/load/mode", "burst"},
        {"runs/0/counterexample/0/txn_id", "txn-a"},
        {"runs/0/counterexample/1/instance", "shop-1"},
    };
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    json_t *json = report_to_json(report);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        assert_true(json_is_integer(at(json, integers[i].path)));
        assert_int_equal(json_integer_value(at(json, integers[i].path)), integers[i].value);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(json_string_value(at(json, texts[i].path)), texts[i].value);
    assert_true(json_is_true(at(json, "as_claimed")));
    assert_true(json_is_false(at(json, "runs/0/claims_safe")));
    assert_true(json_is_false(at(json, "runs/0/lanes")));
    assert_true(json_is_false(at(json, "runs/0/verdict/safe")));
    assert_true(json_real_value(at(json, "runs/0/load/duration_s")) == 1.2);
    assert_true(json_real_value(at(json, "runs/0/throughput_rps")) == 1666.67);
    assert_true(json_real_value(at(json, "runs/0/accepted_per_s")) == 83.33);
    json_decref(json);
}

static void run_stopped_before_its_load_keeps_the_shape(void **state)
{
    (void)state;
    add_run(&workload_sale, "redis-token", true);
    load_result_free(&report->runs[0].load);
    report->runs[0].load = (struct load_result){0};
    report->runs[0].has_load = false;
    json_t *json = report_to_json(report);
    assert_int_equal(json_integer_value(at(json, "runs/0/load/sent")), 0);
    assert_true(json_is_integer(at(json, "runs/0/latency_us/p99")));
    assert_true(json_is_object(at(json, "runs/0/status")));
    json_decref(json);
}

static void safe_run_has_an_empty_counterexample(void **state)
{
    (void)state;
    add_run(&workload_sale, "redis-token", true);
    json_t *json = report_to_json(report);
    json_t *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_true(json_is_true(json_object_get(json, "as_claimed")));
    assert_int_equal(json_array_size(json_object_get(run, "counterexample")), 0);
    assert_true(json_is_array(json_object_get(run, "counterexample")));
    json_decref(json);
}

static void table_begins_with_the_verdict_and_ends_with_the_proof(void **state)
{
    (void)state;
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    add_run(&workload_sale, "redis-token", true);
    char *text = written(report_text);
    assert_int_equal(strncmp(text, "As claimed.", 11), 0);
    assert_non_null(strstr(text, "OVERSOLD 73"));
    assert_non_null(strstr(text, "txn-a read 37 and wrote 36; txn-b had read 37 too and wrote 36: "
                                 "one sale vanished."));
    assert_null(strchr(text, '\033'));
    free(text);
}

static void broken_claim_is_the_headline(void **state)
{
    (void)state;
    add_run(&workload_sale, "redis-token", true);
    lose(&report->runs[0]);
    add_run(&workload_sale, "none", false);
    char headline[1000];
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline,
                        "NOT AS CLAIMED: sale under redis-token: OVERSOLD 73, but it claims to be "
                        "safe; sale under none: OK, but it claims nothing and was expected to "
                        "lose.");
}

static void failed_requests_do_not_hide_a_broken_claim(void **state)
{
    (void)state;
    char headline[1000];
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].failed = 3;
    assert_int_equal(compare_exit_status(report), EXIT_FAILURE);
    lose(&report->runs[0]);
    assert_int_equal(compare_exit_status(report), COMPARE_BROKEN);
    report_headline(report, headline, sizeof headline);
    assert_non_null(strstr(headline, "OVERSOLD 73"));
}

/* "Lost updates: none" would say the opposite of what it means. */
static void guard_called_none_cannot_be_read_as_nobody(void **state)
{
    (void)state;
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    add_run(&workload_sale, "redis-token", true);
    char headline[1000];
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline,
                        "As claimed. Caught losing: 'none'. Lost nothing: 'redis-token'.");
}

static void report_stopped_between_two_guards_claims_nothing(void **state)
{
    (void)state;
    atomic_bool stop = true;
    char headline[1000];
    options.stop = &stop;
    add_run(&workload_sale, "redis-token", true);
    report_headline(report, headline, sizeof headline);
    assert_false(report_as_claimed(report));
    assert_string_equal(headline, "INTERRUPTED: not everything was tried.");
}

static void report_without_runs_claims_nothing(void **state)
{
    (void)state;
    assert_false(report_as_claimed(report));
}

static void long_headline_is_cut_not_overrun(void **state)
{
    (void)state;
    char headline[64];
    for (int i = 0; i < 20; i++)
        add_run(&workload_sale, "none", false);
    report_headline(report, headline, sizeof headline);
    assert_int_equal(strlen(headline), sizeof headline - 1);
}

static void page_needs_nothing_from_elsewhere_and_escapes(void **state)
{
    (void)state;
    static const char *const outside[] = {"http://", "https://", "src=", "<link",
                                          "<script", "@import",  "url("};
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    strcpy(report->runs[0].counterexample[0].txn_id, "<b>'\"&");
    add_run(&workload_accounts, "redis-token", true);
    char *page = written(report_to_html);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_null(strstr(page, outside[i]));
    assert_non_null(strstr(page, "loadgen sale &lt;&amp;&gt;"));
    assert_null(strstr(page, "<b>"));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_true(strstr(page, "class='headline") < strstr(page, "<svg"));
    free(page);
}

static void text_behind_the_longest_bar_stays_on_the_picture(void **state)
{
    (void)state;
    enum { PICTURE_WIDTH = 900, DIGIT_WIDTH = 7 };
    int texts = 0;
    add_run(&workload_accounts, "none", false);
    report->runs[0].verdict =
        (struct verdict){.lost_updates = 2147483647, .lost_amount = INT64_C(123456789012345678)};
    char *page = written(report_to_html);
    static const char bar[] = "<text class='badtext' x='";
    for (const char *at_bar = strstr(page, bar); at_bar != NULL; at_bar = strstr(at_bar + 1, bar)) {
        const char *text = strchr(at_bar, '>') + 1;
        double length = (double)strcspn(text, "<");
        assert_true(atof(at_bar + strlen(bar)) + DIGIT_WIDTH * length <= PICTURE_WIDTH);
        texts++;
    }
    assert_int_equal(texts, 1);
    free(page);
}

static void reports_are_written_into_folders_that_are_made(void **state)
{
    (void)state;
    char folder[] = "/tmp/test-report-XXXXXX", json_path[100], html_path[100];
    assert_non_null(mkdtemp(folder));
    snprintf(json_path, sizeof json_path, "%s/a/b/report.json", folder);
    snprintf(html_path, sizeof html_path, "%s/a/b/report.html", folder);
    options.json = json_path;
    options.html = html_path;
    options.quiet = true;
    add_run(&workload_sale, "redis-token", true);
    assert_int_equal(report_write(report), 0);
    json_t *json = json_load_file(json_path, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    struct stat stat_of;
    assert_int_equal(stat(html_path, &stat_of), 0);
    assert_true(stat_of.st_size > 1000);
    options.json = folder; /* a folder is no file */
    assert_int_equal(report_write(report), -1);
    unlink(json_path);
    unlink(html_path);
    snprintf(json_path, sizeof json_path, "%s/a/b", folder);
    rmdir(json_path);
    snprintf(json_path, sizeof json_path, "%s/a", folder);
    rmdir(json_path);
    rmdir(folder);
}

static void numbers_read_well(void **state)
{
    (void)state;
    char out[TEXT_MAX];
    assert_string_equal(text_count(out, 0), "0");
    assert_string_equal(text_count(out, 999), "999");
    assert_string_equal(text_count(out, 1000), "1,000");
    assert_string_equal(text_count(out, -123456), "-123,456");
    assert_string_equal(text_count(out, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_string_equal(text_signed(out, 300), "+300");
    assert_string_equal(text_signed(out, -2000), "-2,000");
    assert_string_equal(text_time_us(out, 850), "850 us");
    assert_string_equal(text_time_us(out, 12340), "12.3 ms");
    assert_string_equal(text_time_us(out, 99960), "100 ms");
    assert_string_equal(text_time_us(out, 1204000), "1.20 s");
    char small[6];
    assert_string_equal(text_html(small, sizeof small, "a<b"), "a&lt;");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_report, close_report)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_has_the_shape_of_the_contract),
        TEST(run_stopped_before_its_load_keeps_the_shape),
        TEST(safe_run_has_an_empty_counterexample),
        TEST(table_begins_with_the_verdict_and_ends_with_the_proof),
        TEST(broken_claim_is_the_headline),
        TEST(failed_requests_do_not_hide_a_broken_claim),
        TEST(guard_called_none_cannot_be_read_as_nobody),
        TEST(report_stopped_between_two_guards_claims_nothing),
        TEST(report_without_runs_claims_nothing),
        TEST(long_headline_is_cut_not_overrun),
        TEST(page_needs_nothing_from_elsewhere_and_escapes),
        TEST(text_behind_the_longest_bar_stays_on_the_picture),
        TEST(reports_are_written_into_folders_that_are_made),
        TEST(numbers_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
