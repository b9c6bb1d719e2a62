/* Loads that do not end as planned: nothing there, Ctrl-C, a service that dies or hangs. */
#include "load.h"
#include "json_schema.h"
#include "lateness.h"
#include "loadgen_rig.h"

#include <stdlib.h>

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(failures_are_one_clear_line)
{
    char nobody[64];
    snprintf(nobody, sizeof nobody, "http://127.0.0.1:%d", sandbox_free_port());
    RUN(1, "sale", "--url", nobody);
    char *text = content_of(messages);
    assert_non_null(strstr(text, "Connection refused"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    RUN(1, "sale", "--url", shop.service->url, "--guards", "no");
    assert_non_null(strstr(content_of(messages), "no guard 'no'"));
    RUN(1, "http", nobody, "--requests", "3");
    assert_non_null(strstr(content_of(messages), "no request to 127.0.0.1:"));
    RUN(2, "http", nobody, "--header", "bad");
    assert_non_null(strstr(content_of(messages), "header 'bad': 'Name: value'"));
    RUN(2, "http", nobody, "--method", "GE T");
    RUN(2, "http", nobody, "--header", "X: {{nope}}");
    assert_non_null(strstr(content_of(messages), "'{{nope}}' is none of"));
    RUN(2, "http");
    assert_non_null(strstr(content_of(messages), "a URL is needed"));
    RUN(2, "sale", "--threshold", "x");
    RUN(2, "no-such-command");
}

/* loadgen as its arguments are, with nowhere to write to. */
static void expect_unwritable(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("loadgen")};
    for (size_t n = 1; *args != NULL && n < ARGS_MAX; n++)
        argv[n] = *args++;
    expect_exit(program_start(argv, "/dev/full", messages), 1);
    char *text = content_of(messages);
    const char *says = strstr(text, "cannot write the standard output: No space left on device\n");
    assert_non_null(says);
    assert_null(strstr(says + 1, "cannot write"));
}

#define UNWRITABLE(...) expect_unwritable((const char *const[]){__VA_ARGS__, NULL})

TEST_THAT(output_that_cannot_be_written_is_a_failure)
{
    char live[SANDBOX_TEXT_MAX + 8], report[SANDBOX_TEXT_MAX + 16], history[SANDBOX_TEXT_MAX + 16];
    const char *url = shop.service->url;
    snprintf(live, sizeof live, "%s/livez", url);
    snprintf(report, sizeof report, "%s/plain", sandbox_dir(shop.sandbox));
    snprintf(history, sizeof history, "%s/history", sandbox_dir(shop.sandbox));
    RUN(0, "http", live, "--requests", "10", "--json", report);
    RUN(0, "sale", "--url", url, "--buyers", "20", "--history", history);
    UNWRITABLE("http", live, "--requests", "10");
    UNWRITABLE("compare", report, report);
    UNWRITABLE("check", history);
    UNWRITABLE("sale", "--url", url, "--buyers", "20");
    UNWRITABLE("sale", "--url", url, "--buyers", "20", "--threshold", "max<1us");
    UNWRITABLE("--help");
    UNWRITABLE("sale", "--help");
}

/* Orders accepted so far, by the service's metrics. */
static int64_t sold_by(const struct sandbox_server *service)
{
    struct load_target target;
    char message[200], *metrics;
    long long n = 0;
    assert_int_equal(load_target_parse(service->url, &target, message, sizeof message), 0);
    assert_int_equal(load_fetch(&target, "GET", "/metrics", "", NULL, 10000, &metrics), 200);
    const char *line = strstr(metrics, "{kind=\"place-order\",outcome=\"ok\"}");
    if (line != NULL)
        sscanf(strchr(line, '}') + 1, "%lld", &n);
    free(metrics);
    return n;
}

/* Before the load, which may take hours. */
TEST_THAT(report_that_cannot_be_written_is_told_before_the_load)
{
    static const char *const flags[] = {"--json", "--html", "--csv"};
    const int64_t before = sold_by(shop.service);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        RUN(1, "sale", "--url", shop.service->url, flags[i], "/proc/self/no/report");
        assert_non_null(strstr(content_of(messages), "cannot write /proc/self/no/report"));
    }
    assert_int_equal(sold_by(shop.service), before);
}

