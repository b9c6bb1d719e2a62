/* The lab on real servers: a few experiments agree, and every planted break of a guard is found.
 * All experiments: make lab. */
#include "../../loadgen/sandbox_process.h"
#include "../lib/shop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 24, USAGE = 2, MISMATCH = 99, REPEAT = 2 };

extern char **environ;

static struct sandbox *sandbox; /* only for a folder that goes away */
static char report[SANDBOX_TEXT_MAX + 16], page[SANDBOX_TEXT_MAX + 16],
    output[SANDBOX_TEXT_MAX + 16], wrapper[SANDBOX_TEXT_MAX + 16];

static int open_folder(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(report, sizeof report, "%s/report.json", sandbox_dir(sandbox));
    snprintf(page, sizeof page, "%s/matrix.html", sandbox_dir(sandbox));
    snprintf(output, sizeof output, "%s/output", sandbox_dir(sandbox));
    snprintf(wrapper, sizeof wrapper, "%s/seckilld", sandbox_dir(sandbox));
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static void show_output(void)
{
    char line[512];
    FILE *file = fopen(output, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fputs(line, stderr);
    if (file != NULL)
        fclose(file);
}

/* build/hazards with these arguments; returns its exit status. */
static int hazards(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("hazards")};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    for (size_t n = 1; *args != NULL && n < ARGS_MAX; n++)
        argv[n] = *args++;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int error = posix_spawn(&pid, argv[0], &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(error, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const char *const *args, int status)
{
    int got = hazards(args);
    if (got == status)
        return;
    show_output();
    fail_msg("hazards ended with %d, not %d", got, status);
}

static json_t *load_report(void)
{
    json_t *json = json_load_file(report, 0, NULL);
    assert_non_null(json);
    return json;
}

static bool page_has(const char *text)
{
    static char content[1 << 20];
    FILE *file = fopen(page, "re");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return strstr(content, text) != NULL;
}

static void textbook_case_ended_at_700(const json_t *result)
{
    const json_t *outcome = json_object_get(result, "outcome");
    assert_string_equal(json_string_value(json_object_get(result, "observed")), "unsafe");
    assert_int_equal(json_integer_value(json_object_get(outcome, "initial")), 1000);
    assert_int_equal(json_integer_value(json_object_get(outcome, "expected_final")), 500);
    assert_int_equal(json_integer_value(json_object_get(outcome, "final")), 700);
    assert_int_equal(json_integer_value(json_object_get(outcome, "lost_updates")), 1);
    assert_int_equal(json_array_size(json_object_get(outcome, "counterexample")), 2);
}

static void faults_take_effect_and_outcomes_agree_each_time(void **state)
{
    (void)state;
    expect(
        (const char *const[]){
            "run",       "--hazard",     "lost-update", "--hazard", "paused-holder",
            "--hazard",  "wrong-delete", "--guard",     "none",     "--guard",
            "redis-set", "--guard",      "redis-token", "--repeat", "2",
            "--json",    report,         "--html",      page,       NULL},
        EXIT_SUCCESS);
    json_t *json = load_report(), *result;
    size_t i;
    assert_int_equal(json_integer_value(json_object_get(json, "mismatches")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "results")), 7);
    json_array_foreach(json_object_get(json, "results"), i, result)
    {
        assert_int_equal(json_integer_value(json_object_get(result, "runs")), REPEAT);
        assert_int_equal(json_integer_value(json_object_get(result, "agreeing")), REPEAT);
        assert_int_equal(json_integer_value(json_object_get(result, "fault_took_effect")), REPEAT);
        assert_true(json_array_size(json_object_get(result, "timeline")) > 0);
    }
    textbook_case_ended_at_700(json_array_get(json_object_get(json, "results"), 0));
    json_decref(json);
    assert_true(page_has("Two withdrawals read the same balance"));
    assert_true(page_has("class='chip unsafe' href='#run-0'"));
    assert_true(page_has("Two rows of the ledger that contradict each other"));
}

/* The service as the lab starts it, with one thing broken. */
static void write_wrapper(const char *breakage)
{
    char path[4096];
    assert_non_null(realpath(shop_binary("seckilld"), path));
    FILE *file = fopen(wrapper, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec '%s' \"$@\" %s\n", path, breakage);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(wrapper, 0700), 0);
}

static void every_planted_break_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *breakage, *hazard, *guard, *observed;
    } breaks[] = {
        {"--lab-slip shared-token", "wrong-delete", "redis-token", "unsafe"},
        {"--lab-slip no-second-try", "lost-wake-up", "redis-reentrant", "slow"},
        {"--lab-slip unlock-early", "unlock-before-commit", "mutex", "unsafe"},
        {"--fence off", "paused-holder", "redis-token", "unsafe"},
    };
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        write_wrapper(breaks[i].breakage);
        expect((const char *const[]){"run", "--hazard", breaks[i].hazard, "--guard",
                                     breaks[i].guard, "--seckilld", wrapper, "--json", report,
                                     NULL},
               MISMATCH);
        json_t *json = load_report(), *result;
        size_t at, wrong = 0;
        json_array_foreach(json_object_get(json, "results"), at, result)
        {
            const char *expected = json_string_value(json_object_get(result, "expected"));
            const char *observed = json_string_value(json_object_get(result, "observed"));
            if (strcmp(expected, observed) == 0)
                continue;
            wrong++;
            assert_string_equal(expected, "safe");
            assert_string_equal(observed, breaks[i].observed);
        }
        assert_int_equal(wrong, 1);
        assert_int_equal(json_integer_value(json_object_get(json, "mismatches")), 1);
        json_decref(json);
    }
}

