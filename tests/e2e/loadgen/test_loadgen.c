/* The load generator's commands against the real service: verdicts, exit statuses, JSON. */
#include "text_width.h"
#include "json_schema.h"
#include "loadgen_rig.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static json_t *json_of_output(void)
{
    json_t *json = json_load_file(output, 0, NULL);
    assert_non_null(json);
    return json;
}

static int64_t verdict_of(const json_t *report, const char *field)
{
    const json_t *run = json_array_get(json_object_get(report, "runs"), 0);
    const json_t *value = json_object_get(json_object_get(run, "verdict"), field);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(sale_without_a_guard_oversells_and_with_one_is_exact)
{
    RUN(0, "sale", "--url", shop.service->url, "--guards", "none,redis-token,sql-version", "--json",
        "-");
    json_t *report = json_of_output();
    assert_true(json_is_true(json_object_get(report, "as_claimed")));
    assert_int_equal(json_array_size(json_object_get(report, "runs")), 3);
    assert_true(verdict_of(report, "oversold") > 0);
    /* Whatever was lost: the service's audit and the judge's own say the same. */
    assert_int_equal(verdict_of(report, "disagreements"), 0);
    json_decref(report);
    assert_non_null(strstr(content_of(messages), "OVERSOLD"));
}

TEST_THAT(duplicates_and_abandoned_requests_leave_one_effect_per_key)
{
    char requests[16];
    snprintf(requests, sizeof requests, "%d", (int)test_size(2000, 10000));
    for (int i = 0; i < 3; i++) {
        static const char *const workloads[] = {"sale", "accounts", "transfers"};
        static const char *const accounts[] = {"1", "4", "20"}; /* many are audited at once */
        RUN(0, workloads[i], "--accounts", accounts[i], "--url", shop.service->url, "--requests",
            requests, "--buyers", requests, "--stock", "1000", "--duplicates", "30", "--abandon",
            "5", "--json", "-", "--quiet");
        json_t *report = json_of_output();
        const json_t *run = json_array_get(json_object_get(report, "runs"), 0);
        const json_t *load = json_object_get(run, "load");
        assert_true(json_integer_value(json_object_get(load, "abandoned")) > 0);
        assert_int_equal(verdict_of(report, "unknown"), 0);
        assert_int_equal(verdict_of(report, "duplicates"), 0);
        assert_int_equal(verdict_of(report, "mismatch"), 0);
        assert_int_equal(verdict_of(report, "replay_mismatch"), 0);
        json_decref(report);
        assert_string_equal(content_of(messages), "");
    }
}

TEST_THAT(requests_at_a_rate_are_all_due_and_none_is_hidden)
{
    RUN(0, "sale", "--url", shop.service->url, "--mode", "rate", "--rate", "400", "--duration",
        "1s", "--allow-dropped", "--json", "-");
    json_t *report = json_of_output();
    const json_t *run = json_array_get(json_object_get(report, "runs"), 0);
    const json_t *load = json_object_get(run, "load");
    assert_int_equal(json_integer_value(json_object_get(load, "completed")) +
                         json_integer_value(json_object_get(load, "dropped")),
                     400);
    json_decref(report);
}

/* One connection cannot send 200,000 orders a second. */
TEST_THAT(too_much_load_is_a_failure_unless_it_is_allowed)
{
    static const char *const commands[] = {"sale", "http"};
    for (int i = 0; i < 2; i++) {
        const char *address = i == 0 ? "--url" : "--method=GET";
        RUN(1, commands[i], address, shop.service->url, "--mode", "rate", "--rate", "200000",
            "--duration", "300ms", "--connections", "1");
        assert_int_equal(strncmp(content_of(output), "OVERLOADED: ", 12), 0);
        RUN(99, commands[i], address, shop.service->url, "--mode", "rate", "--rate", "200000",
            "--duration", "300ms", "--connections", "1", "--threshold", "errors<0.1%");
        RUN(0, commands[i], address, shop.service->url, "--mode", "rate", "--rate", "200000",
            "--duration", "300ms", "--connections", "1", "--threshold", "errors<0.1%",
            "--allow-dropped");
    }
}

TEST_THAT(claim_that_does_not_hold_is_99)
{
    RUN(99, "sale", "--url", shop.service->url, "--guards", "none", "--expect", "none=safe");
    assert_int_equal(strncmp(content_of(output), "NOT AS CLAIMED", 14), 0);
}

TEST_THAT(expectation_of_a_guard_that_is_not_run_is_refused)
{
    const char *url = shop.service->url;
    RUN(2, "sale", "--url", url, "--guards", "redis-token", "--expect", "redis_token=unsafe");
    assert_non_null(strstr(content_of(messages), "--expect: 'redis_token' is not run"));
    RUN(2, "demo", "--guards", "none", "--expect", "redis-token=safe");
    RUN(1, "sale", "--url", url, "--guards", "memcached"); /* which the service has no server of */
    assert_non_null(strstr(content_of(messages), "answered 422: guard memcached cannot be used"));
    RUN(0, "sale", "--url", url, "--buyers", "10", "--expect",
        "redis-token=safe"); /* the default */
}

TEST_THAT(broken_threshold_is_99_and_can_end_the_load_early)
{
    const char *url = shop.service->url;
    RUN(0, "accounts", "--url", url, "--duration", "500ms", "--threshold", "p(99)<60s",
        "--threshold", "lost_updates==0");
    RUN(99, "accounts", "--url", url, "--duration", "500ms", "--threshold", "max<1us", "--json",
        "-");
    int64_t start_ms = test_now_ms();
    RUN(99, "accounts", "--url", url, "--duration", "2m", "--threshold", "max<1us", "--abort-after",
        "300ms");
    assert_true(test_now_ms() - start_ms < 60000);
    assert_non_null(strstr(one_line(content_of(output)), "ended early"));
    start_ms = test_now_ms();
    char live[SANDBOX_TEXT_MAX + 8];
    snprintf(live, sizeof live, "%s/livez", url);
    RUN(99, "http", live, "--duration", "2m", "--threshold", "rate>1e9", "--abort-after", "300ms");
    assert_true(test_now_ms() - start_ms < 60000);
}

TEST_THAT(plain_load_has_a_report_that_can_be_compared)
{
    char live[SANDBOX_TEXT_MAX + 8], one[SANDBOX_TEXT_MAX + 8], other[SANDBOX_TEXT_MAX + 8];
    snprintf(live, sizeof live, "%s/livez", shop.service->url);
    snprintf(one, sizeof one, "%s/one", sandbox_dir(shop.sandbox));
    snprintf(other, sizeof other, "%s/other", sandbox_dir(shop.sandbox));
    RUN(0, "http", live, "--requests", "300", "--json", one);
    assert_non_null(strstr(content_of(output), "200: 300"));
    RUN(99, "http", live, "--requests", "300", "--json", other, "--quiet", "--seed", "7",
        "--threshold", "max<1us");
    assert_string_equal(content_of(output), "");
    json_t *report = json_load_file(other, 0, NULL);
    json_t *run = json_array_get(json_object_get(report, "runs"), 0);
    json_t *threshold = json_array_get(json_object_get(run, "thresholds"), 0);
    assert_int_equal(json_integer_value(json_object_get(report, "seed")), 7);
    assert_string_equal(json_string_value(json_object_get(run, "method")), "GET");
    assert_string_equal(json_string_value(json_object_get(run, "path")), "/livez");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(run, "status"), "200")),
                     300);
    assert_true(json_real_value(json_object_get(run, "throughput_rps")) > 0);
    assert_true(json_is_false(json_object_get(threshold, "kept")));
    json_decref(report);
    RUN(0, "compare", one, other);
    assert_non_null(strstr(content_of(output), "requests/s"));
    RUN(0, "http", live, "--requests", "1", "--json", other);
    RUN(1, "compare", one, other);
    assert_non_null(strstr(content_of(messages), "different load are not compared: requests: 300 "
                                                 "and 1"));
    RUN(1, "http", live, "--requests", "1", "--json", "/dev/full", "--quiet");
}