enum { CONNECTIONS = 8 };
#define AS_MANY_CONNECTIONS "8"

struct sale_at {
    const struct sandbox_server *service;
    int64_t sold_before;
};

/* More is sold than a closed load has under way: some answers have reached it. */
static bool sale_runs(void *sale)
{
    const struct sale_at *at = sale;
    return sold_by(at->service) > at->sold_before + CONNECTIONS;
}

TEST_THAT(interrupted_load_shows_what_is_known)
{
    struct sale_at at = {shop.service, sold_by(shop.service)};
    char page[SANDBOX_TEXT_MAX + 16], report[SANDBOX_TEXT_MAX + 16];
    snprintf(page, sizeof page, "%s/page", sandbox_dir(shop.sandbox));
    snprintf(report, sizeof report, "%s/interrupted", sandbox_dir(shop.sandbox));
    pid_t pid =
        start((const char *const[]){"sale", "--url", shop.service->url, "--mode", "closed",
                                    "--connections", AS_MANY_CONNECTIONS, "--duration", "10m",
                                    "--stock", "1000000", "--html", page, "--json", report, NULL});
    assert_true(wait_until(sale_runs, &at, ENDS_WITHIN_MS));
    kill(pid, SIGINT);
    expect_exit(pid, 130);
    assert_int_equal(strncmp(content_of(output), "INTERRUPTED", 11), 0);
    assert_non_null(strstr(content_of(output), "(interrupted)"));
    assert_non_null(strstr(content_of(page), "(interrupted)"));
    RUN(0, "compare", report, report);
    assert_int_equal(strncmp(content_of(output), "INTERRUPTED: ", 13), 0);
}

/* Of a run whose service has gone: no verdict, but all else, in a report that keeps its schema. */
static void expect_not_judged(const char *report)
{
    char message[300];
    assert_non_null(strstr(content_of(output), "NOT JUDGED: the audit could not be read"));
    assert_non_null(strstr(content_of(output), "req/s"));
    assert_non_null(strstr(content_of(output), "max<1us is"));
    json_t *schema = json_load_file("loadgen/report/report.schema.json", 0, NULL);
    json_t *json = json_load_file(report, 0, NULL);
    if (!schema_holds(schema, json, message, sizeof message))
        fail_msg("%s", message);
    const json_t *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_true(json_is_null(json_object_get(run, "verdict")));
    assert_true(json_integer_value(json_object_get(run, "accepted")) > 0);
    json_decref(json);
    json_decref(schema);
}

TEST_THAT(service_that_dies_or_hangs_leaves_a_run_without_a_verdict)
{
    enum { HANGS_WITHIN_MS = 40000 };
    char report[SANDBOX_TEXT_MAX + 16];
    snprintf(report, sizeof report, "%s/report", sandbox_dir(shop.sandbox));
    for (int hangs = 0; hangs < 2; hangs++) {
        struct shop own;
        assert_int_equal(shop_open(&own, (const char *const[]){NULL}), 0);
        struct sandbox_server *service = own.service;
        struct sale_at at = {service, sold_by(service)};
        unlink(report);
        pid_t pid = start((const char *const[]){"sale", "--url", service->url, "--mode", "closed",
                                                "--connections", AS_MANY_CONNECTIONS, "--duration",
                                                "10s", "--stock", "1000000", "--timeout-ms", "1000",
                                                "--threshold", "max<1us", "--json", report, NULL});
        assert_true(wait_until(sale_runs, &at, ENDS_WITHIN_MS));
        int64_t begun_ms = test_now_ms();
        sandbox_signal(service, hangs ? SIGSTOP : SIGKILL);
        if (hangs)
            kill(pid, SIGINT);
        expect_exit(pid, hangs ? 130 : 1);
        assert_true(!hangs || ended_within(begun_ms, HANGS_WITHIN_MS));
        sandbox_signal(service, SIGCONT);
        shop_close(&own);
        expect_not_judged(report);
    }
}
