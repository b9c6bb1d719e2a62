/* What comes out: the JSON that others rely on, and the table. */
#include "judged_command.h"
#include "text_width.h"
#include "report_rig.h"

#include <sys/stat.h>
#include <unistd.h>

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

TEST_FIXTURE(open_report, close_report);

TEST_THAT(json_has_the_shape_of_the_contract)
{
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
        {"runs/0/latency_us/p99_9", 999},
        {"runs/0/latency_us/max", 1000},
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
    assert_true(json_is_null(at(json, "runs/0/service_us/max"))); /* none was measured */
    assert_true(json_is_false(at(json, "runs/0/claims_safe")));
    assert_true(json_is_false(at(json, "runs/0/lanes")));
    assert_true(json_is_false(at(json, "runs/0/verdict/safe")));
    assert_true(json_real_value(at(json, "runs/0/load/duration_s")) == 1.2);
    assert_true(json_real_value(at(json, "runs/0/throughput_rps")) == 1666.67);
    assert_true(json_real_value(at(json, "runs/0/accepted_per_s")) == 83.33);
    json_decref(json);
}

/* Each count under its own name: none stands in for another. */
TEST_THAT(json_counts_how_requests_ended)
{
    static const char *const names[] = {"dropped",           "warmup",    "unfinished",
                                        "retries",           "abandoned", "not_sent",
                                        "connection_broken", "timed_out", "bad_answers"};
    add_run(&workload_sale, "none", false);
    struct load_result *load = &report->runs[0].load;
    load->dropped = 1;
    load->measured = load->completed - 2;
    load->unfinished = 3;
    load->retries = 4;
    load->ends[LOAD_ABANDONED] = 5;
    load->ends[LOAD_NOT_SENT] = 6;
    load->ends[LOAD_BROKEN] = 7;
    load->ends[LOAD_TIMED_OUT] = 8;
    load->ends[LOAD_BAD_ANSWER] = 9;
    json_t *json = report_to_json(report);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(json_integer_value(json_object_get(at(json, "runs/0/load"), names[i])),
                         i + 1);
    json_decref(json);
}

TEST_THAT(run_stopped_before_its_load_keeps_the_shape)
{
    add_run(&workload_sale, "redis-token", true);
    load_result_free(&report->runs[0].load);
    report->runs[0].load = (struct load_result){0};
    report->runs[0].has_load = false;
    json_t *json = report_to_json(report);
    assert_int_equal(json_integer_value(at(json, "runs/0/load/sent")), 0);
    assert_true(json_is_null(at(json, "runs/0/latency_us/p99")));
    assert_true(json_is_object(at(json, "runs/0/status")));
    json_decref(json);
}

TEST_THAT(safe_run_has_an_empty_counterexample)
{
    add_run(&workload_sale, "redis-token", true);
    json_t *json = report_to_json(report);
    json_t *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_true(json_is_true(json_object_get(json, "as_claimed")));
    assert_int_equal(json_array_size(json_object_get(run, "counterexample")), 0);
    assert_true(json_is_array(json_object_get(run, "counterexample")));
    json_decref(json);
}

TEST_THAT(table_begins_with_the_verdict_and_ends_with_the_proof)
{
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    add_run(&workload_sale, "redis-token", true);
    char *text = written(report_text);
    assert_int_equal(strncmp(text, "As claimed.", 11), 0);
    assert_non_null(strstr(text, "OVERSOLD 73"));
    assert_null(strstr(text, "minor units"));
    assert_true(columns_of(text) <= 80);
    assert_non_null(strstr(one_line(text), "txn-a read 37 and wrote 36; txn-b had read 37 too and "
                                           "wrote 36: one sale vanished."));
    assert_null(strchr(text, '\033'));
    free(text);
}

TEST_THAT(table_says_why_requests_were_refused_for_now)
{
    add_run(&workload_sale, "redis-token", true);
    strcpy(report->runs[0].tally.refused_for_now, "503 Redis is away");
    char *text = written(report_text);
    assert_non_null(
        strstr(text, "sale under redis-token: first refusal for now: 503 Redis is away"));
    assert_null(strstr(text, "first failure"));
    free(text);
}