/* The section ends before its pause: nobody comes to the point where the fault waits. */
static void fault_that_does_not_take_effect_is_a_mismatch(void **state)
{
    (void)state;
    write_wrapper("--wait-ms 0 --guard no-such-guard");
    assert_int_equal(hazards((const char *const[]){"run", "--hazard", "lost-update", "--guard",
                                                   "none", "--seckilld", wrapper, NULL}),
                     EXIT_FAILURE);    /* no service, no verdict */
    write_wrapper("--lease-ms 60000"); /* the lease that is to end does not */
    expect((const char *const[]){"run", "--hazard", "wrong-delete", "--guard", "redis-set",
                                 "--seckilld", wrapper, "--json", report, "--patience-ms", "2500",
                                 NULL},
           MISMATCH);
    json_t *json = load_report();
    json_t *result = json_array_get(json_object_get(json, "results"), 0);
    assert_int_equal(json_integer_value(json_object_get(result, "fault_took_effect")), 0);
    assert_string_not_equal(json_string_value(json_object_get(result, "message")), "");
    json_decref(json);
}

static bool answers(const struct sandbox_server *redis, const char *command, const char *wanted)
{
    return sandbox_answers(redis->socket, 0, command, wanted, 2000);
}

static void only_the_shimmed_server_s_clock_leaps(void **state)
{
    (void)state;
    char shim[4096];
    assert_non_null(realpath(shop_binary("libclockshim.so"), shim));
    struct sandbox_server *shimmed = sandbox_redis_with_clock(sandbox, shim);
    struct sandbox_server *real = sandbox_redis(sandbox, NULL);
    assert_non_null(shimmed);
    assert_non_null(real);
    assert_true(answers(shimmed, "SET lock 1 PX 30000\r\n", "+OK"));
    assert_true(answers(real, "SET lock 1 PX 30000\r\n", "+OK"));
    assert_true(answers(shimmed, "EXISTS lock\r\n", ":1"));
    assert_int_equal(sandbox_set_clock(shimmed, INT64_C(40000000)), 0);
    assert_true(answers(shimmed, "EXISTS lock\r\n", ":0"));
    assert_true(answers(real, "EXISTS lock\r\n", ":1"));
}

static void stories_are_told_in_both_languages(void **state)
{
    (void)state;
    char text[8192];
    static const char *const said[][2] = {{"en", "A has come to \"decided\" and is held there: it "
                                                 "has read 1000 and is to write 800"},
                                          {"zh", "原来 1000，应为 500，实际 700"}};
    for (size_t i = 0; i < 2; i++) {
        expect((const char *const[]){"run", "--hazard", "lost-update", "--guard", "none",
                                     "--narrate", "--lang", said[i][0], NULL},
               EXIT_SUCCESS);
        FILE *file = fopen(output, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        assert_non_null(strstr(text, said[i][1]));
    }
}

static void wrong_arguments_are_told(void **state)
{
    (void)state;
    expect((const char *const[]){NULL}, USAGE);
    expect((const char *const[]){"run", "--hazard", "no-such", NULL}, USAGE);
    expect((const char *const[]){"run", "--repeat", "0", NULL}, USAGE);
    expect((const char *const[]){"run", "--hazard", "eviction", "--guard", "mutex", NULL}, USAGE);
    expect((const char *const[]){"list", "--json", report, NULL}, EXIT_SUCCESS);
    json_t *json = load_report();
    assert_true(json_array_size(json) >= 30);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_take_effect_and_outcomes_agree_each_time),
        cmocka_unit_test(every_planted_break_is_reported),
        cmocka_unit_test(fault_that_does_not_take_effect_is_a_mismatch),
        cmocka_unit_test(only_the_shimmed_server_s_clock_leaps),
        cmocka_unit_test(stories_are_told_in_both_languages),
        cmocka_unit_test(wrong_arguments_are_told),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