TEST_THAT(history_shows_afterwards_what_the_run_found)
{
    const char *url = shop.service->url;
    char history[SANDBOX_TEXT_MAX + 16], audit[SANDBOX_TEXT_MAX + 16];
    snprintf(history, sizeof history, "%s/history", sandbox_dir(shop.sandbox));
    snprintf(audit, sizeof audit, "%s/audit", sandbox_dir(shop.sandbox));
    static const struct {
        const char *guard;
        int status;
    } cases[] = {{"none", 99}, {"redis-token", 0}};
    for (size_t i = 0; i < 2; i++) {
        RUN(0, "accounts", "--url", url, "--guards", cases[i].guard, "--duplicates", "20",
            "--abandon", "5", "--history", history);
        json_t *json = client_get(shop.service->port, "/v1/audit");
        assert_int_equal(json_dump_file(json, audit, 0), 0);
        json_decref(json);
        expect_exit(start((const char *const[]){"check", history, "--audit", audit, NULL}),
                    cases[i].status);
    }
    RUN(1, "check", "/nonexistent");
    RUN(2, "check");
    RUN(1, "sale", "--url", url, "--history", "/nonexistent/x");
}

TEST_THAT(report_keeps_its_published_schema)
{
    char message[300], report[SANDBOX_TEXT_MAX + 16], csv[SANDBOX_TEXT_MAX + 16];
    json_t *schema = json_load_file("loadgen/report/report.schema.json", 0, NULL);
    assert_non_null(schema);
    snprintf(report, sizeof report, "%s/report", sandbox_dir(shop.sandbox));
    snprintf(csv, sizeof csv, "%s/csv", sandbox_dir(shop.sandbox));
    RUN(0, "accounts", "--url", shop.service->url, "--guards", "none,redis-token", "--pairs", "5",
        "--threshold", "errors==0", "--json", report, "--csv", csv);
    json_t *json = json_load_file(report, 0, NULL);
    if (!schema_holds(schema, json, message, sizeof message))
        fail_msg("%s", message);
    const json_t *lock = json_object_get(
        json_object_get(json_array_get(json_object_get(json, "runs"), 1), "lock_us"), "wait");
    assert_true(json_integer_value(json_object_get(lock, "count")) > 0);
    /* What does not keep it is found. */
    json_object_set_new(json_array_get(json_object_get(json, "runs"), 0), "accepted",
                        json_string("many"));
    assert_false(schema_holds(schema, json, message, sizeof message));
    json_object_del(json_array_get(json_object_get(json, "runs"), 0), "accepted");
    assert_false(schema_holds(schema, json, message, sizeof message));
    json_decref(json);
    json_decref(schema);
    const char *text = content_of(csv);
    int lines = 0, commas = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
        commas += *text == ',';
    }
    assert_int_equal(lines, 3);
    assert_int_equal(commas % 3, 0); /* as many in each line */
}