/* Its load is shown and written all the same. */
TEST_THAT(run_without_an_audit_has_no_verdict_in_any_report)
{
    char message[200];
    assert_int_equal(threshold_parse("p(99)<1s", &options.thresholds[0], message, sizeof message),
                     0);
    assert_int_equal(
        threshold_parse("oversold==0", &options.thresholds[1], message, sizeof message), 0);
    options.n_thresholds = 2;
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].judged = false;
    strcpy(report->runs[0].message, "GET /livez at x: no time left");
    assert_int_equal(judged_exit_status(report), EXIT_FAILURE);

    json_t *json = report_to_json(report);
    assert_true(json_is_null(at(json, "runs/0/verdict")));
    assert_true(json_is_null(at(json, "runs/0/actual")));
    assert_string_equal(json_string_value(at(json, "runs/0/not_judged")),
                        "GET /livez at x: no time left");
    assert_int_equal(json_integer_value(at(json, "runs/0/load/completed")), 2000);
    assert_true(json_is_true(at(json, "runs/0/thresholds/0/kept")));
    assert_true(json_is_false(at(json, "runs/0/thresholds/1/kept")));
    json_decref(json);

    char *text = written(report_text), *page = written(report_to_html),
         *csv = written(report_to_csv);
    assert_non_null(strstr(one_line(text), "NOT JUDGED: the audit could not be read: sale under "
                                           "redis-token: GET /livez at x: no time left."));
    assert_non_null(strstr(page, "✗ NOT JUDGED"));
    assert_non_null(strstr(page, "<td>-</td><td>-</td><td>-</td><td>-</td><td>-</td>"));
    assert_non_null(strstr(csv, ",,,,,,,,,,")); /* the verdict's figures */
    free(text);
    free(page);
    free(csv);
}

/* The widest figures that a demo has, and what they are counted in. */
TEST_THAT(money_is_in_minor_units_and_fits_80_columns)
{
    add_run(&workload_accounts, "mutex", false);
    struct run *run = &report->runs[0];
    run->instances = 2;
    run->verdict.lost_amount = 12345678;
    run->verdict.lost_updates = 12345;
    run->textbook = (struct textbook){.pairs = 1, .lost = 1, .final = 700, .expected = 500};
    char *text = written(report_text);
    assert_non_null(strstr(text, "mutex (2 instances)  LOST 12,345,678   700        12,345"));
    assert_non_null(strstr(text, "amounts: minor units"));
    if (columns_of(text) > 80)
        fail_msg("wider than 80 columns:\n%s", text);
    free(text);
}

/* Where nothing is due, nobody waits for it. */
TEST_THAT(closed_run_says_what_its_latency_does_not_show)
{
    add_run(&workload_sale, "redis-token", true);
    char *text = written(report_text);
    assert_null(strstr(text, "closed load:"));
    free(text);
    report->runs[0].mode = LOAD_CLOSED;
    text = written(report_text);
    assert_non_null(strstr(text, "closed load: each connection waits"));
    free(text);
}

TEST_THAT(broken_claim_is_the_headline)
{
    add_run(&workload_sale, "redis-token", true);
    lose(&report->runs[0]);
    add_run(&workload_sale, "none", false);
    char headline[1000];
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline,
                        "NOT AS CLAIMED: sale under redis-token: OVERSOLD 73, but it claims to be "
                        "safe; sale under none: OK, but it was expected to lose.");
}

/* The lock server is away, say: no word about the lock. */
TEST_THAT(a_run_in_which_all_were_refused_says_why_in_the_headline)
{
    char headline[1000];
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].accepted = 0;
    report->runs[0].verdict.unknown = 50;
    strcpy(report->runs[0].tally.refused_for_now, "503 Redis is away");
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline, "NOT AS CLAIMED: sale under redis-token: nothing was accepted, "
                                  "requests were refused for now (503 Redis is away).");
}

TEST_THAT(failed_requests_do_not_hide_a_broken_claim)
{
    char headline[1000];
    add_run(&workload_sale, "redis-token", true);
    report->runs[0].failed = 3;
    assert_int_equal(judged_exit_status(report), EXIT_FAILURE);
    lose(&report->runs[0]);
    assert_int_equal(judged_exit_status(report), EXIT_BROKEN);
    report_headline(report, headline, sizeof headline);
    assert_non_null(strstr(headline, "OVERSOLD 73"));
}

/* "Lost updates: none" would say the opposite of what it means. */
TEST_THAT(guard_called_none_cannot_be_read_as_nobody)
{
    add_run(&workload_sale, "none", false);
    lose(&report->runs[0]);
    add_run(&workload_sale, "redis-token", true);
    char headline[1000];
    report_headline(report, headline, sizeof headline);
    assert_string_equal(headline,
                        "As claimed. Caught losing: 'none'. Lost nothing: 'redis-token'.");
}

TEST_THAT(report_stopped_between_two_guards_claims_nothing)
{
    atomic_bool stop = true;
    char headline[1000];
    options.stop = &stop;
    add_run(&workload_sale, "redis-token", true);
    report_headline(report, headline, sizeof headline);
    assert_false(report_as_claimed(report));
    assert_string_equal(headline, "INTERRUPTED: not everything was tried.");
}

TEST_THAT(report_without_runs_claims_nothing)
{
    assert_false(report_as_claimed(report));
}

TEST_THAT(long_headline_is_cut_not_overrun)
{
    char headline[64];
    for (int i = 0; i < 20; i++)
        add_run(&workload_sale, "none", false);
    report_headline(report, headline, sizeof headline);
    assert_int_equal(strlen(headline), sizeof headline - 1);
}

TEST_THAT(reports_are_written_into_folders_that_are_made)
{
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
