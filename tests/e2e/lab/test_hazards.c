/* The lab on real servers: a few experiments agree, and every planted break of a guard is found.
 * All experiments: make lab. */
#include "sandbox_process.h"
#include "hazards_rig.h"

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

GROUP_FIXTURE(open_folder, close_folder);

TEST_THAT(faults_take_effect_and_outcomes_agree_each_time)
{
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

TEST_THAT(every_planted_break_is_reported)
{
    static const struct {
        const char *breakage, *hazard, *guard, *observed;
    } breaks[] = {
        {"--lab-slip shared-token", "wrong-delete", "redis-token", "unsafe"},
        {"--lab-slip no-second-try", "lost-wake-up", "redis-reentrant", "slow"},
        {"--lab-slip unlock-early", "unlock-before-commit", "mutex", "unsafe"},
        {"--fence off", "paused-holder", "redis-token", "unsafe"},
        {"--wait-ms 40", "oversell", "zk-ephemeral", "refused"}, /* most of the crowd in vain */
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
TEST_THAT(fault_that_does_not_take_effect_is_a_mismatch)
{
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

/* A lease of 10 ms ends now and then before its request has come to its step. (A watchdog that is
 * to renew such a lease may be late, too: that row is not looked at.) */
TEST_THAT(request_that_loses_its_lock_before_its_step_is_sent_again)
{
    write_wrapper("--lease-ms 10");
    const int status = hazards((const char *const[]){"run", "--hazard", "expired-lease", "--guard",
                                                     "redis-token", "--repeat", "10", "--seckilld",
                                                     wrapper, "--json", report, NULL});
    assert_true(status == EXIT_SUCCESS || status == MISMATCH);
    json_t *json = load_report(), *result;
    size_t at, found = 0;
    json_array_foreach(json_object_get(json, "results"), at, result)
    {
        if (strcmp(json_string_value(json_object_get(result, "variant")), "no watchdog") != 0)
            continue;
        found++;
        assert_int_equal(json_integer_value(json_object_get(result, "agreeing")), 10);
    }
    assert_int_equal(found, 1);
    json_decref(json);
}

/* A Redis that goes by the name of the real one and is found before it, with one setting more. */
static void write_redis(const char *setting)
{
    FILE *file = fopen(fake_redis, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nPATH='%s' exec redis-server \"$@\" %s\n", real_path, setting);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(fake_redis, 0700), 0);
}

/* The servers do not do what is done to them: whatever the outcome, that is no experiment. The rows
 * named would all be safe. A lease is shorter than the patience and long enough for a watchdog that
 * waits seconds for a core. */
TEST_THAT(fault_that_left_the_lock_as_it_was_did_not_take_effect)
{
    static const struct {
        const char *redis, *service, *hazard, *variant;
    } idle[] = {
        {"--maxmemory-policy noeviction", "", "eviction", "volatile-lru, fence on"},
        {"--rename-command CONFIG NOT-THIS", "", "eviction", "noeviction"},
        {"--appendonly yes --appendfsync always", "", "restart-empty", "fence from the database"},
        {"--appendonly no", "", "restart-empty", "appendfsync always"},
        {"", "--watchdog on --lease-ms 3000", "expired-lease", "fence on"},
    };
    char path[sizeof real_path + SANDBOX_TEXT_MAX];
    snprintf(path, sizeof path, "%s:%s", sandbox_dir(sandbox), real_path);
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++) {
        write_redis(idle[i].redis);
        write_wrapper(idle[i].service);
        setenv("PATH", path, 1);
        expect((const char *const[]){"run", "--hazard", idle[i].hazard, "--guard", "redis-token",
                                     "--seckilld", wrapper, "--json", report, "--patience-ms",
                                     "4000", NULL},
               MISMATCH);
        setenv("PATH", real_path, 1);
        json_t *json = load_report(), *result;
        size_t at, found = 0;
        json_array_foreach(json_object_get(json, "results"), at, result)
        {
            const char *variant = json_string_value(json_object_get(result, "variant"));
            if (strcmp(variant, idle[i].variant) != 0)
                continue;
            found++;
            if (json_integer_value(json_object_get(result, "fault_took_effect")) != 0)
                fail_msg("%s, %s: the fault is said to have taken effect", idle[i].hazard, variant);
            assert_string_not_equal(json_string_value(json_object_get(result, "message")), "");
        }
        assert_int_equal(found, 1);
        json_decref(json);
    }
}

static bool answers(const struct sandbox_server *redis, const char *command, const char *wanted)
{
    char question[128], answer[64];
    snprintf(question, sizeof question, "AUTH %s\r\n%s", sandbox_password(), command);
    snprintf(answer, sizeof answer, "+OK\r\n%s", wanted);
    return sandbox_answers(redis->socket, 0, question, answer, 2000);
}

TEST_THAT(only_the_shimmed_server_s_clock_leaps)
{
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