TEST_THAT(repeated_runs_can_be_compared)
{
    const char *url = shop.service->url;
    char reports[2][SANDBOX_TEXT_MAX + 16];
    for (int i = 0; i < 2; i++) {
        snprintf(reports[i], sizeof reports[i], "%s/report-%d", sandbox_dir(shop.sandbox), i);
        RUN(0, "sale", "--url", url, "--guards", "redis-token,sql-atomic", "--buyers", "200",
            "--repeat", "3", "--json", reports[i]);
        assert_non_null(strstr(content_of(output), "sql-atomic: median of 3"));
        json_t *json = json_load_file(reports[i], 0, NULL);
        const json_t *runs = json_object_get(json, "runs");
        assert_int_equal(json_array_size(runs), 6);
        for (size_t run = 0; run < 6; run++) /* in turn */
            assert_string_equal(
                json_string_value(json_object_get(json_array_get(runs, run), "guard")),
                run % 2 == 0 ? "redis-token" : "sql-atomic");
        json_decref(json);
    }
    RUN(0, "compare", reports[0], reports[1]);
    assert_non_null(strstr(content_of(output), "requests/s"));
    assert_int_equal(strncmp(content_of(output), "NOT DECIDED: of ", 16), 0); /* verdict first */
    assert_non_null(strstr(content_of(output), "too few runs: needs 6 of each"));
    const char *table = strstr(content_of(output), "\nsale");
    if (table == NULL || columns_of(table) > 80)
        fail_msg("wider than 80 columns:%s", table);
    RUN(1, "compare", reports[0], reports[1], "--fail-if", "p50");
    assert_non_null(strstr(content_of(messages), "--fail-if: 2 not decided"));
    RUN(2, "compare", reports[0], reports[1], "--fail-if", "speed");
    /* In turn: both sides are the same runs. */
    RUN(0, "compare", reports[0], reports[0], reports[1], reports[1]);
    assert_non_null(strstr(content_of(output), "and 1 more"));
    assert_non_null(strstr(content_of(output), "within the noise"));
    assert_null(strstr(content_of(output), "better"));
    RUN(1, "compare", reports[0], "/nonexistent");
}

/* On a terminal 60 columns wide; the view is gone when the run is over. */
TEST_THAT(live_view_is_drawn_on_a_terminal_and_removed)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &(struct winsize){.ws_row = 24, .ws_col = 60}), 0);
    char kept[sizeof messages];
    strcpy(kept, messages);
    snprintf(messages, sizeof messages, "%s", ptsname(terminal));
    pid_t pid = start((const char *const[]){"sale", "--url", shop.service->url, "--duration", "1s",
                                            "--mode", "closed", NULL});
    strcpy(messages, kept);
    static char shown[100000];
    size_t length = 0;
    ssize_t n;
    while (length < sizeof shown - 1 &&
           (n = read(terminal, shown + length, sizeof shown - 1 - length)) > 0)
        length += (size_t)n; /* until the other end is closed */
    close(terminal);
    expect_exit(pid, 0);
    assert_non_null(strstr(shown, "  rate "));
    assert_non_null(strstr(shown, "p99.9"));
    assert_non_null(strstr(shown, "  stock "));
    const char *last = strrchr(shown, '\033');
    assert_non_null(last);
    assert_true(strncmp(last, "\033[J", 3) == 0 || strncmp(last, "\033[K", 3) == 0);
}
