/* loadgen against a service that is not open: each of its requests carries the token, and the
 * ledger's keys, which name the caller, are found again. */
#include "callers.h"
#include "loadgen_rig.h"

#include <stdlib.h>

static struct sandbox_server *service;
static char token_file[CALLERS_TEXT + 16];

static int open_service(void **state)
{
    (void)state;
    callers_open();
    service = callers_service("closed", (const char *const[]){"--tokens", callers_file, NULL});
    snprintf(output, sizeof output, "%s/output", sandbox_dir(callers_sandbox));
    snprintf(messages, sizeof messages, "%s/messages", sandbox_dir(callers_sandbox));
    snprintf(token_file, sizeof token_file, "%s/token", sandbox_dir(callers_sandbox));
    FILE *file = fopen(token_file, "we");
    assert_non_null(file);
    fprintf(file, "%s\n", callers_tokens[OPERATOR]);
    return fclose(file);
}

static int close_service(void **state)
{
    (void)state;
    const bool well = shop_stop(service);
    callers_close();
    return well ? 0 : -1;
}

GROUP_FIXTURE(open_service, close_service);

TEST_THAT(each_workload_is_judged_with_a_token)
{
    static const char *const workloads[] = {"sale", "accounts", "transfers"};
    for (size_t i = 0; i < 3; i++) {
        RUN(0, workloads[i], "--url", service->url, "--guards", "mutex", "--token-file", token_file,
            "--requests", "300", "--pairs", "3", "--duplicates", "20", "--abandon", "2", "--json",
            "-");
        json_t *report = json_load_file(output, 0, NULL);
        assert_true(json_is_true(json_object_get(report, "as_claimed")));
        char *text = json_dumps(report, 0);
        assert_null(strstr(text, callers_tokens[OPERATOR])); /* reports are passed on */
        free(text);
        json_decref(report);
    }
}

TEST_THAT(the_token_may_stand_in_the_environment)
{
    assert_int_equal(setenv("SECKILL_TOKEN", callers_tokens[OPERATOR], 1), 0);
    RUN(0, "sale", "--url", service->url, "--guards", "mutex", "--buyers", "200");
    assert_int_equal(unsetenv("SECKILL_TOKEN"), 0);
}

TEST_THAT(without_the_right_token_the_refusal_is_told)
{
    RUN(1, "sale", "--url", service->url, "--guards", "mutex");
    assert_non_null(strstr(content_of(messages), "send a token"));
    assert_int_equal(setenv("SECKILL_TOKEN", callers_tokens[ANN], 1), 0);
    RUN(1, "sale", "--url", service->url, "--guards", "mutex");
    assert_non_null(strstr(content_of(messages), "for operators"));
    assert_int_equal(unsetenv("SECKILL_TOKEN"), 0);
}
